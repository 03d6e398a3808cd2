"""The rebuilt SVG of a chart: ids, references, and what is left out."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from seatrial.report.charts.vega import _clean, decade_ticks, render


def cleaned(svg: str) -> str:
    root = f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">{svg}</svg>'
    return ElementTree.tostring(_clean(ElementTree.fromstring(root), "m1"), encoding="unicode")


def test_ids_and_all_references_to_them_get_the_prefix_of_the_chart():
    text = cleaned('<g id="a" clip-path="url(#clip0)"/><path href="#a"/><path xlink:href="#a"/>')
    assert text == '<svg><g id="m1-a" clip-path="url(#m1-clip0)" /><path href="#m1-a" /><path href="#m1-a" /></svg>'


def test_addresses_scripts_and_handlers_are_left_out():
    text = cleaned(
        '<path href="javascript:alert(1)" xlink:href="https://example.org" onclick="x()"/>'
        "<script>x()</script><foreignObject/><a href='#a'><path/></a><image href='data:x'/>"
    )
    assert text == "<svg><path /></svg>"


def test_text_from_data_stays_text():
    spec = {
        "data": {"values": [{"x": "</text><script>&lt;", "y": 1}]},
        "mark": "bar",
        "encoding": {"x": {"field": "x", "type": "nominal"}, "y": {"field": "y", "type": "quantitative"}},
    }
    svg = render(spec, "m1", "a <title>", "b & c").__html__()
    assert "<script" not in svg and "&lt;script&gt;" in svg and 'aria-labelledby="m1-title m1-desc"' in svg


def test_a_quantity_keeps_its_no_break_space():
    values = [{"x": "size 1\N{NO-BREAK SPACE}KiB", "y": 1}]
    spec = {"data": {"values": values}, "mark": "bar", "encoding": {"y": {"field": "x", "type": "nominal"}}}
    drawn = render(spec, "c", "title 1\N{NO-BREAK SPACE}KiB", "d").text
    assert "size 1\N{NO-BREAK SPACE}KiB" in drawn and "title 1\N{NO-BREAK SPACE}KiB" in drawn and "?" not in drawn


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.5, 2e6, [1, 10, 100, 1000, 1e4, 1e5, 1e6]),
        (1.0, 60.0, [1, 2, 5, 10, 20, 50]),
        (1.4, 6.2, [2, 3, 4, 5, 6]),  # was 2 and 5
        (30.0, 48.0, [30, 35, 40, 45]),  # was none
        (3e-9, 3.2e-9, [3e-9, 3.05e-9, 3.1e-9, 3.15e-9, 3.2e-9]),
        (5.0, 5.0, [5]),
    ],
)
def test_a_logarithmic_axis_has_at_least_four_ticks(low, high, ticks):
    assert decade_ticks(low, high) == ticks
