"""Devices side by side, figures over the number of devices, and rooflines of devices."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from analysis.made_up_copies import MiB, Seen, figure, noted, result, transfer

from seatrial.analysis.scaling import scaling
from seatrial.model.machine.limit import Basis, Limit
from seatrial.model.machine.machine import Device, DeviceKind, Machine
from seatrial.model.results.figure_result import ExperimentResult
from seatrial.model.study.result import Trial
from seatrial.report.charts.devices import devices_side_by_side
from seatrial.report.charts.roofline import roofline_charts
from seatrial.report.charts.roofline_devices import device_rooflines
from seatrial.report.charts.sweep import over_a_number
from seatrial.report.pages.view import TrialView, trial_view

ADDRESSES = [f"0000:0{k + 1}:00.0" for k in range(4)]
MACHINE = Machine("m", tuple(Device(f"gpu-{k}", DeviceKind.GPU, "GPU", pci=a) for k, a in enumerate(ADDRESSES)))


def view_of(*results: ExperimentResult, seen: Seen | None = None) -> TrialView:
    return trial_view(Trial(MACHINE, results, (), (), {}, seen=seen or {}), 1, None)


def embarrassing(devices: int, rate: float = 4e12, loss: float = 0.0) -> ExperimentResult:
    """gpu.reduction in mode EP: figures of each device, and of all together."""
    if devices == 1:
        return result([figure("bandwidth", rate)], "gpu.reduction", mode="EP", devices=1)
    whole = figure("bandwidth_all", devices * rate * (1 - loss))
    each = [figure("bandwidth", rate * (1 - loss), device=k) for k in range(devices)]
    return result([*each, whole], "gpu.reduction", mode="EP", devices=devices)


def test_each_device_has_a_row_under_the_name_that_the_machine_gives_it() -> None:
    copies, seen = transfer(ADDRESSES[::-1], lambda k: 12e9 * (0.5 if k == 1 else 1), lambda k: 6e9)
    view = view_of(copies, seen=seen)
    (chart,) = devices_side_by_side(view, view.benchmarks[0])
    assert "h2d at size 64\N{NO-BREAK SPACE}MiB: 6.0 to 12.0 GB/s" in chart.caption
    assert "Device 1 (gpu-2) deviates from the median over devices: h2d 50 %, d2h 50 % of it." in chart.caption
    assert "hollow: all at once. Sum of all at once over one each: h2d 57 %, d2h 57 %" in chart.caption
    rows = [[cell.text for cell in row] for row in chart.table.rows]
    assert len(rows) == 4 * 4 and rows[1][:3] == ["1", "gpu-2, GPU", "h2d (size 64\N{NO-BREAK SPACE}MiB)"]
    assert rows[1][3] == "6.000 GB/s" and rows[1][5] == "50 %"
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", chart.svg.text)
    assert [text for text in texts if text.startswith("device")] == [f"device {k} (gpu-{3 - k})" for k in range(4)]


def test_noise_makes_no_device_deviate() -> None:
    copies, seen = transfer(ADDRESSES, lambda k: 12e9 * (0.85 if k == 1 else 1), lambda k: 12e9, width=0.4)
    view = view_of(copies, seen=seen)
    (chart,) = devices_side_by_side(view, view.benchmarks[0])
    assert "apart" not in chart.caption


def test_one_device_has_no_chart_and_of_several_runs_the_one_with_most_devices_is_drawn() -> None:
    view = view_of(embarrassing(1), embarrassing(2), embarrassing(4))
    (chart,) = devices_side_by_side(view, view.benchmarks[0])
    assert "devices 4" in chart.title and len(chart.table.rows) == 4
    alone = view_of(embarrassing(1))
    assert list(devices_side_by_side(alone, alone.benchmarks[0])) == []


def test_a_figure_over_devices_is_the_one_of_all_devices_together() -> None:
    view = view_of(embarrassing(1), embarrassing(2, loss=0.02), embarrassing(4, loss=0.1))
    (chart,) = over_a_number(view, view.benchmarks[0])
    assert chart.title == "gpu.reduction over devices"
    assert [row[1].text for row in chart.table.rows] == ["1", "2", "4"]
    assert "The thin line is ideal scaling from 1 device." in chart.caption
    assert "bandwidth_all at 4 devices: 14.4 TB/s, 90 % of ideal" in chart.caption


def test_scaling_along_devices_begins_with_one() -> None:
    runs = [embarrassing(n, loss=0.01 * (n - 1)) for n in (1, 2, 4)]
    shared = [result([figure("bandwidth", 3e12 * n)], "gpu.reduction", mode="TP", devices=n) for n in (1, 2, 4)]
    both = scaling([*runs, *shared], "weak", "devices", {})
    assert {(found.figure, found.parameters["mode"]) for found in both} == {
        ("bandwidth_all", "EP"),
        ("bandwidth", "TP"),
    }
    embarrassed = next(found for found in both if found.figure == "bandwidth_all")
    assert [point.workers for point in embarrassed.points] == [1, 2, 4]
    assert [point.efficiency for point in embarrassed.points] == pytest.approx([1, 0.99, 0.97])


def test_sizes_are_drawn_for_one_device_and_in_families() -> None:
    copies, seen = transfer(ADDRESSES, lambda k: 12e9, lambda k: 6e9, ways=("h2d", "d2h", "both"))
    more = [
        figure(f"{way}{end}", 1e9, size_B=4 * MiB, **({} if end == "_all" else {"device": k}))
        for way in ("h2d", "d2h", "both")
        for end in ("", "_together", "_all")
        for k in (range(1) if end == "_all" else range(4))
    ]
    grown = result([*copies.figures, *more], "gpu.transfer", devices=4, host="pinned")
    view = view_of(grown, seen={**seen, **noted(grown, ADDRESSES)})
    charts = list(over_a_number(view, view.benchmarks[0]))
    assert [chart.title for chart in charts] == [f"gpu.transfer over size ({way})" for way in ("h2d", "d2h", "both")]
    names = {row[0].text for row in charts[0].table.rows}
    assert {name.split(" ")[0] for name in names} == {"h2d", "h2d_together", "h2d_all"}
    assert "device 0 is shown" in charts[0].caption


def test_device_numbers_are_not_an_axis() -> None:
    each = [result([figure("rate", 1e9 + k)], "gpu.reduction", mode="S", device=k, devices=1) for k in range(4)]
    view = view_of(*each)
    assert list(over_a_number(view, view.benchmarks[0])) == []


def single(benchmark: str, *figures: object, **parameters: object) -> ExperimentResult:
    return result(figures, benchmark, mode="S", devices=1, **parameters)


PEAK = single("gpu.max-flops", figure("fma", 60e12, unit="flop/s"), precision="fp32")
READ = single(
    "gpu.device-memory", figure("read", 4e12), figure("write", 4.2e12), figure("local_read", 9e13), size="large"
)


def test_the_roofline_of_a_device() -> None:
    product = single(
        "gpu.spmv",
        figure("rate", 0.5e12, unit="flop/s", format="ellpackr"),
        figure("bandwidth", 3e12, format="ellpackr"),
        figure("rate", 0.2e12, unit="flop/s", format="csr-scalar"),
        figure("bandwidth", 1.2e12, format="csr-scalar"),
        precision="fp32",
    )
    ((device, made),) = device_rooflines(view_of(PEAK, READ, product))
    assert device == "device 0 (cuda)"
    assert [(roof.name, roof.value, roof.is_memory) for roof in made.roofs] == [
        ("memory", 4.2e12, True), ("fp32 FMA", 60e12, False),
    ]  # fmt: skip
    (point,) = made.points
    assert (point.name, point.rate) == ("spmv fp32", 0.5e12) and point.intensity == pytest.approx(1 / 6)
    assert [ridge.intensity for ridge in made.ridges] == [pytest.approx(60 / 4.2)]
    (chart,) = roofline_charts(view_of(PEAK, READ, product))
    assert chart.title == "Roofline of device 0 (cuda)" and "spmv fp32" in chart.svg.text


def test_small_sizes_and_link_traffic_make_no_roof_and_no_point() -> None:
    cached = single("gpu.reduction", figure("bandwidth", 9e12), size="1")
    over_the_link = single(
        "gpu.triad", figure("rate", 1e10, unit="flop/s"), figure("bandwidth", 6e10), precision="fp32"
    )
    ((_, made),) = device_rooflines(view_of(PEAK, READ, cached, over_the_link))
    assert made.roofs[0].value == 4.2e12 and made.points == ()


def test_a_limit_of_the_memory_is_a_dashed_roof() -> None:
    limit = Limit(4.9e12, "B/s", "2 x clock x width", Basis.PHYSICAL)
    known = single("gpu.reduction", replace(figure("bandwidth", 4e12), limit=limit))
    ((_, made),) = device_rooflines(view_of(PEAK, known))
    assert [(roof.value, roof.basis) for roof in made.roofs if roof.is_memory] == [
        (4e12, "measured"),
        (4.9e12, "limit"),
    ]


def test_a_device_needs_both_roofs_and_to_be_alone() -> None:
    assert list(device_rooflines(view_of(PEAK))) == [] == list(device_rooflines(view_of(READ)))
    assert list(device_rooflines(view_of(PEAK, embarrassing(4)))) == []
    six = [
        result(made.figures, made.experiment.benchmark, **{**made.experiment.parameters, "device": k})
        for k in range(6)
        for made in (PEAK, READ)
    ]
    assert len(list(device_rooflines(view_of(*six)))) == 4
