"""A figure over a numeric setting: size, record, threads. One line for each combination of the other settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from seatrial.analysis.grouped import grouped
from seatrial.analysis.scaling import DEVICES, summed_figures, whole_of
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.benchmark.parameter import whole
from seatrial.model.machine.limit import Basis
from seatrial.model.spelling import arrow, bare_name, display_scale, label, setting_number, show, show_percent, singular
from seatrial.model.units import Unit
from seatrial.report.blocks import Cell, Cells, Chart, Table, right
from seatrial.report.charts import vega
from seatrial.report.charts.lines import (
    Measured,
    Series,
    distinguishing_settings,
    following,
    lines_over,
    restated_figures,
    restated_words,
    settings_of,
)
from seatrial.report.pages.view import MEDIAN_COLUMNS, BenchmarkView, TrialView, median_cells

_FEWEST_POINTS = 3
_WIDE_RANGE = 20
"""From this ratio of largest to smallest, an axis is logarithmic."""
_WORKERS = ("threads", "ranks", "nodes", DEVICES)
"""Settings that count workers: ideally twice as many give twice the rate, which a thin line shows."""
_NO_QUANTITIES = frozenset({"device", "source", "target"})
"""Numbers that identify something."""
_WIDE_RANGE_OF_WORKERS = 8
_ONE_LIMIT = 0.01
"""Limits that differ by less than this are drawn as one line."""
_MOST_TICKS = 9
_ROOM = 1.1
_WIDTH, _HEIGHT = 860, 280


def over_a_number(view: TrialView, benchmark: BenchmarkView) -> Iterator[Chart]:
    """One chart for each unit that was measured over at least three values of one number.

    Two numbers that vary together inside the program (a matrix of CPU pairs) are not drawn here but as a heat map.
    """
    drawable = [(row, figure) for row, figure in benchmark.measured if not vega.has_its_own_panel(figure)]
    restated = restated_figures(drawable)
    units = grouped((figure.unit, (row, figure)) for row, figure in drawable if figure.name not in restated)
    for number, (unit, measured) in enumerate(units.items(), start=1):
        axis = _axis(measured)
        if axis is None:
            continue
        measured = _whole(measured) if axis == DEVICES else _of_one_device(measured)
        for part, (words, own) in enumerate(_parts(measured, axis), start=1):
            lines = lines_over(own, axis)
            longest = sorted(lines, key=lambda line: -len(line.points))[: len(vega.SERIES_COLOURS)]
            shown = [line for line in lines if line in longest]
            if not shown:
                continue
            title = f"{benchmark.name} over {bare_name(axis)}{f' ({words})' if words else ''}"
            caption = _caption(own, axis, unit, shown, len(lines))
            caption += restated_words(restated, {figure.name for _, figure in own})
            ident = view.anchor(f"{benchmark.name}-over-{axis}-{number}-{part}")
            numbers, said = _table(title, shown, axis), _in_words(shown, axis, unit)
            yield vega.chart(_spec(shown, axis, unit), ident, title, caption, numbers, said)


def _whole(measured: Sequence[Measured]) -> list[Measured]:
    """Figures of all devices of their experiments, for lines over the number of devices."""
    summed = summed_figures([row.result for row, _ in measured])
    wholes = ((row, whole_of(row.result, figure, summed)) for row, figure in measured)
    return [(row, figure) for row, figure in wholes if figure is not None]


def _of_one_device(measured: Sequence[Measured]) -> list[Measured]:
    """Only the figures of the first of several devices; another panel compares them."""
    numbers = [figure.point["device"] for _, figure in measured if "device" in figure.point]
    first = min((number for number in numbers if isinstance(number, int)), default=None)
    return [(row, figure) for row, figure in measured if figure.point.get("device", first) == first]


def _parts(measured: Sequence[Measured], axis: str) -> list[tuple[str, Sequence[Measured]]]:
    """(words, figures) of each chart: one, or one for each value of a setting if there are too many lines for one.

    The setting is the one with the fewest values, but at least two.
    """
    names = distinguishing_settings(measured, axis)
    if len(lines_over(measured, axis)) <= len(vega.SERIES_COLOURS):
        return [("", measured)]
    if not names:
        return _by_family(measured)
    by_name = {name: dict.fromkeys(settings_of(row, figure).get(name) for row, figure in measured) for name in names}
    name = min(by_name, key=lambda name: len(by_name[name]))
    return [
        (
            label(name, value) if value is not None else f"no {name}",
            [(row, figure) for row, figure in measured if settings_of(row, figure).get(name) == value],
        )
        for value in by_name[name]
    ]


def _by_family(measured: Sequence[Measured]) -> list[tuple[str, Sequence[Measured]]]:
    """One chart for each family of figures (h2d, h2d_together and h2d_all are one), if there are several."""
    families = grouped((figure.name.partition("_")[0], (row, figure)) for row, figure in measured)
    if len(families) in (1, len({figure.name for _, figure in measured})):
        return [("", measured)]
    return list(families.items())


def _axis(measured: Sequence[Measured]) -> str | None:
    """The numeric setting of the horizontal axis: the only one that varies inside the program, else a parameter.

    Of parameters with equally many values it is the number of workers, on which the others depend.
    """
    inside: dict[str, set[float]] = {}
    outside: dict[str, set[float]] = {}
    for row, figure in measured:
        for found, settings in ((inside, figure.point), (outside, row.result.experiment.parameters)):
            for name, value in settings.items():
                if isinstance(value, int | float) and not isinstance(value, bool) and name not in _NO_QUANTITIES:
                    found.setdefault(name, set()).add(float(value))
    varying = [name for name, values in inside.items() if len(values) > 1]
    if len(varying) > 1:
        return None
    candidates = inside if varying else outside
    best = max(candidates, key=lambda name: (len(candidates[name]), name in _WORKERS), default=None)
    return best if best is not None and len(candidates[best]) >= _FEWEST_POINTS else None


def _caption(measured: Sequence[Measured], axis: str, unit: Unit, shown: Sequence[Series], number_of_lines: int) -> str:
    better = measured[0][1].better
    caption = f"Medians with 95 % intervals; {better.value} is better {arrow(better)}."
    if _shows_ideal(shown, axis):
        line = _best(shown)
        (start, first), (end, last) = line.points[0], line.points[-1]
        efficiency = last.median / first.median * start / end
        workers = singular(axis) if start == 1 else axis
        caption += (
            f" The thin line is ideal scaling from {setting_number(axis, start)} {workers}. "
            f"{line.name} at {setting_number(axis, end)} {axis}: {show(last.median, unit)}, "
            f"{show_percent(efficiency)} of ideal."
        )
    limit = _one_limit(shown)
    if limit is not None:
        caption += f" The horizontal line is the limit, {show(limit, unit)}."
    for name in following(measured, axis):
        values = [settings_of(row, figure)[name] for row, figure in measured]
        low, high = min(map(whole, values)), max(map(whole, values))
        ends = f"{setting_number(name, low)} to {setting_number(name, high)}"
        caption += f" {bare_name(name)} grows with {bare_name(axis)}, from {ends}."
    device = next((figure.point["device"] for _, figure in measured if "device" in figure.point), None)
    if device is not None and axis != DEVICES:
        caption += f" Only device {device} is shown."
    if len(shown) < number_of_lines:
        caption += f" {len(shown)} of {number_of_lines} lines are shown; the table above has all."
    return caption


def _shows_ideal(lines: Sequence[Series], axis: str) -> bool:
    first = lines[0].points[0][1]
    return axis in _WORKERS and first.better is Better.HIGHER and first.unit != "s" and first.median > 0


def _best(lines: Sequence[Series]) -> Series:
    """The line that ends highest, of those that begin with the fewest workers and end with the most."""
    start, end = min(line.points[0][0] for line in lines), max(line.points[-1][0] for line in lines)
    whole = [line for line in lines if line.points[0][0] == start and line.points[-1][0] == end]
    return max(whole or lines, key=lambda line: line.points[-1][1].median)


def _one_limit(lines: Sequence[Series]) -> float | None:
    """The physical limit that all points have in common, in SI; None if there is none."""
    limits = [figure.limit for line in lines for _, figure in line.points]
    values = [limit.value for limit in limits if limit is not None and limit.value and limit.basis is Basis.PHYSICAL]
    if not values or len(values) < len(limits) or max(values) > min(values) * (1 + _ONE_LIMIT):
        return None
    return max(values)


def _spec(lines: Sequence[Series], axis: str, unit: Unit) -> dict[str, Any]:
    limit = _one_limit(lines)
    shown = [figure.median for line in lines for _, figure in line.points] + ([limit] if limit is not None else [])
    scale, scaled_unit = display_scale(shown, unit)
    rows: list[dict[str, Any]] = [
        {"line": line.name, "x": x, "y": figure.median / scale, **vega.ends_of(figure, scale)}
        for line in lines
        for x, figure in line.points
    ]
    xs = sorted({x for line in lines for x, _ in line.points})
    ys = [value / scale for value in shown]
    is_scaling = _shows_ideal(lines, axis) and _are_wide(xs, _WIDE_RANGE_OF_WORKERS)
    ticks = {**vega.named_ticks(_ticks(xs), partial(setting_number, axis)), "labelOverlap": True, "grid": False}
    x = vega.quantity("x", bare_name(axis), scale=_scale_of(xs, always_log=is_scaling), axis=ticks)
    title = f"{scaled_unit or 'ratio'} {arrow(lines[0].points[0][1].better)}"
    y = vega.quantity("y", title, scale=_scale_of(ys, always_log=is_scaling))
    if y["scale"].get("type") == "log":
        ends = [*ys, *(end for row in rows for end in (row["low"], row["high"]) if end > 0)]
        y = vega.logarithmic("y", title, min(ends) / _ROOM, max(ends) * _ROOM)
    colour, dash = vega.series("line", [line.name for line in lines])
    return {
        "data": {"values": rows},
        "width": _WIDTH,
        "height": _HEIGHT,
        "layer": [
            *_reference_lines(lines, axis, x, y, scale, limit),
            vega.layer("rule", {**vega.between(x, y), "color": colour}, strokeWidth=1.5),
            vega.layer("line", {"x": x, "y": y, "color": colour, "strokeDash": dash}, strokeWidth=1.8),
            vega.layer("point", {"x": x, "y": y, "color": colour}, filled=True, size=30, opacity=1),
        ],
    }


def _reference_lines(
    lines: Sequence[Series], axis: str, x: dict[str, Any], y: dict[str, Any], scale: float, limit: float | None
) -> list[dict[str, Any]]:
    """Ideal scaling from the fewest workers, and the limit."""
    marks: list[dict[str, Any]] = []
    if _shows_ideal(lines, axis):
        points = _best(lines).points
        start, first = points[0]
        top = max(figure.median for line in lines for _, figure in line.points) if limit is None else limit
        end = min(points[-1][0], start * max(top / first.median, 1.0))
        ideal = [{"x": at, "y": first.median * at / start / scale} for at in (start, end)]
        style = {"strokeWidth": 1, "color": "var(--muted)", "strokeDash": [1, 0]}
        marks.append(vega.layer("line", {"x": x, "y": y}, ideal, **style))
    if limit is not None:
        marks.append(vega.layer("rule", {"y": y}, [{"y": limit / scale}], strokeWidth=1.5, color="var(--ink)"))
    return marks


def _are_wide(values: Sequence[float], ratio: float) -> bool:
    return min(values) > 0 and max(values) >= ratio * min(values)


def _scale_of(values: Sequence[float], *, always_log: bool = False) -> dict[str, Any]:
    if _are_wide(values, 1.0 if always_log else _WIDE_RANGE):
        return {"type": "log", "nice": False}
    return {"zero": True}


def _ticks(xs: Sequence[float]) -> list[float]:
    """At most nine of the measured values: every k-th, so that ticks are at points."""
    step = -(-len(xs) // _MOST_TICKS)
    return list(xs[::step])


def _in_words(lines: Sequence[Series], axis: str, unit: Unit) -> str:
    return " ".join(
        f"{line.name}: from {show(line.points[0][1].median, unit)} at {setting_number(axis, line.points[0][0])} to "
        f"{show(line.points[-1][1].median, unit)} at {setting_number(axis, line.points[-1][0])}."
        for line in lines
    )


def _table(title: str, lines: Sequence[Series], axis: str) -> Table:
    rows: list[Cells] = [
        [line.name, Cell(setting_number(axis, x), x), *median_cells(figure)]
        for line in lines
        for x, figure in line.points
    ]
    return Table.of(title, ["Line", *right(bare_name(axis)), *MEDIAN_COLUMNS], rows)
