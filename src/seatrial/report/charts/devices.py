"""Devices side by side: the figures of several devices, which should be equal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from seatrial.analysis.device_copies import DeviceName, devices_of
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.frozen import Frozen
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.results.sample import point_key
from seatrial.model.spelling import arrow, display_scale, label, show, show_percent, show_range
from seatrial.model.units import Unit
from seatrial.report.blocks import Cell, Cells, Chart, Table, headings, right
from seatrial.report.charts import vega
from seatrial.report.pages.view import MEDIAN_COLUMNS, BenchmarkView, TrialView, median_cells

_WIDTH, _ROW_HEIGHT = 720, 26
_TOGETHER = "_together"
"""Suffix of a figure that was measured while all devices worked: hollow, in the colour of the figure of one device."""
_DEVIATION = 0.05
"""A device is named if it is slower than the median over devices by more than this."""


class _Family(Frozen):
    """A figure of each device at one point. `where` states which of several points it is."""

    name: str
    where: str
    figures: Mapping[int, FigureResult]


def devices_side_by_side(view: TrialView, benchmark: BenchmarkView) -> Iterator[Chart]:
    """One chart for each experiment and unit with figures of two devices or more."""
    for result in _of_most_devices(benchmark.results):
        by_unit = _by_unit(result)
        names = devices_of(view.trial.machine, result, view.trial.seen) if by_unit else {}
        for unit, families in by_unit.items():
            title = f"{benchmark.labels[result.id]}: by device"
            shown = families[: len(vega.SERIES_COLOURS)]
            ident = view.anchor(f"each-device-{result.id}-{unit}")
            caption = _in_words(shown, names, unit)
            yield vega.chart(_spec(shown, names, unit), ident, title, caption, _table(families, names))


def _of_most_devices(results: Sequence[ExperimentResult]) -> list[ExperimentResult]:
    """Of experiments that differ in the number of devices only, the one with the most."""

    def devices(result: ExperimentResult) -> int:
        number = result.experiment.parameters.get("devices", 0)
        return number if isinstance(number, int) else 0

    most: dict[tuple[object, ...], ExperimentResult] = {}
    for result in results:
        parameters = {name: value for name, value in result.experiment.parameters.items() if name != "devices"}
        key = (*point_key(parameters), result.experiment.environment)
        if key not in most or devices(result) > devices(most[key]):
            most[key] = result
    return list(most.values())


def _by_unit(result: ExperimentResult) -> dict[Unit, list[_Family]]:
    """The figures of devices by unit, each at the point where the sum over devices is best."""
    found: dict[tuple[Unit, str], dict[tuple[object, ...], dict[int, FigureResult]]] = {}
    for figure in result.figures:
        device = figure.point.get("device")
        if isinstance(device, int) and not isinstance(device, bool):
            rest = {name: value for name, value in figure.point.items() if name != "device"}
            points = found.setdefault((figure.unit, figure.name), {})
            points.setdefault(point_key(rest), {})[device] = figure
    families: dict[Unit, list[_Family]] = {}
    for (unit, name), points in found.items():
        most = max(map(len, points.values()))
        if most > 1:
            full = {key: figures for key, figures in points.items() if len(figures) == most}
            best = _best(full.values())
            rest = {name: value for name, value in next(iter(best.values())).point.items() if name != "device"}
            words = ", ".join(label(name, value) for name, value in rest.items())
            families.setdefault(unit, []).append(_Family(name, words, dict(sorted(best.items()))))
    return families


def _best(points: Iterable[Mapping[int, FigureResult]]) -> Mapping[int, FigureResult]:
    def total(figures: Mapping[int, FigureResult]) -> float:
        whole = sum(figure.median for figure in figures.values())
        return whole if next(iter(figures.values())).better is Better.HIGHER else -whole

    return max(points, key=total)


def _label(names: Mapping[int, DeviceName], number: int) -> str:
    """The backend's number, and the name in the drawing of the machine if known."""
    device = names.get(number)
    return f"device {number}" + (f" ({device.id})" if device is not None and device.id else "")


def _in_words(families: Sequence[_Family], names: Mapping[int, DeviceName], unit: Unit) -> str:
    first = next(iter(families[0].figures.values()))
    sentences = [f"Medians with 95 % intervals; {first.better.value} is better {arrow(first.better)}."]
    by_name = {family.name: family for family in families}
    deviating: dict[str, list[str]] = {}
    for family in families:
        rates = {number: figure.median for number, figure in family.figures.items()}
        if _alone(family) not in by_name:
            where = f" at {family.where}" if family.where else ""
            least, most = min(rates.values()), max(rates.values())
            values = show_range(least, most, unit) if most > least else show(most, unit)
            sentences.append(f"{family.name}{where}: {values}.")
        middle = median(rates.values())
        slowest = (min if first.better is Better.HIGHER else max)(rates, key=rates.__getitem__)
        if _deviates(family.figures[slowest], middle):
            share = f"{family.name} {show_percent(rates[slowest] / middle)}"
            deviating.setdefault(_label(names, slowest), []).append(share)
    sentences += [
        f"{device[:1].upper()}{device[1:]} deviates from the median over devices: {', '.join(shares)} of it."
        for device, shares in deviating.items()
    ]
    pairs = [(by_name[name], family) for family in families if (name := _alone(family)) in by_name]
    if pairs:
        sums = ", ".join(f"{one.name} {show_percent(_sum(other) / _sum(one))}" for one, other in pairs if _sum(one))
        sentences.append(
            f"Filled: one device at a time; hollow: all at once. Sum of all at once over one each: {sums}."
        )
    return " ".join(sentences)


def _deviates(figure: FigureResult, middle: float) -> bool:
    """Whether the whole interval of a figure is slower than the median over devices by more than the threshold."""
    low, high = figure.ci95 or (figure.median, figure.median)
    return high < (1 - _DEVIATION) * middle if figure.better is Better.HIGHER else low > (1 + _DEVIATION) * middle


def _alone(family: _Family) -> str:
    """The name of the same figure with one device at a time; "" if this figure is not one of all devices at once."""
    return family.name.removesuffix(_TOGETHER) if family.name.endswith(_TOGETHER) else ""


def _sum(family: _Family) -> float:
    return sum(figure.median for figure in family.figures.values())


def _spec(families: Sequence[_Family], names: Mapping[int, DeviceName], unit: Unit) -> dict[str, Any]:
    ends = [end for family in families for f in family.figures.values() for end in (f.ci95 or (f.median, f.median))]
    scale, scaled_unit = display_scale(ends, unit)
    stems = list(dict.fromkeys(_alone(family) or family.name for family in families))
    rows = [
        {
            "device": _label(names, number),
            "figure": _alone(family) or family.name,
            "value": figure.median / scale,
            **vega.ends_of(figure, scale),
            "hollow": bool(_alone(family)),
        }
        for family in families
        for number, figure in family.figures.items()
    ]
    labels = [_label(names, number) for number in sorted({number for one in families for number in one.figures})]
    # The width of the names at the axis in the page's font, which is wider than the renderer's.
    room = max(map(len, labels)) * 7.0 + 12.0
    axis = {"grid": True, "labelLimit": 220, "tickSize": 0, "domain": False, "minExtent": room}
    y = {"field": "device", "type": "nominal", "sort": labels, "title": None, "axis": axis}
    direction = arrow(next(iter(families[0].figures.values())).better)
    domain = {"domain": [0, max(ends) * 1.04 / scale], "nice": False}
    x = vega.quantity("value", f"{scaled_unit or 'ratio'} {direction}", scale=domain, axis={"grid": False})
    colour, _ = vega.series("figure", stems)
    if len(stems) > 1:
        colour["legend"] = {**vega.STROKE_LEGEND, "symbolType": "circle", "symbolSize": 80, "columns": 3}
    at = {"y": y, "yOffset": {"field": "figure", "type": "nominal", "sort": stems}}
    mark = {"type": "point", "size": 64, "opacity": 1, "strokeWidth": 1.8}
    filled = {"condition": {"test": "datum.hollow", "value": "var(--paper)"}, **colour}
    line = {**at, "x": {**x, "field": "low"}, "x2": {"field": "high"}, "color": colour}
    return {
        "data": {"values": rows},
        "width": _WIDTH,
        "height": {"step": max(_ROW_HEIGHT, 12 * len(stems)), "for": "position"},
        "layer": [
            vega.layer("rule", line, strokeWidth=1.5),
            {"mark": mark, "encoding": {**at, "x": x, "stroke": colour, "fill": filled}},
        ],
    }


def _table(families: Sequence[_Family], names: Mapping[int, DeviceName]) -> Table:
    rows: list[Cells] = []
    for family in families:
        middle = median(figure.median for figure in family.figures.values())
        name = f"{family.name}{f' ({family.where})' if family.where else ''}"
        for number, figure in family.figures.items():
            device = names.get(number)
            about = ", ".join(filter(None, (device.id, device.name))) if device is not None else ""
            share = figure.median / middle if middle else None
            rows.append([str(number), about, name, *median_cells(figure), Cell(show_percent(share), share)])
    columns = headings(*right("Device"), "Name", "Figure", *MEDIAN_COLUMNS, *right("Relative to the median"))
    return Table.of("Figures by device", columns, rows)
