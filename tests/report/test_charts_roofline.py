"""The roofline: only measured rates and limits, at the declared arithmetic intensity."""

from __future__ import annotations

import re

import pytest
from report.page_samples import GB, experiment, figure, peak, stream, vm_machine
from report.page_samples_node import gemm, gpu_trial

from seatrial.model.machine.limit import Basis, Limit, dram_bandwidth
from seatrial.model.machine.machine import Machine, NamedLimit
from seatrial.model.study.result import Trial
from seatrial.report.charts.roofline import roofline_charts
from seatrial.report.charts.roofline_devices import roofline
from seatrial.report.pages.page import page
from seatrial.report.pages.view import trial_view


def view_of(*results, machine=None):
    return trial_view(Trial(machine or Machine("m"), results, (), (), {}), 1, None)


def rate(benchmark: str, name: str, value: float, unit, limit=None, **parameters):
    return experiment(benchmark, "?", parameters, [figure(name, value, limit, unit=unit, spread=0.0)])


TRIADS = (
    rate("memory.stream", "triad", 40 * GB, "B/s", threads=2, nontemporal=False),
    rate("memory.stream", "triad", 50 * GB, "B/s", threads=2, nontemporal=True),
    rate("memory.stream", "triad", 30 * GB, "B/s", threads=1, nontemporal=True),
)
PEAKS = (
    rate("cpu.peak", "fma", 200e9, "flop/s", Limit(250e9, "flop/s", "2 cores", Basis.PHYSICAL), precision="fp64"),
    rate("cpu.peak", "fma", 400e9, "flop/s", precision="fp32", cores="all"),
)


def test_roofs_points_and_ridges_have_the_numbers_of_their_figures():
    made = roofline(view_of(*TRIADS, *PEAKS, gemm("fp64", 150e9, 1024, 2), gemm("fp32", 320e9, 2048, 2)))
    assert [(roof.name, roof.basis, roof.value) for roof in made.roofs] == [
        ("triad", "measured", 50 * GB),
        ("fp64 FMA", "measured", 200e9),
        ("fp64 FMA", "limit", 250e9),
        ("fp32 FMA", "measured", 400e9),
    ]
    points = {point.name: point for point in made.points}
    assert points["triad"].intensity == pytest.approx(2 / 24)
    assert points["triad"].rate == pytest.approx(40 * GB / 12)
    assert points["triad, non-temporal"].rate == pytest.approx(50 * GB / 12)
    assert points["DGEMM"].intensity == 2 * 1024**3 / (4 * 1024**2 * 8) == 64
    assert points["SGEMM"].intensity == 2 * 2048**3 / (4 * 2048**2 * 4) == 256
    assert points["DGEMM"].rate == pytest.approx(150e9, rel=0.01)
    assert [ridge.intensity for ridge in made.ridges] == [pytest.approx(4.0), pytest.approx(8.0)]


def test_the_dram_limit_is_a_roof_only_if_it_is_known():
    known = Machine("m", limits=(NamedLimit("dram.bandwidth", dram_bandwidth(12, 4800, "dmidecode")),))
    names = [(roof.name, roof.basis) for roof in roofline(view_of(*TRIADS, *PEAKS, machine=known)).roofs]
    assert ("DRAM", "limit") in names
    assert "DRAM" not in [roof.name for roof in roofline(view_of(*TRIADS, *PEAKS, machine=vm_machine())).roofs]


def test_a_measured_ceiling_is_not_drawn_as_a_hardware_limit():
    ceiling = Limit(500e9, "flop/s", "measured elsewhere", Basis.MEASURED)
    made = roofline(view_of(*TRIADS, rate("cpu.peak", "fma", 200e9, "flop/s", ceiling, precision="fp64")))
    assert [roof.basis for roof in made.roofs] == ["measured", "measured"]


def test_a_roofline_needs_memory_and_arithmetic():
    assert roofline(view_of(*TRIADS)) is None and roofline(view_of(*PEAKS)) is None
    assert "Roofline" not in page([Trial(Machine("m"), TRIADS, (), (), {})])


def test_a_product_of_unknown_size_makes_no_point():
    odd = rate("cpu.gemm", "gemm", 1e11, "flop/s", precision="fp64", n="auto")
    assert {point.name for point in roofline(view_of(*TRIADS, *PEAKS, odd)).points} == {"triad", "triad, non-temporal"}


def test_the_chart_names_every_element_and_its_source():
    (chart,) = roofline_charts(view_of(*TRIADS, *PEAKS, gemm("fp64", 150e9, 1024, 2)))
    svg = chart.svg.text
    for label in (
        "triad, measured: 50.0 GB/s",
        "fp64 FMA: measured 200 GFLOP/s, limit 250 GFLOP/s",
        "fp32 FMA: measured 400 GFLOP/s",
        "ridge fp64: 4.00 flop/B",
        "ridge fp32: 8.00 flop/B",
        "DGEMM 150 GFLOP/s",
    ):
        assert f">{label}</text>" in svg, label
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in chart.table.rows}
    assert rows["roof: triad"][3] == "best triad of memory.stream: threads=2 nontemporal=true"
    assert rows["point: triad"][3].endswith("Triad: 2 flop for 24 B, as STREAM counts.")
    assert "GEMM: 2 n^3 flop for 4 n^2 numbers, the least that must move." in chart.caption
    assert "DGEMM 150 GFLOP/s at 64.0 flop/B, 75 %" in chart.caption
    assert re.search(
        r'role="img".*<title[^>]*>Roofline</title><desc[^>]*>Memory limits kernels below the ridge \(4\.00', svg, re.S
    )


def test_the_roofs_are_drawn_at_their_values():
    """The memory roof rises by its bandwidth: a decade of intensity is a decade of rate."""
    view = trial_view(gpu_trial(), 1, None)
    (chart,) = roofline_charts(view)
    svg = chart.svg.text
    lines = [
        [tuple(map(float, point)) for point in re.findall(r"[ML]([\d.]+),([\d.]+)", path)]
        for path in re.findall(r'<path d="(M[\d.,L]+)" stroke="var\(--series-3\)"', svg)
    ]
    assert len(lines) == 2
    slopes = {round((a[1] - b[1]) / (b[0] - a[0]), 3) for a, b in lines}
    assert len(slopes) == 1
    measured, limit = (line[0][1] for line in lines)
    assert limit < measured  # higher on the page


def test_recorded_trials_have_a_roofline():
    assert len(list(roofline_charts(view_of(*stream(None, (40 * GB, 50 * GB), 2), *peak(3.7e9, 2))))) == 1
