"""Ticks of references on a bar, and the list below that explains them.

A reference has a tick on a bar if benchmark, figure, unit and all its stated parameters match. It must state at least
one parameter: otherwise it would be on every bar of the benchmark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from msgspec import Struct

from seatrial.model.figure_result import FigureResult
from seatrial.model.frozen import Frozen
from seatrial.model.reference import Reference
from seatrial.references import references_for
from seatrial.references.words import (
    ANOTHER_MACHINE,
    configuration_text,
    contradiction_text,
    machine_of,
    source_text,
    value_text,
)
from seatrial.report.pages.view import Row
from seatrial.report.units import settings


class Tick(Frozen):
    """A reference on one bar. `mark` is its number in the list below the benchmark, `value` in the figure's unit."""

    mark: str
    value: float
    words: str


class ReferenceLine(Frozen):
    """One entry of the list. `what` is the figure with the settings that the source states."""

    mark: str
    value: str
    what: str
    about: str


class ReferenceMarks(Struct):
    """Numbers the references of one benchmark in the order of the rows."""

    _numbers: dict[str, int] = {}
    _lines: list[ReferenceLine] = []

    def ticks(self, row: Row, figure: FigureResult) -> tuple[Tick, ...]:
        """The ticks of one bar, by number; new references are numbered."""
        parameters = {**row.result.experiment.parameters, **figure.point}
        found = references_for(row.result.experiment.benchmark, figure.name, parameters, figure.unit)
        return tuple(
            sorted((self._tick(reference) for reference in found if reference.parameters), key=lambda t: int(t.mark))
        )

    @property
    def lines(self) -> Sequence[ReferenceLine]:
        """The explanation of each number."""
        return self._lines

    def _tick(self, reference: Reference) -> Tick:
        if reference.id not in self._numbers:
            self._numbers[reference.id] = len(self._numbers) + 1
            self._lines.append(_line(str(self._numbers[reference.id]), reference))
        return Tick(str(self._numbers[reference.id]), reference.value, value_text(reference))


def _line(mark: str, reference: Reference) -> ReferenceLine:
    about = (
        f"{machine_of(reference) or 'unnamed machine'} ({ANOTHER_MACHINE})",
        configuration_text(reference),
        source_text(reference),
        reference.remark,
        contradiction_text(reference),
        f"reference {reference.id}",
    )
    return ReferenceLine(
        mark,
        value_text(reference),
        f"{reference.figure} {settings(reference.parameters)}",
        ". ".join(part[:1].upper() + part[1:] for part in about if part),
    )


def merged_labels(places: Mapping[str, float], narrowest: float, character: float) -> Sequence[tuple[str, float, str]]:
    """Labels below a bar that do not overlap: (text, place, anchor), from left to right.

    `places` are shares of the bar's width by mark, `narrowest` is the smallest width of a bar and `character` the width
    of a digit, in pixels. Labels that would overlap on such a bar are merged into one between them.
    """
    groups: list[list[str]] = []
    in_order = sorted(places, key=lambda mark: (places[mark], int(mark)))
    for _, same_place in groupby(in_order, key=lambda mark: places[mark]):
        groups.append(list(same_place))
        while len(groups) > 1 and _overlap(groups[-2], groups[-1], places, character / narrowest):
            last = groups.pop()
            groups[-1] += last
    return [(_label(group), _place(group, places), _anchor(_place(group, places))) for group in groups]


def _overlap(left: Sequence[str], right: Sequence[str], places: Mapping[str, float], character: float) -> bool:
    _, left_end = _extent(left, places, character)
    right_start, _ = _extent(right, places, character)
    return left_end + character > right_start


def _extent(group: Sequence[str], places: Mapping[str, float], character: float) -> tuple[float, float]:
    """The start and end of a label, as shares of the bar."""
    place, width = _place(group, places), len(_label(group)) * character
    start = place - {"start": 0.0, "middle": 0.5, "end": 1.0}[_anchor(place)] * width
    return start, start + width


def _place(group: Sequence[str], places: Mapping[str, float]) -> float:
    return sum(places[mark] for mark in group) / len(group)


def _anchor(place: float) -> str:
    return "start" if place < 0.15 else "end" if place > 0.85 else "middle"


def _label(group: Sequence[str]) -> str:
    """The marks of a group in the order of their places: "1", "3, 1", "2-4"; for many only their count."""
    numbers = [int(mark) for mark in group]
    if len(numbers) > 2 and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
        return f"{numbers[0]}\N{EN DASH}{numbers[-1]}"
    return ", ".join(group) if len(group) <= 3 else f"{len(group)} values"
