"""The limits of devices: the rate of vector units and tensor cores (compute-bound kernels); of the memory, as reported
by the driver; of the links on the way of copies between a host and its devices, and between devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from seatrial.model.benchmark.benchmark import Attainable, LimitOf
from seatrial.model.benchmark.parameter import CACHES_TIMES, Params, whole
from seatrial.model.machine.limit import Basis, Limit
from seatrial.model.machine.links import (
    carried_together,
    direct_links,
    gpu_at,
    meeting_ways,
    narrowest,
    paths_are_known,
    way_up,
)
from seatrial.model.machine.machine import Device, Link, Machine
from seatrial.model.results.sample import Sample
from seatrial.model.units import SIUnit

_FMAS_PER_CYCLE = {
    60: {"fp32": 64, "fp64": 32},
    61: {"fp32": 128, "fp64": 4},
    70: {"fp32": 64, "fp64": 32},
    75: {"fp32": 64, "fp64": 2},
    80: {"fp32": 64, "fp64": 32},
    86: {"fp32": 128, "fp64": 2},
    89: {"fp32": 128, "fp64": 2},
    90: {"fp32": 128, "fp64": 64},
    100: {"fp32": 128, "fp64": 64},
    120: {"fp32": 128, "fp64": 2},
}
"""CUDA capability -> multiply-adds that a multiprocessor issues in a cycle (CUDA C++ Programming Guide, "Throughput of
Native Arithmetic Instructions")."""


_TENSOR_FMAS_PER_CYCLE = {
    70: {"fp16": 512},
    75: {"fp16": 512},
    80: {"fp16": 1024, "bf16": 1024, "tf32": 512, "fp64": 64},
    90: {"fp16": 2048, "bf16": 2048, "tf32": 1024, "fp64": 128},
    100: {"fp16": 4096, "bf16": 4096, "tf32": 2048, "fp64": 64},
}
"""CUDA capability -> multiply-adds of dense matrices that a multiprocessor's tensor cores do in a cycle: 8 cores of 64
("NVIDIA Tesla V100 GPU Architecture", 2017; "NVIDIA Turing GPU Architecture", 2018); 4 of 256 ("NVIDIA A100 Tensor Core
GPU Architecture", 2020); 4 of 512 ("NVIDIA H100 Tensor Core GPU Architecture", 2022); 100: from the B200's dense rates
of 2.25, 1.12 and 0.037 PFLOP/s, 148 multiprocessors and 1.85 to 1.97 GHz ("NVIDIA Blackwell Architecture Technical
Brief", 2024)."""


def _facts(samples: Sequence[Sample]) -> Mapping[str, Any]:
    """What the driver reports of the device or devices of a sample."""
    facts = samples[0].extra.get("device")
    return facts if isinstance(facts, dict) else {}


def flop_limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    """Multiprocessors x multiply-adds per cycle x 2 flop x the highest clock reported by the driver, of all devices."""
    return _limit(_FMAS_PER_CYCLE, "vector units", params, samples)


def matrix_limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    """The rate of the tensor cores if they support the precision, else of the vector units.

    Datasheets give tensor cores at a lower clock: 989 TFLOP/s of an H100 in fp16 are at 1.83 GHz, not its highest 1.98.
    """
    if params["precision"] in _TENSOR_FMAS_PER_CYCLE.get(_facts(samples).get("capability") or 0, {}):
        return _limit(_TENSOR_FMAS_PER_CYCLE, "tensor cores", params, samples)
    return _limit(_FMAS_PER_CYCLE, "vector units", params, samples)


def _limit(rates: Mapping[int, Mapping[str, int]], what: str, params: Params, samples: Sequence[Sample]) -> Limit:
    facts = _facts(samples)
    rate = rates.get(facts.get("capability", 0), {}).get(str(params["precision"]))
    if rate is None or not facts.get("clock_Hz"):
        return Limit.unknown("flop/s", f"the rate of the device's {what} is unknown")
    units, clock_Hz, count = facts["compute_units"], facts["clock_Hz"], facts.get("devices", 1)
    derivation = f"{what}: {units} multiprocessors x {rate} multiply-adds per cycle x 2 flop x {clock_Hz / 1e9:.3f} GHz"
    derivation += ", the highest clock" + (f", x {count} devices" if count > 1 else "")
    return Limit(units * rate * 2 * clock_Hz * count, "flop/s", derivation, Basis.PHYSICAL)


def device_peak(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    """Of matrix products on the devices of a sample, on all nodes."""
    peak = matrix_limit(machine, params, samples)
    nodes = whole(params.get("nodes", 1))
    if peak.value is None or nodes == 1:
        return peak
    return replace(peak, value=peak.value * nodes, derivation=f"{peak.derivation} x {nodes} nodes")


def node_peak(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    """Of matrix products on all devices that the driver reports (`found`; as fast as those of the sample) and on the
    CPUs, on all nodes; on the CPUs alone if they are the devices. In fp64 or fp32, by the parameter `precision`."""
    facts = _facts(samples)
    nodes = whole(params.get("nodes", 1))
    host = machine.named_limit(f"cpu.{params['precision']}")
    if host is None or host.value is None:
        return Limit.unknown("flop/s", "the peak of the CPUs is unknown")
    each = "" if nodes == 1 else f", x {nodes} nodes"
    if facts.get("cpu"):
        return replace(host, value=host.value * nodes, derivation=host.derivation + each)
    devices = matrix_limit(machine, params, samples)
    if devices.value is None:
        return devices
    found = facts.get("found", 1)
    value = devices.value / facts.get("devices", 1) * found + host.value
    derivation = f"{found} devices, of which {facts.get('devices', 1)} are used: {devices.derivation}"
    derivation += f"; and the CPUs: {host.derivation}{each}"
    return Limit(value * nodes, "flop/s", derivation, Basis.PHYSICAL)


def memory_limit(touched_B: Callable[[Params], float]) -> LimitOf:
    """2 transfers in each cycle of the memory's clock x width of its bus, for each device; `touched_B` is how much one
    run reads and writes again and again, on each device or, where they share one problem (TP), on all together.

    The driver reports the clock and the width (CUDA: attributes MEMORY_CLOCK_RATE and GLOBAL_MEMORY_BUS_WIDTH); OpenCL
    reports neither.
    """

    def limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
        facts = _facts(samples)
        if not facts.get("memory_clock_Hz") or not facts.get("memory_bus_bits"):
            return Limit.unknown("B/s", "the driver reports no clock or bus width of the device's memory")
        clock_Hz, bits, count = facts["memory_clock_Hz"], facts["memory_bus_bits"], facts.get("devices", 1)
        cache_B = facts.get("cache_bytes", 0)
        on_each_B = touched_B(params) / (count if params.get("mode") == "TP" else 1)
        if on_each_B < CACHES_TIMES * cache_B:
            return Limit.unknown("B/s", f"the data may come from the device's cache of {cache_B / 2**20:g} MiB")
        derivation = f"2 x {clock_Hz / 1e9:g} GHz x {bits} bit / 8" + (f" x {count} devices" if count > 1 else "")
        return Limit(2 * clock_Hz * bits / 8 * count, "B/s", derivation, Basis.PHYSICAL)

    return limit


_PAYLOAD_B, _HEADERS_B = 256, 24
PACKETS = Attainable(
    _PAYLOAD_B / (_PAYLOAD_B + _HEADERS_B), f"packets carry {_PAYLOAD_B} B of data and {_HEADERS_B} B of headers"
)
"""R. Neugebauer et al., "Understanding PCIe performance for end host networking", SIGCOMM 2018: 24 B around the data of
a packet; servers usually set its size to 256 B."""

_NVLINK_Bps = {60: 20e9, 70: 25e9, 80: 25e9, 90: 25e9, 100: 50e9}
"""CUDA capability -> B/s per direction of an NVLink (NVIDIA's whitepapers on the Tesla P100, V100, A100, H100 and the
Blackwell architecture: 160, 300, 600, 900 and 1800 GB/s in both directions over 4, 6, 12, 18 and 18 links)."""


def link_limit(counted: Callable[[Params], float] = lambda params: 1.0, unit: SIUnit = "B/s", how: str = "") -> LimitOf:
    """What the links between the host and the devices of a sample carry per direction, x `counted`: how much of `unit`
    a program counts for each byte that its busier direction carries, which `how` says in words.

    Devices are found in the machine's graph by the PCI addresses in the samples. If devices copy at once, only their
    sum has a limit: how they divide shared links is unknown.
    """

    def limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
        found = _devices(machine, samples)
        if isinstance(found, str):
            return Limit.unknown(unit, found)
        if len(found) == 1 and _is_beside_others(params, samples):
            return Limit.unknown(unit, "other devices copy at the same time; only their sum has a limit")
        value, derivation = _to_host(machine, found)
        if value is None:
            return Limit.unknown(unit, derivation)
        factor = counted(params)
        derivation += f" x {factor:.4g} ({how})" if how else ""
        return Limit(value * factor, unit, derivation, Basis.PHYSICAL, paths_are_known(machine, found))

    return limit


def peer_limit(directions: int = 1) -> LimitOf:
    """The rate of the links between the two devices of a sample: direct links if there are any, else PCIe, per
    direction x `directions`. A sample's facts name the addresses of source and target, in this order."""

    def limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
        found = _devices(machine, samples)
        if isinstance(found, str):
            return Limit.unknown("B/s", found)
        if len(found) != 2 or found[0].id == found[1].id:
            return Limit.unknown("B/s", "copies within one device use no link")
        value, derivation = _between(machine, found[0], found[1], _facts(samples).get("capability"))
        if value is None:
            return Limit.unknown("B/s", derivation)
        derivation += f" x {directions} directions" if directions > 1 else ""
        return Limit(value * directions, "B/s", derivation, Basis.PHYSICAL, paths_are_known(machine, found))

    return limit


def _is_beside_others(params: Params, samples: Sequence[Sample]) -> bool:
    is_copy = params.get("mode") == "EP" and params["devices"] != 1
    return is_copy or samples[0].series.endswith("_together")


def _devices(machine: Machine, samples: Sequence[Sample]) -> list[Device] | str:
    """The devices of a sample in the machine's graph, or why they are not found there."""
    addresses = _facts(samples).get("pci")
    if isinstance(addresses, str):
        addresses = [addresses]
    if not isinstance(addresses, list) or not addresses or not all(addresses):
        return "the driver does not report the device's PCI address"
    found = [gpu_at(machine, str(address)) for address in addresses]
    known = [device for device in found if device is not None]
    if len(known) < len(found):
        return f"the device at {addresses[found.index(None)]} is not in the machine's description"
    return known


def _to_host(machine: Machine, devices: Sequence[Device]) -> tuple[float | None, str]:
    """(B/s per direction, derivation); (None, what is missing)."""
    direct = [direct_links(machine, device) for device in devices]
    if any(direct):
        rates = [_sum(links) for links in direct]
        if None in rates or len(devices) > 1:
            return None, "the rate of the direct links between the processor and these devices is unknown"
        return rates[0], f"{_rate_text(rates[0])}: the device's {direct[0][0].kind} links to the processor"
    if len(devices) > 1:
        together = carried_together(machine, devices)
        if together is None:
            return None, "the link rates of all these devices together are unknown"
        return together, f"{_rate_text(together)}: what the PCIe links to {len(devices)} devices carry at once"
    own = machine.named_limit(f"pcie.{devices[0].id}")
    if own is not None:
        return own.value, own.derivation
    link = narrowest(way_up(machine, devices[0]))
    if link is None or link.capable_Bps is None:
        return None, f"the capable rate of the PCIe link of {devices[0].id} is unknown"
    return link.capable_Bps, f"{_rate_text(link.capable_Bps)}: capable rate of the link from {link.a} to {link.b}"


def _between(machine: Machine, a: Device, b: Device, capability: int | None) -> tuple[float | None, str]:
    own = [link for link in machine.links if {link.a, link.b} == {a.id, b.id}]
    switched = [_to_switches(machine, device) for device in (a, b)]
    if own or all(switched):
        rates = [_sum(own)] if own else [_sum(links) for links in switched]
        known = [rate for rate in rates if rate is not None]
        if len(known) < len(rates):
            return None, f"the rate of the links between {a.id} and {b.id} is unknown"
        return min(known), f"{_rate_text(min(known))}: the direct links between {a.id} and {b.id}"
    path = next((path for path in machine.paths if {path.a, path.b} == {a.id, b.id}), None)
    if path is not None and path.path_class == "NV":
        each = _NVLINK_Bps.get(capability or 0)
        if each is None or path.links is None:
            return None, f"the rate of the NVLinks between {a.id} and {b.id} is unknown"
        return path.links * each, f"{path.links} NVLinks x {each / 1e9:g} GB/s per direction"
    if path is None or path.path_class in (None, "C2C", "XGMI"):
        return None, f"it is unknown whether {a.id} and {b.id} have direct links"
    link = narrowest(meeting_ways(machine, a, b))
    if link is None or link.capable_Bps is None:
        return None, f"the PCIe links between {a.id} and {b.id} are unknown"
    return (
        link.capable_Bps,
        f"{_rate_text(link.capable_Bps)}: the link from {link.a} to {link.b}, the slowest between the two",
    )


def _to_switches(machine: Machine, device: Device) -> list[Link]:
    switches = {part.id for part in machine.devices if part.kind.value == "switch"}
    return [link for link in machine.links if device.id in (link.a, link.b) and {link.a, link.b} & switches]


def _sum(links: Sequence[Link]) -> float | None:
    rates = [link.capable_Bps for link in links if link.capable_Bps]
    return sum(rates) if links and len(rates) == len(links) else None


def _rate_text(value: float | None) -> str:
    return f"{(value or 0.0) / 1e9:.4g} GB/s per direction"
