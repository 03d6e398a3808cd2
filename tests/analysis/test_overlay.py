"""Measured rates laid over a machine: the best of each, at the machine or at its NUMA node, each with its source."""

from __future__ import annotations

import pytest
from analysis import made_up_copies
from analysis.made_up_copies import Seen, noted, p2p, transfer
from analysis.made_up_nodes import GEN3_X16, switched
from analysis.test_rules_expectation import result
from made_up import made_up_machine
from report.page_samples import figure as sample_figure

from seatrial.analysis.device_copies import peer_rates, with_measured
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.machine.fact import FactKind
from seatrial.model.machine.links import faces_down
from seatrial.model.machine.machine import Device, DeviceKind, Link, Machine
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.units import Unit
from seatrial.report.text.machine import machine_text

MACHINE = made_up_machine(cores=2)


def figure(name: str, unit: Unit, value: float, better: Better = Better.HIGHER) -> FigureResult:
    return sample_figure(name, value, None, unit=unit, better=better, spread=0.0)


def test_the_best_of_several_is_shown_with_its_experiment() -> None:
    slow = result(figure("triad", "B/s", 10e9), benchmark="memory.stream", threads=1, node="auto")
    fast = result(figure("triad", "B/s", 30e9), benchmark="memory.stream", threads=2, node="auto")
    fact = with_measured(MACHINE, [slow, fast, slow]).facts.best("memory_bandwidth_measured")
    assert fact is not None and fact.kind is FactKind.MEASURED
    assert (fact.value, fact.unit) == (30e9, "B/s")
    assert "threads=2" in fact.source


def test_a_lower_time_is_the_better_one() -> None:
    times = [result(figure("one_way", "s", t, better=Better.LOWER), benchmark="cpu.linebounce") for t in (9e-8, 5e-8)]
    fact = with_measured(MACHINE, times).facts.best("line_bounce_measured")
    assert fact is not None and fact.value == 5e-8


def test_precisions_are_kept_apart() -> None:
    results = [
        result(figure("fma", "flop/s", 1e11), benchmark="cpu.peak", precision="fp64"),
        result(figure("fma", "flop/s", 2e11), benchmark="cpu.peak", precision="fp32"),
    ]
    facts = with_measured(MACHINE, results).facts
    assert (facts.number("fp64_rate_measured"), facts.number("fp32_rate_measured")) == (1e11, 2e11)


def test_what_one_node_reached_stands_at_that_node() -> None:
    machine = Machine("two nodes", tuple(Device(f"numa-{n}", DeviceKind.NUMA, f"numa-{n}", numa=n) for n in (0, 1)))
    measured = with_measured(
        machine, [result(figure("triad", "B/s", 20e9), benchmark="memory.stream", node=1, memory="local")]
    )
    assert "memory_bandwidth_measured" not in measured.facts
    other, node = measured.devices
    assert "memory_bandwidth_measured" not in other.facts
    assert node.facts.number("memory_bandwidth_measured") == 20e9


def test_the_machine_itself_stays_as_it_is() -> None:
    before = dict(MACHINE.facts)
    with_measured(MACHINE, [result(figure("triad", "B/s", 1e9), benchmark="memory.stream")])
    assert dict(MACHINE.facts) == before


@pytest.mark.parametrize("benchmark", ["memory.stream", "another"])
def test_figures_of_other_names_are_not_taken(benchmark: str) -> None:
    assert dict(with_measured(MACHINE, [result(figure("copy", "B/s", 1e9), benchmark=benchmark)]).facts) == dict(
        MACHINE.facts
    )


def test_text_shows_them() -> None:
    results = [result(figure("triad", "B/s", 30e9), benchmark="memory.stream", threads=2)]
    text = machine_text(with_measured(MACHINE, results))
    assert "Measured" in text and "30.0 GB/s" in text and "memory.stream triad" in text
    assert "Measured" not in machine_text(MACHINE)


def gpu_addresses(machine: Machine) -> list[str]:
    return [device.pci for device in machine.of_kind(DeviceKind.GPU) if device.pci]


def measured_links(machine: Machine, made: tuple[ExperimentResult, Seen]) -> dict[str, float | None]:
    of, seen = made
    return {link.b: link.measured_Bps for link in with_measured(machine, [of], seen).links}


def test_copies_stand_at_the_links_that_they_went_over() -> None:
    machine = switched(4, GEN3_X16)
    addresses = gpu_addresses(machine)
    rates = measured_links(machine, transfer(addresses, lambda k: 12e9 + k * 1e8, lambda k: 3.5e9))
    assert [rates[f"gpu-{k}"] for k in range(4)] == [12e9, 12.1e9, 12.2e9, 12.3e9]
    assert rates["pci-0000:01:00.0"] == pytest.approx(14e9), "the uplink carries the sum of all at once"
    ports = {device.id for device in machine.devices if faces_down(machine, device)}
    assert not any(rates[port] for port in ports), "the link of a port stands at what hangs below it"
    assert all(link.measured_Bps is None for link in machine.links), "the machine itself stays as it is"


def test_a_device_is_known_by_its_address_and_not_by_its_number() -> None:
    machine = switched(2, GEN3_X16)
    swapped = gpu_addresses(machine)[::-1]
    rates = measured_links(machine, transfer(swapped, lambda k: 12e9 + k * 1e8, lambda k: 6e9))
    assert (rates["gpu-0"], rates["gpu-1"]) == (12.1e9, 12e9)
    long = [f"0000{address}" for address in gpu_addresses(machine)]
    assert measured_links(machine, transfer(long, lambda k: 12e9, lambda k: 6e9))["gpu-0"] == 12e9
    elsewhere = measured_links(machine, transfer(["0000:f1:00.0", ""], lambda k: 12e9, lambda k: 6e9))
    assert set(elsewhere.values()) == {None}


def test_both_directions_at_once_are_no_rate_of_a_link() -> None:
    machine = switched(2, GEN3_X16)
    made = transfer(gpu_addresses(machine), lambda k: 22e9, lambda k: 11e9, ways=["both"])
    assert set(measured_links(machine, made).values()) == {None}
    of, seen = made
    gpu = with_measured(machine, [of], seen).device("gpu-0")
    assert gpu is not None and gpu.facts.number("both_ways_at_once_measured") == 22e9


def test_the_best_of_a_gpu_stands_among_its_facts() -> None:
    machine = switched(2, GEN3_X16)
    of, seen = transfer(gpu_addresses(machine), lambda k: 12e9 + k * 1e8, lambda k: 6e9)
    gpu = with_measured(machine, [of], seen).device("gpu-1")
    assert gpu is not None
    fact = gpu.facts.best("host_to_device_measured")
    assert fact is not None and (fact.value, fact.kind) == (12.1e9, FactKind.MEASURED)
    assert fact.source == "gpu.transfer h2d (host=pinned, size_B=64MiB): median of 9 repeats"


def test_bus_speed_of_one_device_and_of_all_at_once() -> None:
    machine = switched(2, GEN3_X16)
    addresses = gpu_addresses(machine)
    alone = made_up_copies.result([made_up_copies.figure("download", 12e9, size_B=64)], "gpu.bus-speed", devices=1)
    at_once = made_up_copies.result(
        [made_up_copies.figure("download", 7e9, size_B=64, device=k) for k in (0, 1)], "gpu.bus-speed", devices=2
    )
    seen = {**noted(alone, addresses), **noted(at_once, addresses)}
    rates = {link.b: link.measured_Bps for link in with_measured(machine, [alone, at_once], seen).links}
    assert (rates["gpu-0"], rates["gpu-1"], rates["pci-0000:01:00.0"]) == (12e9, 7e9, 14e9)


def direct(*links: Link) -> Machine:
    gpus = [Device(f"gpu-{k}", DeviceKind.GPU, "GPU", pci=f"0000:0{k + 1}:00.0") for k in range(3)]
    return Machine("m", (*gpus, Device("nvswitch-0", DeviceKind.SWITCH, "s")), links=links)


def test_copies_between_gpus_stand_at_their_direct_links() -> None:
    machine = direct(
        Link("gpu-0", "gpu-1", "nvlink", 50e9, 50e9, "NCCL", count=2),
        Link("gpu-0", "gpu-2", "nvlink", 25e9, 25e9, "NCCL", count=1),
        Link("gpu-0", "gpu-1", "pcie", 31e9, 31e9, "NCCL"),
    )
    made = p2p(gpu_addresses(machine), lambda a, b: 1e9 * (40 + a - b))
    of, seen = made
    links = with_measured(machine, [of], seen).links
    assert [link.measured_Bps for link in links] == [41e9, 42e9, None], "the better direction; PCIe is not what it took"
    of, seen = p2p(gpu_addresses(machine), lambda a, b: 11e9, is_on=False)
    assert all(link.measured_Bps is None for link in with_measured(machine, [of], seen).links)


def test_links_to_switches_share_what_a_gpu_reached() -> None:
    machine = direct(
        Link("gpu-0", "nvswitch-0", "nvlink", 100e9, 100e9, "NCCL", count=4),
        Link("gpu-0", "nvswitch-0", "nvlink", 50e9, 50e9, "NCCL", count=2),
    )
    of, seen = p2p(gpu_addresses(machine), lambda a, b: 120e9)
    assert [link.measured_Bps for link in with_measured(machine, [of], seen).links] == pytest.approx([80e9, 40e9])
    (rates, latency) = peer_rates(machine, [of], seen)
    assert (rates.figure, latency.figure) == ("bandwidth", "latency")
    assert [device.label for device in rates.devices] == ["gpu-0", "gpu-1", "gpu-2"] and len(rates.values) == 9


def test_a_link_of_its_own_to_the_processor_is_the_way_to_the_host() -> None:
    package, gpu = (
        Device("package-0", DeviceKind.PACKAGE, "CPU"),
        Device("gpu-0", DeviceKind.GPU, "G", pci="0009:01:00.0"),
    )
    links = (
        Link("package-0", "gpu-0", "c2c", 450e9, None, "NCCL", count=10),
        Link("host", "gpu-0", "pcie", 63e9, 63e9, "/sys"),
    )
    of, seen = transfer(["0009:01:00.0"], lambda k: 380e9, lambda k: 380e9)
    measured = with_measured(Machine("m", (package, gpu), links=links), [of], seen)
    assert [link.measured_Bps for link in measured.links] == [380e9, None]


def test_several_functions_at_one_address_are_one_gpu() -> None:
    machine = switched(2, GEN3_X16)
    address = gpu_addresses(machine)[0]
    rates = measured_links(machine, transfer([address, address], lambda k: 12e9, lambda k: 6e9))
    assert rates["gpu-0"] == 12e9 and rates["gpu-1"] is None
