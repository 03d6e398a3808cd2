"""Figures over a number: which figures make a line, and the ideal and limit lines."""

from __future__ import annotations

import re
from dataclasses import replace

from report.page_samples import GB, experiment, figure
from report.page_samples_node import latency, thread_scaling

from seatrial.model.machine.limit import Limit, dram_bandwidth
from seatrial.model.machine.machine import Machine
from seatrial.model.study.result import Trial
from seatrial.report.charts.lines import lines_over
from seatrial.report.charts.sweep import over_a_number
from seatrial.report.pages.view import trial_view


def view_of(*results):
    return trial_view(Trial(Machine("m"), results, (), (), {}), 1, None)


def scaling(rates: dict[int, float], limit: Limit | None = None, **others):
    return [
        experiment(
            "some.rate",
            "?",
            {"threads": threads, **{name: value(threads) for name, value in others.items()}},
            [figure("rate", rate * GB, limit, spread=0.0)],
        )
        for threads, rate in rates.items()
    ]


def test_a_setting_that_depends_on_the_threads_does_not_split_the_line():
    view = view_of(*scaling({1: 10, 2: 20, 4: 36}, array_B=lambda threads: threads << 20))
    (chart,) = over_a_number(view, view.benchmarks[0])
    assert chart.title == "some.rate over threads"
    assert [row[0].text for row in chart.table.rows] == ["rate"] * 3
    assert "array grows with threads, from 1 MiB to 4 MiB" in chart.caption
    (line,) = lines_over(view.benchmarks[0].measured, "threads")
    assert [x for x, _ in line.points] == [1.0, 2.0, 4.0]


def test_a_figure_whose_repeats_depend_on_each_other_does_not_need_more_of_them():
    results = scaling({1: 10, 2: 20, 4: 36})
    dependent = [replace(one, figures=[replace(each, ci95=None) for each in one.figures]) for one in results]
    view = view_of(*dependent)
    (chart,) = over_a_number(view, view.benchmarks[0])
    assert {row[3].text for row in chart.table.rows} == {"none: repeats depend on each other"}


def test_a_setting_that_differs_at_one_number_of_threads_splits_the_line():
    results = scaling({1: 10, 2: 20, 4: 36}, size_B=lambda threads: 4) + scaling(
        {1: 12, 2: 24, 4: 40}, size_B=lambda threads: 8
    )
    names = [line.name for line in lines_over(view_of(*results).benchmarks[0].measured, "threads")]
    assert names == ["rate · size 4\N{NO-BREAK SPACE}B", "rate · size 8\N{NO-BREAK SPACE}B"]


def test_scaling_is_compared_with_its_first_point_and_the_limit():
    view = view_of(*scaling({1: 10, 2: 20, 4: 30}, dram_bandwidth(2, 4800)))
    (chart,) = over_a_number(view, view.benchmarks[0])
    assert "rate at 4 threads: 30.0 GB/s, 75 % of ideal" in chart.caption
    assert "The horizontal line is the limit, 76.8 GB/s" in chart.caption


def test_different_limits_are_not_drawn():
    results = [
        result
        for threads, limit in ((1, 2), (2, 4), (4, 8))
        for result in scaling({threads: 10.0 * threads}, dram_bandwidth(limit, 4800))
    ]
    view = view_of(*results)
    (chart,) = over_a_number(view, view.benchmarks[0])
    assert "limit" not in chart.caption and "100 % of ideal" in chart.caption


def test_more_lines_than_colours_become_several_charts_with_all_of_them():
    view = view_of(*thread_scaling(dram_bandwidth(24, 4800)))
    charts = list(over_a_number(view, view.benchmarks[0]))
    assert [chart.title for chart in charts] == [
        "memory.stream over threads (nontemporal false)",
        "memory.stream over threads (nontemporal true)",
    ]
    assert [len(chart.table.rows) for chart in charts] == [32, 32]
    for chart in charts:
        ticks = re.findall(r">(\d+)</text>", chart.svg.text)
        assert {"1", "2", "4", "8", "16", "32", "64", "128"} <= set(ticks)


def test_figures_with_another_panel_have_no_line():
    view = view_of(latency(True))
    assert list(over_a_number(view, view.benchmarks[0])) == []
