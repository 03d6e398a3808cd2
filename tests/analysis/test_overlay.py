"""Measured rates laid over a machine: the best of each, at the machine or at its NUMA node, each with its source."""

from __future__ import annotations

import pytest
from analysis.test_rules_expectation import result
from made_up import made_up_machine
from report.page_samples import figure as sample_figure

from seatrial.analysis.overlay import with_measured
from seatrial.model.benchmark import Better
from seatrial.model.fact import FactKind
from seatrial.model.figure_result import FigureResult
from seatrial.model.machine import Device, DeviceKind, Machine
from seatrial.model.units import Unit
from seatrial.report.machine_text import machine_text

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
