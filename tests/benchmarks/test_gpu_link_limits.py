"""The limits of copies: the PCIe links of the devices that a sample names, and links of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from analysis.made_up_nodes import GEN3_X16, switched
from made_up import facts

from seatrial.benchmarks import benchmark_named
from seatrial.benchmarks.gpu.limits import link_limit, peer_limit
from seatrial.machine.assemble import machine_limits
from seatrial.model.machine.limit import Basis, Limit
from seatrial.model.machine.links import carried_together, gpu_at
from seatrial.model.machine.machine import Device, DeviceKind, Link, Machine, Path
from seatrial.model.results.sample import Sample

BARE = facts(architecture="x86_64")
S, EP = {"mode": "S", "devices": 1, "precision": "fp32"}, {"mode": "EP", "devices": 4, "precision": "fp32"}


def sample(*addresses: str, series: str = "download", **told: Any) -> list[Sample]:
    return [Sample(series, 0, 1.0, extra={"device": {"devices": len(addresses), "pci": list(addresses), **told}})]


def four(uplink: float = GEN3_X16) -> Machine:
    machine = replace(switched(4, uplink), facts=BARE)
    return replace(machine, limits=machine_limits(machine))


def addresses(machine: Machine) -> list[str]:
    return [device.pci for device in machine.of_kind(DeviceKind.GPU) if device.pci]


def test_a_device_has_the_limit_of_the_narrowest_link_on_its_way() -> None:
    machine = four(uplink=GEN3_X16 / 2)
    limit = link_limit()(machine, S, sample(addresses(machine)[1]))
    assert limit == machine.named_limit("pcie.gpu-1") and limit.value == GEN3_X16 / 2 and limit.is_physical
    without = replace(machine, limits=())
    assert link_limit()(without, S, sample(addresses(machine)[1])).value == GEN3_X16 / 2


def test_devices_at_once_share_what_is_above_them() -> None:
    for uplink, together in ((GEN3_X16, GEN3_X16), (3 * GEN3_X16, 3 * GEN3_X16), (9 * GEN3_X16, 4 * GEN3_X16)):
        machine = four(uplink)
        limit = link_limit()(machine, EP, sample(*addresses(machine)))
        assert limit.value == pytest.approx(together) and "4 devices carry at once" in limit.derivation
    two = replace(switched(4, GEN3_X16, switches=2), facts=BARE)
    assert carried_together(two, two.of_kind(DeviceKind.GPU)) == pytest.approx(2 * GEN3_X16)


def test_one_of_several_at_once_has_none_of_its_own() -> None:
    machine = four()
    for params, series in ((EP, "download"), ({"devices": 4}, "h2d_together")):
        limit = link_limit()(machine, params, sample(addresses(machine)[0], series=series))
        assert limit.value is None and "only their sum has a limit" in limit.derivation


def test_addresses_are_the_same_however_they_are_written() -> None:
    machine = four()
    for written in ("0000:03:00.0", "00000000:03:00.0", "0000:03:00.0".upper()):
        found = gpu_at(machine, written)
        assert found is not None and found.id == "gpu-0"
    for written in ("", "03:00.0", "0000:03:00.1", "nonsense"):
        assert gpu_at(machine, written) is None


@pytest.mark.parametrize(
    ("samples", "missing"),
    [
        (sample(""), "does not report the device's PCI address"),
        ([Sample("download", 0, 1.0)], "does not report the device's PCI address"),
        (sample("0000:f1:00.0"), "the device at 0000:f1:00.0 is not in"),
    ],
)
def test_what_is_not_told_is_unknown(samples: list[Sample], missing: str) -> None:
    limit = link_limit()(four(), S, samples)
    assert limit.basis is Basis.UNKNOWN and missing in limit.derivation
    assert peer_limit()(four(), S, samples).basis is Basis.UNKNOWN


@pytest.mark.parametrize(
    "told",
    [
        {"architecture": "aarch64"},
        {"architecture": "x86_64", "hypervisor": "kvm"},
        {},
    ],
)
def test_a_graph_that_may_not_show_the_way_confirms_nothing(told: dict[str, str]) -> None:
    machine = replace(four(), facts=facts(**told))
    limit = link_limit()(machine, S, sample(addresses(machine)[0]))
    assert limit.value == GEN3_X16 and not limit.is_physical


def test_links_of_their_own_to_the_processor_go_before_pcie() -> None:
    package, card = (
        Device("package-0", DeviceKind.PACKAGE, "CPU"),
        Device("gpu-0", DeviceKind.GPU, "G", pci="0000:01:00.0"),
    )
    links = (Link("package-0", "gpu-0", "c2c", 450e9, None, "x"), Link("host", "gpu-0", "pcie", 63e9, None, "x"))
    machine = Machine("m", (package, card), facts(architecture="aarch64"), links=links)
    limit = link_limit()(machine, S, sample("0000:01:00.0"))
    assert limit.value == 450e9 and "c2c" in limit.derivation
    silent = replace(machine, links=(replace(links[0], capable_Bps=None), links[1]))
    assert link_limit()(silent, S, sample("0000:01:00.0")).value is None


def limit_of(name: str, figure: str, machine: Machine, precision: str) -> Limit:
    declared = benchmark_named(name).figure(figure).limit
    assert declared is not None
    return declared(machine, {**S, "precision": precision}, sample(addresses(machine)[0]))


def test_what_declarations_count_for_each_byte_of_the_link() -> None:
    machine = four()
    for figure in ("download", "readback"):
        assert limit_of("gpu.bus-speed", figure, machine, "fp32").value == GEN3_X16
    for precision, width in (("fp32", 4), ("fp64", 8)):
        bandwidth = limit_of("gpu.triad", "bandwidth", machine, precision).value
        rate = limit_of("gpu.triad", "rate", machine, precision).value
        assert bandwidth == pytest.approx(1.5 * GEN3_X16) and rate == pytest.approx(GEN3_X16 / width)
        assert bandwidth is not None and rate is not None and bandwidth / rate == pytest.approx(1.5 * width)


def test_gpus_below_one_switch_do_not_use_its_uplink() -> None:
    machine = four(uplink=GEN3_X16 / 4)
    named = replace(machine, paths=(Path("gpu-0", "gpu-1", "PIX"),))
    pair = sample(*addresses(machine)[:2])
    assert peer_limit()(named, S, pair).value == GEN3_X16
    assert peer_limit(2)(named, S, pair).value == 2 * GEN3_X16
    assert peer_limit()(machine, S, pair).value is None, "they may have direct links"
    assert peer_limit()(named, S, sample(*[addresses(machine)[0]] * 2)).value is None


def test_gpus_in_two_trees_have_the_narrowest_link_of_both_ways() -> None:
    machine = replace(switched(4, GEN3_X16 / 2, switches=2), facts=BARE)
    far = replace(machine, paths=(Path("gpu-0", "gpu-2", "SYS"),))
    limit = peer_limit()(far, S, sample(addresses(far)[0], addresses(far)[2]))
    assert limit.value == GEN3_X16 / 2 and "slowest between the two" in limit.derivation


def test_direct_links_carry_what_they_are_capable_of_together() -> None:
    machine = four()
    pair = sample(*addresses(machine)[:2], capability=80)
    told = replace(machine, links=(*machine.links, Link("gpu-0", "gpu-1", "nvlink", 100e9, 100e9, "NCCL", count=4)))
    assert peer_limit()(told, S, pair).value == 100e9
    counted = replace(machine, paths=(Path("gpu-0", "gpu-1", "NV", 12),))
    limit = peer_limit()(counted, S, pair)
    assert limit.value == 300e9 and limit.derivation == "12 NVLinks x 25 GB/s per direction"
    assert peer_limit()(counted, S, sample(*addresses(machine)[:2], capability=75)).value is None
    switch = Device("nvswitch-0", DeviceKind.SWITCH, "s")
    ends = [Link(f"gpu-{k}", "nvswitch-0", "nvlink", (450 - 150 * k) * 1e9, None, "NCCL") for k in (0, 1)]
    switched_links = replace(machine, devices=(*machine.devices, switch), links=(*machine.links, *ends))
    assert peer_limit()(switched_links, S, pair).value == 300e9, "the end with less"
