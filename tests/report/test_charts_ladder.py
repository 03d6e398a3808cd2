"""The latency ladder: its levels, the caches, the lines."""

from __future__ import annotations

import re

from report.page_samples import cpu_tree, experiment, facts, figure
from report.page_samples_node import GiB, latency

from seatrial.model.benchmark.benchmark import Better
from seatrial.model.machine.machine import Device, DeviceKind, Machine
from seatrial.model.study.result import Trial
from seatrial.report.charts.ladder import data_caches, ladders
from seatrial.report.pages.page import page
from seatrial.report.pages.view import trial_view

KiB, MiB = 1 << 10, 1 << 20


def machine() -> Machine:
    return Machine("m", tuple(cpu_tree(1, 4, 32 * MiB, 4, 1, 8 * GiB, "CPU")), allowed_cpus=(0, 1, 2, 3))


def view_of(*results, of=None, seen=None):
    return trial_view(Trial(of or machine(), results, (), (), {}, seen=seen or {}), 1, None)


def chart_of(view):
    (chart,) = ladders(view, view.benchmarks[0])
    return chart


def times(sizes_and_ns: dict[int, float], **parameters):
    made = [
        figure("load", ns * 1e-9, None, unit="s", better=Better.LOWER, point={"working_set_B": size}, spread=0.0)
        for size, ns in sizes_and_ns.items()
    ]
    return experiment("some.latency", "?", parameters, made)


STEPS = {4 * KiB: 1.0, 16 * KiB: 1.0, 512 * KiB: 4.0, 2 * MiB: 9.0, 16 * MiB: 12.5, 256 * MiB: 98.0}


def test_levels_and_caches_are_named_with_their_numbers():
    chart = chart_of(view_of(times(STEPS)))
    assert chart.caption == "L1 1.00 ns, L2 4.00 ns, L3 12.5 ns, DRAM 98.0 ns."
    for label in ("L1 1.00 ns", "L2 4.00 ns", "L3 12.5 ns", "DRAM 98.0 ns", "L1 32 KiB", "L2 1 MiB", "L3 32 MiB"):
        assert f">{label}</text>" in chart.svg.text, label
    assert {row[4].text: row[1].text for row in chart.table.rows if row[4].text} == {
        "L1": "16 KiB",
        "L2": "512 KiB",
        "L3": "16 MiB",
        "DRAM": "256 MiB",
    }
    assert 'role="img"' in chart.svg.text and "DRAM 98.0 ns" in re.search(r"<desc.*?</desc>", chart.svg.text)[0]


def test_with_and_without_huge_pages_are_two_lines_labelled_where_they_differ():
    chart = chart_of(view_of(latency(False), latency(True)))
    assert "load · huge_pages false: L1 " in chart.caption and "load · huge_pages true: L1 " in chart.caption
    svg = chart.svg.text
    # Each label is drawn twice: a rim of paper, then the text. Caches answer alike, memory does not.
    assert len(re.findall(r">L1 1\.\d+ ns</text>", svg)) == 2 and len(re.findall(r">DRAM \d+ ns</text>", svg)) == 4
    assert ">load · huge_pages true</text>" in svg


def test_the_caches_are_those_of_the_measured_cpu():
    """Big and little cores: what the repeat saw of its thread decides."""
    little = [
        Device("l2-9", DeviceKind.CACHE, "l2-9", "numa-0", 0, facts=facts(level=2, size=2 * MiB, type="unified")),
        Device("l1d-9", DeviceKind.CACHE, "l1d-9", "l2-9", 0, facts=facts(level=1, size=64 * KiB, type="data")),
        Device("core-9", DeviceKind.CORE, "core-9", "l1d-9", 0),
        Device("pu-9", DeviceKind.PU, "pu-9", "core-9", 0, facts=facts(os_index=9)),
    ]
    both = Machine("m", (*machine().devices, *little), allowed_cpus=(0, 9))
    result = times(STEPS)
    seen = {(result.id, repeat.repeat): {"affinity": [[9]]} for repeat in result.figures[0].repeats}
    svg = chart_of(view_of(result, of=both, seen=seen)).svg.text
    assert ">L1 64 KiB</text>" in svg and ">L2 2 MiB</text>" in svg and ">L3 " not in svg
    assert [(cache.name, cache.size_B) for cache in data_caches(both, 0)] == [
        ("L1", 32 * KiB),
        ("L2", MiB),
        ("L3", 32 * MiB),
    ]


def test_without_caches_nothing_is_guessed():
    chart = chart_of(view_of(times(STEPS), of=Machine("m")))
    assert "from 1.00 ns at 4 KiB to 98.0 ns at 256 MiB" in chart.caption and "Cache sizes are unknown" in chart.caption
    assert "DRAM" not in chart.svg.text


def test_two_working_sets_or_rates_make_no_ladder():
    view = view_of(times({4 * KiB: 1.0, 64 * MiB: 90.0}))
    assert list(ladders(view, view.benchmarks[0])) == []
    rates = [figure("rate", 1e9, None, point={"working_set_B": size}) for size in STEPS]
    html = page([Trial(machine(), (experiment("some.rate", "?", {}, rates),), (), (), {})])
    assert "Latency of caches" not in html and "some.rate over working_set" in html
