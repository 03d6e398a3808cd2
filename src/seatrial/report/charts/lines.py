"""Figures over a number as lines: which figures belong to one line, and which settings distinguish the lines."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from seatrial.analysis.grouped import grouped
from seatrial.model.benchmark.parameter import Value
from seatrial.model.frozen import Frozen
from seatrial.model.results.figure_result import FigureResult
from seatrial.model.spelling import label
from seatrial.report.pages.view import Row
from seatrial.stats.restated import without_restated

Measured = tuple[Row, FigureResult]


class Series(Frozen):
    """Figures that differ only in one number, in its order, with their rows."""

    name: str
    points: Sequence[tuple[float, FigureResult]]
    rows: Sequence[Row]


def restated_figures(measured: Sequence[Measured]) -> dict[str, str]:
    """Figure -> the figure before it that it restates, such as steps per second and seconds per step: each has its
    chart once."""
    by_name = grouped((figure.name, (row, figure)) for row, figure in measured)
    names = list(by_name)
    found = without_restated(
        [
            (
                [(row.result.id, *figure.point.items(), figure.n_repeats) for row, figure in own],
                (own[0][1].unit, own[0][1].better),
                [value for _, figure in own for value in figure.values],
            )
            for own in by_name.values()
        ]
    )
    return {names[own]: names[first] for own, first in found.items()}


def restated_words(restated: Mapping[str, str], drawn: Collection[str]) -> str:
    """A sentence on the figures that restate those `drawn`; "" if there are none."""
    names = [f"{own} ({first})" for own, first in restated.items() if first in drawn]
    return f" Not drawn, because they restate the figure in brackets: {', '.join(names)}." if names else ""


def settings_of(row: Row, figure: FigureResult) -> Mapping[str, Value]:
    """All settings of a figure: those of its experiment and the coordinates inside the program."""
    return {**row.result.experiment.parameters, **figure.point}


def lines_over(measured: Sequence[Measured], axis: str) -> list[Series]:
    """The lines over `axis` that have two points or more, named by the settings that distinguish them."""
    everything = [settings_of(row, figure) for row, figure in measured]
    distinguishing = distinguishing_settings(measured, axis)
    groups: dict[tuple[object, ...], tuple[list[str], list[tuple[float, FigureResult]], list[Row]]] = {}
    for (row, figure), settings in zip(measured, everything, strict=True):
        x = _number(settings.get(axis))
        if x is None:
            continue
        key = (figure.name, row.result.experiment.environment, *(settings.get(name) for name in distinguishing))
        words = [figure.name, *(label(name, settings[name]) for name in distinguishing if name in settings)]
        _, points, rows = groups.setdefault(key, (words, [], []))
        points.append((x, figure))
        rows.append(row)
    lines = []
    for words, points, rows in groups.values():
        order = sorted(range(len(points)), key=lambda n: points[n][0])
        if len(points) > 1:
            lines.append(Series(" · ".join(words), [points[n] for n in order], [rows[n] for n in order]))
    return lines


def distinguishing_settings(measured: Sequence[Measured], axis: str) -> list[str]:
    """The settings that differ between lines over `axis`."""
    everything = [settings_of(row, figure) for row, figure in measured]
    return [name for name in _varying(everything, axis) if not _follows(everything, name, axis)]


def following(measured: Sequence[Measured], axis: str) -> list[str]:
    """The numeric settings that depend on the axis, such as an array size that grows with the threads."""
    everything = [settings_of(row, figure) for row, figure in measured]
    return [name for name in _varying(everything, axis) if _follows(everything, name, axis)]


def _varying(everything: Sequence[Mapping[str, Value]], axis: str) -> list[str]:
    names = dict.fromkeys(key for settings in everything for key in settings)
    return [name for name in names if name != axis and len({settings.get(name) for settings in everything}) > 1]


def _follows(everything: Sequence[Mapping[str, Value]], name: str, axis: str) -> bool:
    """Whether a number is determined by the axis: one value for each value of the axis, and increasing with it."""
    pairs: set[tuple[float, float]] = set()
    for settings in everything:
        x, value = _number(settings.get(axis)), _number(settings.get(name))
        if x is None or value is None:
            return False
        pairs.add((x, value))
    ordered = sorted(pairs)
    return all(a[0] < b[0] and a[1] <= b[1] for a, b in pairwise(ordered))


def _number(value: Value | None) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
