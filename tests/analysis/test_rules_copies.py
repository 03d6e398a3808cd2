"""What copies between host and GPUs tell of the links: shared uplinks, narrow and slow links, and what is unknown."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.made_up_copies import Seen, p2p, transfer
from analysis.made_up_nodes import GEN3_X16, bridge, facts, gpu, link, switched
from analysis.test_rules_samples import machine_of

from seatrial.analysis.rules import findings
from seatrial.analysis.rules.finding import Case
from seatrial.model.machine.fact import Finding, Severity
from seatrial.model.machine.machine import Device, DeviceKind, Link, Machine
from seatrial.model.results.figure_result import ExperimentResult
from seatrial.model.spelling import show

ALONE = 12.4e9
EIGHT = switched(8, GEN3_X16, switches=2)


def addresses(machine: Machine) -> list[str]:
    return [device.pci for device in machine.of_kind(DeviceKind.GPU) if device.pci]


def case(machine: Machine) -> Case:
    of, seen = transfer(addresses(EIGHT), lambda k: ALONE, lambda k: 3.2e9)
    return Case(machine, (of,), seen)


BARE = Machine("m", tuple(replace(device, parent=None) for device in EIGHT.of_kind(DeviceKind.GPU)))
CASES = {"copies-share-uplink": case(EIGHT), "copies-slow-each-other": case(BARE)}


def found(machine: Machine, measured: tuple[ExperimentResult, Seen], rule: str) -> list[Finding]:
    of, seen = measured
    return [finding for finding in findings(machine, [of], seen) if finding.rule == rule]


def rules(machine: Machine, measured: tuple[ExperimentResult, Seen]) -> set[str]:
    of, seen = measured
    return {finding.rule for finding in findings(machine, [of], seen)}


def test_gpus_behind_one_uplink_are_explained_by_it() -> None:
    measured = transfer(addresses(EIGHT), lambda k: ALONE, lambda k: 3.2e9)
    (finding,) = found(EIGHT, measured, "copies-share-uplink")
    assert finding.observation == (
        "gpu-0 to gpu-3 reach 12.8 GB/s in total when they copy at the same time (host to device), 26 % of the "
        "49.6 GB/s that they reach one at a time. Likewise gpu-4 to gpu-7 (26 %, over "
        "pci-0001:00:01.0 - pci-0001:01:00.0)."
    )
    assert "4 GPUs share the uplink pci-0000:00:01.0 - pci-0000:01:00.0, which can carry 15.8 GB/s" in finding.diagnosis
    assert "fill 81 % of it: the uplink is the bottleneck" in finding.diagnosis
    assert finding.severity is Severity.WARNING and finding.loss == pytest.approx(1 - 3.2 / 12.4)
    assert "size_B=67108864" in finding.evidence.replace("size_B=64MiB", "size_B=67108864")
    assert "device to host 26 %" in finding.evidence and len(finding.devices) == 8
    assert "gpus-share-uplink" not in rules(EIGHT, measured), "a measured loss replaces an estimated one"


def test_together_as_fast_as_alone_is_no_finding() -> None:
    wide = switched(4, 4 * GEN3_X16)
    for at_once in (ALONE, 0.9 * ALONE):
        measured = transfer(addresses(wide), lambda k: ALONE, lambda k, rate=at_once: rate)
        assert rules(wide, measured) == set()


def test_a_loss_that_the_repeats_do_not_settle_is_no_finding() -> None:
    for width, expected in ((0.05, 1), (0.6, 0)):
        measured = transfer(addresses(EIGHT), lambda k: ALONE, lambda k: 0.7 * ALONE, width=width)
        assert len(found(EIGHT, measured, "copies-share-uplink")) == expected, width


def test_an_uplink_that_is_not_full_does_not_explain_it_all() -> None:
    (finding,) = found(EIGHT, transfer(addresses(EIGHT), lambda k: ALONE, lambda k: 1e9), "copies-share-uplink")
    assert "fill only 25 % of it, so something else" in finding.diagnosis


def test_without_the_tree_the_bottleneck_is_unknown() -> None:
    (finding,) = found(BARE, transfer(addresses(EIGHT), lambda k: ALONE, lambda k: 3.2e9), "copies-slow-each-other")
    assert "The bottleneck is unknown: no source reports the PCIe tree" in finding.diagnosis
    assert "gpu-0 to gpu-7 reach 25.6 GB/s" in finding.observation and "lspci -vv" in finding.remedy


def test_with_a_tree_that_does_not_explain_it_the_bottleneck_is_further_up() -> None:
    wide = switched(4, 8 * GEN3_X16)
    (finding,) = found(wide, transfer(addresses(wide), lambda k: ALONE, lambda k: 3.2e9), "copies-slow-each-other")
    assert "further up" in finding.diagnosis and "lspci" not in finding.remedy
    assert "seatrial run gpu.transfer" in finding.remedy


def test_devices_that_are_not_in_the_graph_give_no_finding() -> None:
    measured = transfer(["0000:f1:00.0", "0000:f2:00.0"], lambda k: ALONE, lambda k: 3e9)
    assert not {"copies-slow-each-other", "copies-share-uplink"} & rules(EIGHT, measured)
    processors = transfer(["", ""], lambda k: ALONE, lambda k: 3e9)
    assert not {"copies-slow-each-other", "copies-share-uplink"} & rules(EIGHT, processors)


def one_gpu(uplink: float = 4 * GEN3_X16, *, trained: float = 2 * GEN3_X16, **told: object) -> Machine:
    """A GPU of generation 4 with 16 lanes below a root port."""
    full = {"pcie_lanes": 16, "pcie_max_lanes": 16, "pcie_GTps": 16.0, "pcie_max_GTps": 16.0}
    host, root = bridge("0000:00"), bridge("0000:00:01.0", "pci-0000:00", **full)
    card = Device("gpu-0", DeviceKind.GPU, "GPU", root.id, pci="0000:01:00.0", facts=facts(**{**full, **told}))
    links = (link(host, root, uplink, uplink), link(root, card, 2 * GEN3_X16, trained))
    return Machine("m", (host, root, card), links=links)


def copied(rate: float) -> tuple[ExperimentResult, Seen]:
    return transfer(["0000:01:00.0"], lambda k: rate, lambda k: rate)


def test_a_copy_far_below_its_link_says_which_link_it_would_suit() -> None:
    (finding,) = found(one_gpu(), copied(12.5e9), "link-measured-low")
    assert "carried 12.5 GB/s, 40 % of the 31.5 GB/s" in finding.observation
    assert "the rate suits 8 lanes at 16 GT/s or 16 lanes at 8 GT/s" in finding.diagnosis
    assert found(one_gpu(), copied(26e9), "link-measured-low") == []


def test_a_copy_is_held_against_the_narrowest_link_on_its_way() -> None:
    assert found(one_gpu(uplink=GEN3_X16), copied(13e9), "link-measured-low") == []


def test_a_link_that_slept_when_it_was_read_is_no_defect_and_one_that_stays_narrow_is() -> None:
    asleep = one_gpu(trained=GEN3_X16 / 4, pcie_GTps=2.5)
    assert rules(asleep, copied(26e9)) == set()
    narrow = one_gpu(trained=GEN3_X16, pcie_lanes=8)
    (finding,) = found(narrow, copied(13e9), "link-below-capability")
    assert "8 lanes wide" in finding.observation and "at most 13.0 GB/s was measured" in finding.observation


def test_more_than_a_link_can_carry_is_wrong_where_there_is_no_other_way() -> None:
    for machine, severity in (
        (replace(one_gpu(), facts=facts(architecture="x86_64")), Severity.ERROR),
        (replace(one_gpu(), facts=facts(architecture="aarch64")), Severity.INFO),
        (replace(one_gpu(), facts=facts(architecture="x86_64", hypervisor="kvm")), Severity.INFO),
    ):
        (finding,) = found(machine, copied(50e9), "link-measured-above-capability")
        assert finding.severity is severity, show(50e9, "B/s")


def test_gpus_of_a_matrix_are_told_by_the_order_of_their_addresses() -> None:
    given = Machine("m", (gpu("GPU0"), gpu("GPU1")))
    measured = transfer(["0000:41:00.0", "0000:01:00.0"], lambda k: ALONE, lambda k: (1 + k) * 1e9)
    (finding,) = found(given, measured, "copies-slow-each-other")
    assert "GPU1: 0.99 to 1.00 GB/s at once" in finding.evidence


def test_direct_links_between_gpus_are_held_against_what_they_are_capable_of() -> None:
    pair = tuple(Device(f"gpu-{k}", DeviceKind.GPU, "GPU", pci=f"0000:0{k + 1}:00.0") for k in (0, 1))
    machine = Machine("m", pair, links=(Link("gpu-0", "gpu-1", "nvlink", 300e9, 300e9, "NCCL", count=12),))
    low, sound = (p2p(["0000:01:00.0", "0000:02:00.0"], lambda a, b, rate=rate: rate) for rate in (150e9, 265e9))
    (finding,) = found(machine, low, "link-measured-low")
    assert "nvidia-smi nvlink -s" in finding.remedy and "pinned" not in finding.diagnosis
    assert rules(machine, sound) == set()


def test_links_to_switches_are_of_the_gpu() -> None:
    pair = tuple(Device(f"gpu-{k}", DeviceKind.GPU, "GPU", pci=f"0000:0{k + 1}:00.0") for k in (0, 1))
    switch = Device("nvswitch-0", DeviceKind.SWITCH, "s")
    links = tuple(Link(card.id, switch.id, "nvlink", 450e9, 450e9, "NCCL", count=18) for card in pair)
    measured = p2p(["0000:01:00.0", "0000:02:00.0"], lambda a, b: 200e9)
    (finding,) = found(Machine("m", (*pair, switch), links=links), measured, "link-measured-low")
    assert finding.devices == ("gpu-0", "gpu-1")


def test_an_uplink_that_carried_little_may_have_been_idle_and_a_full_one_was_not() -> None:
    asleep = tuple(
        replace(each, trained_Bps=GEN3_X16 / 2) if each.b.endswith(":01:00.0") else each for each in EIGHT.links
    )
    machine = replace(EIGHT, links=asleep)
    for rate, severities in ((0.9e9, {Severity.INFO}), (1.7e9, {Severity.WARNING})):
        measured = transfer(addresses(machine), lambda k, rate=rate: rate, lambda k, rate=rate: rate)
        assert {f.severity for f in found(machine, measured, "link-below-capability")} == severities, rate


def test_sixteen_gpus_of_a_real_machine_share_four_uplinks() -> None:
    machine = machine_of("hwloc_nvidiaDGX2.xml.txt")
    measured = transfer(addresses(machine), lambda k: 12.2e9, lambda k: 3.2e9)
    (finding,) = found(machine, measured, "copies-share-uplink")
    assert finding.observation.startswith("gpu-0 to gpu-3 reach 12.8 GB/s") and len(finding.devices) == 16
    for others in ("gpu-4 to gpu-7", "gpu-8 to gpu-11", "gpu-12 to gpu-15"):
        assert others in finding.observation
    assert "4 GPUs share the uplink" in finding.diagnosis and "fill 81 % of it" in finding.diagnosis


def test_the_matrix_of_a_real_machine_does_not_show_what_its_gpus_share() -> None:
    machine = machine_of("smi-topo_a100_hgx_10nic_legend_litgpt.txt")
    places = [f"0000:{0x10 + k:02x}:00.0" for k in range(8)]
    (finding,) = found(machine, transfer(places, lambda k: 24e9, lambda k: 12e9), "copies-slow-each-other")
    assert "The bottleneck is unknown" in finding.diagnosis and finding.devices[0] == "GPU0"
