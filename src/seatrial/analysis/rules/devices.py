"""Facts about GPUs, adapters and NUMA nodes that several rules use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from seatrial.analysis.direct_links import Pair
from seatrial.analysis.grouped import grouped
from seatrial.model.machine.limit import pcie_bandwidth
from seatrial.model.machine.machine import Affinity, Device, DeviceKind, Machine, Path
from seatrial.model.spelling import count

CLASSES_BY_DISTANCE = ("X", "C2C", "NV", "XGMI", "PIX", "PXB", "PHB", "NODE", "SYS")
"""From near to far (legend of `nvidia-smi topo -m`). PCI only means "over PCIe", so it has no rank."""

_FABRIC_NAME = re.compile(
    r"(mlx[45]_|hfi1_|qib\d|bnxt_re|irdma|rocep|roceo|ibp|opap|efa_|rdmap|cxi\d|hsi\d|ib\d|nic\d)", re.ASCII | re.I
)
"""Names that RDMA drivers, udev and topology matrices give: mlx5_0, hfi1_0, rocep1s0f0, cxi0, ib0, NIC3."""

_FABRIC_RATE_BPS = 25e9 / 8
"""A network interface of 25 Gbit/s or more is not a management port."""

_FABRIC_SLOT_BPS = 7.8e9

_COHERENT_NAME = re.compile(r"\b(GH200|GB200|GB300)\b")
"""GPUs of the Grace modules. `pci_name` of a GeForce has another chip name (GB202)."""

_NAME_FACTS = ("model_name", "pci_name")

_DIES = {"7408", "740c"}
"""PCI device ids (of AMD) of MI250X and MI250: a module is two GPUs."""


def gpus(machine: Machine) -> tuple[Device, ...]:
    """The GPUs, in the order of the machine."""
    return machine.of_kind(DeviceKind.GPU)


def fabric_adapters(machine: Machine) -> tuple[Device, ...]:
    """The adapters that carry messages between nodes: RDMA devices and fast network interfaces that are not down.

    Management ports are excluded: they do not affect where ranks should run.
    """
    return tuple(device for device in machine.of_kind(DeviceKind.NIC) if _is_fabric(device))


def fast_adapters(machine: Machine) -> tuple[Device, ...]:
    """The adapters that carry messages between nodes, and those that only a listing of PCI functions shows: InfiniBand
    controllers, and network controllers with a PCIe link of at least 7.8 GB/s (8 lanes at 8 GT/s)."""
    return tuple(nic for nic in machine.of_kind(DeviceKind.NIC) if _is_fabric(nic) or _has_fast_slot(nic))


def _has_fast_slot(device: Device) -> bool:
    facts = device.facts
    if "state" in facts or "rate" in facts:  # the operating system describes it better
        return False
    lanes, speed = facts.integer("pcie_max_lanes"), facts.number("pcie_max_GTps")
    rate = pcie_bandwidth(speed, lanes).value if lanes and speed else None
    return facts.text("class_id") == "0207" or (rate is not None and rate >= _FABRIC_SLOT_BPS)


def _is_fabric(device: Device) -> bool:
    facts = device.facts
    if (facts.text("state") or "").lower() == "down":
        return False
    if any(_FABRIC_NAME.match(name) for name in (device.id.removeprefix("nic-"), device.name, *device.aliases)):
        return True
    return "link_layer" in facts or (facts.number("rate") or 0.0) >= _FABRIC_RATE_BPS


def of_pairs(number: int, pairs: int) -> str:
    """Such as: "3 of 28 GPU pairs"."""
    return "The only GPU pair" if number == pairs == 1 else f"{number} of {count(pairs, 'GPU pair')}"


def paths_by_pair(machine: Machine) -> Mapping[Pair, Path]:
    """(a, b) and (b, a) -> the path between them."""
    found: dict[Pair, Path] = {}
    for path in machine.paths:
        found[(path.a, path.b)] = found[(path.b, path.a)] = path
    return found


def affinities(machine: Machine) -> Mapping[str, Affinity]:
    """Device -> the CPUs and NUMA node next to it."""
    return {affinity.device: affinity for affinity in machine.affinity}


def numa_of(machine: Machine, device: Device) -> int | None:
    """The NUMA node of a device, from the device or from the matrix that lists its affinity."""
    if device.numa is not None:
        return device.numa
    affinity = affinities(machine).get(device.id)
    return None if affinity is None else affinity.numa


def coherent_gpus(machine: Machine) -> frozenset[str]:
    """The ids of GPUs that are attached to the processor by a coherent link (NVLink-C2C of Grace, NVLink of POWER8 and
    9), their memory a NUMA node: the PCI tree and the classes of matrices (SYS, NODE) then do not show their paths to
    the processor."""
    is_power = (machine.facts.text("architecture") or "").startswith("ppc64")
    ends = {end for path in machine.paths if path.path_class == "C2C" for end in (path.a, path.b)}
    ends |= {end for link in machine.links if link.kind.lower() == "c2c" for end in (link.a, link.b)}
    return frozenset(
        gpu.id
        for gpu in gpus(machine)
        if gpu.id in ends
        or "gpu_numa" in gpu.facts
        or "nvlink_cpu_rate" in gpu.facts
        or any(
            _COHERENT_NAME.search(name or "") or (is_power and "SXM2" in (name or ""))
            for name in (gpu.name, *map(gpu.facts.text, _NAME_FACTS))
        )
    )


def dies_of_modules(machine: Machine) -> frozenset[str]:
    """The ids of GPUs that are, or may be, one of the two dies of a module (MI250X, MI250). Where the board attaches
    adapters and links to them is fixed; NCCL's files do not distinguish them from the single die of an MI210."""

    def is_die(gpu: Device) -> bool:
        if "device_id" in gpu.facts:
            return (gpu.facts.text("device_id") or "").lower() in _DIES
        names = (gpu.name, *map(gpu.facts.text, _NAME_FACTS))
        return gpu.facts.text("gpu_architecture") == "gfx90a" or any("MI250" in (name or "") for name in names)

    return frozenset(gpu.id for gpu in gpus(machine) if is_die(gpu))


def node_cpus(machine: Machine) -> Mapping[int, tuple[int, ...]]:
    """NUMA node -> its CPUs, sorted, as in the tree; nodes without CPUs (CXL, HBM, a GPU's memory) are excluded.

    `CpuPart` attaches CPUs to the lower of two nodes that are local to the same CPUs, so each CPU counts once.
    """
    found = grouped((pu.numa, cpu) for cpu, pu in machine.pus.items() if pu.numa is not None)
    return {node: tuple(sorted(found[node])) for node in sorted(found)}


def spans(names: Iterable[str]) -> str:
    """Names in order, with three or more consecutive numbers as a span: "gpu-0 to gpu-7", "mlx5_0, mlx5_3"."""
    runs: list[list[str]] = []
    for name in sorted(dict.fromkeys(names), key=_by_number):
        if runs and _follows(runs[-1][-1], name):
            runs[-1].append(name)
        else:
            runs.append([name])
    words = [f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(run) for run in runs]
    return ", ".join(words[:_MOST_SPANS]) + (
        f" and {len(words) - _MOST_SPANS} more" if len(words) > _MOST_SPANS else ""
    )


_MOST_SPANS = 8
_NUMBERED = re.compile(r"(.*?)(\d{1,9})\Z", re.DOTALL | re.ASCII)


def _by_number(name: str) -> tuple[str, int]:
    numbered = _NUMBERED.match(name)
    return (name, -1) if numbered is None else (numbered[1], int(numbered[2]))


def _follows(before: str, name: str) -> bool:
    first, second = _NUMBERED.match(before), _NUMBERED.match(name)
    return bool(first and second and first[1] == second[1] and int(second[2]) == int(first[2]) + 1)
