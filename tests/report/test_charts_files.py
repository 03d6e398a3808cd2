"""File I/O rates as heat maps: cells, groups side by side, and results that make no heat map."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from report.page_samples import GB, experiment, figure
from report.page_samples_node import files

from seatrial.model.machine.machine import Machine
from seatrial.model.study.result import Trial
from seatrial.report.charts.io_surface import io_surfaces, surfaces
from seatrial.report.pages.page import page
from seatrial.report.pages.view import trial_view

KiB, MiB = 1 << 10, 1 << 20


def view_of(*results):
    return trial_view(Trial(Machine("m"), results, (), (), {}), 1, None)


def rates(points: dict[tuple[int, int], float], call: str = "read"):
    return [
        figure(call, rate * GB, None, point={"file_B": file, "record_B": record}, spread=0.0)
        for (file, record), rate in points.items()
    ]


SMALL = {(MiB, 4 * KiB): 1.0, (MiB, 64 * KiB): 2.0, (4 * MiB, 4 * KiB): 3.0, (4 * MiB, 64 * KiB): 8.0}


def texts(svg: str, kind: str) -> list[str]:
    return [
        node.text for node in ElementTree.fromstring(svg).iter("text") if (node.get("class") or "").startswith(kind)
    ]


def test_cells_show_their_values_with_records_from_the_bottom_up():
    view = view_of(experiment("some.io", "?", {"direct": False}, rates(SMALL)))
    (chart,) = io_surfaces(view, view.benchmarks[0])
    root = ElementTree.fromstring(chart.svg.text)
    cells = {
        (round(float(node.get("x")) / 58 - 0.5), round((float(node.get("y")) - 4) / 26 - 0.5)): node.text
        for node in root.iter("text")
        if (node.get("class") or "").startswith("on-")
    }
    assert cells == {(0, 0): "2.00", (1, 0): "8.00", (0, 1): "1.00", (1, 1): "3.00"}
    assert [t for t in texts(chart.svg.text, "tick") if "iB" in t] == ["64 KiB", "4 KiB", "1 MiB", "4 MiB"]
    classes = re.findall(r'class="h(\d)"', chart.svg.text[: chart.svg.text.index("<text")])
    assert classes[0] == "1" and classes[-1] == "8"
    assert root.get("role") == "img" and "to 8.00 GB/s (file 4 MiB, record 64 KiB)" in root.find("desc").text


def test_calls_are_side_by_side_and_settings_below_each_other_in_the_order_of_the_results():
    view = view_of(*(files(direct, pattern) for pattern in ("sequential", "random") for direct in (False, True)))
    charts = list(io_surfaces(view, view.benchmarks[0]))
    assert [chart.title for chart in charts] == [
        "io.file (pattern sequential · direct false)",
        "io.file (pattern sequential · direct true)",
        "io.file (pattern random · direct false)",
        "io.file (pattern random · direct true)",
    ]
    assert [texts(chart.svg.text, "heading") for chart in charts] == [["write", "read"]] * 4
    assert all(len(chart.table.rows) == 78 and "not measured" in chart.svg.text for chart in charts)


def test_a_point_of_a_partial_and_a_whole_surface_is_shown_once():
    whole, brief = files(False, "sequential"), files(False, "sequential", brief=True)
    (read, write) = sorted(surfaces(view_of(brief, whole).benchmarks[0]), key=lambda surface: surface.name)
    assert len(read.figures) == len(write.figures) == 39
    point = (16 << 20, 4 << 10)
    (expected,) = [f for f in whole.figures if f.name == "read" and tuple(f.point.values()) == point]
    assert read.figures[point] is expected


def test_points_of_several_experiments_make_one_surface():
    results = [
        experiment("some.io", "?", {"file_B": file, "record_B": record}, rates({(file, record): rate}))
        for (file, record), rate in SMALL.items()
    ]
    (surface,) = surfaces(view_of(*results).benchmarks[0])
    assert {point: figure.median for point, figure in surface.figures.items()} == {p: r * GB for p, r in SMALL.items()}


def test_one_file_size_makes_a_line_and_no_surface():
    points = {(MiB, record * KiB): 1.0 * record for record in (4, 16, 64)}
    html = page([Trial(Machine("m"), (experiment("some.io", "?", {}, rates(points)),), (), (), {})])
    assert 'class="heat"' not in html and "some.io over record" in html
