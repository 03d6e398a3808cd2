"""The chart of copies between devices: a row for each source, a column for each target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from seatrial.analysis.device_copies import PeerRates, peer_rates
from seatrial.report.charts.chart import Chart
from seatrial.report.charts.heat import text
from seatrial.report.charts.pair_matrix import CELL_WITH_LABEL, Matrix
from seatrial.report.pages.tables import Cell, Column, Table
from seatrial.report.pages.view import BenchmarkView, TrialView
from seatrial.report.units import arrow_meaning, show, show_range

_LEAST_MARK = 3.0
_LETTER = 7.0
_PATHS = {
    "own": "within the device",
    "peer": "direct",
    "driver": "through the driver",
    "host": "through the host's memory",
}

Paths = Mapping[tuple[int, int], str]


def device_pairs(view: TrialView, benchmark: BenchmarkView) -> Iterator[Chart]:
    """One chart for each figure of each experiment that measured pairs of devices."""
    for rates in peer_rates(view.trial.machine, benchmark.results, view.trial.seen):
        paths = _paths(view, rates)
        title = f"{benchmark.labels[rates.result.id]}: {rates.figure} between devices"
        caption = _in_words(rates, paths)
        first = next(iter(rates.values.values()))
        values = {place: figure.median for place, figure in rates.values.items()}
        count = len(rates.devices)
        matrix = Matrix(values, count, first.unit, arrow_meaning(first.better), _LEAST_MARK, has_diagonal=True)
        ident = view.anchor(f"devices-{rates.result.id}-{rates.figure}")
        picture = matrix.drawn(ident, title, caption, _labels(rates, matrix.side))
        yield Chart(title, caption, picture, _numbers(rates, paths))


def _paths(view: TrialView, rates: PeerRates) -> Paths:
    """(source, target) -> the path of the data, as recorded by the last repeat."""
    notes = [seen.get("notes", {}) for seen in view.seen(rates.result.id)]
    recorded: Any = notes[-1].get("paths") if notes and isinstance(notes[-1], Mapping) else None
    found: dict[tuple[int, int], str] = {}
    for each in recorded if isinstance(recorded, list) else ():
        if isinstance(each, Mapping) and isinstance(each.get("path"), str):
            found[each.get("source", -1), each.get("target", -1)] = each["path"]
    return found


def _path(rates: PeerRates, paths: Paths, place: tuple[int, int]) -> str:
    row, column = place
    return paths.get((rates.devices[row].number, rates.devices[column].number), "")


def _in_words(rates: PeerRates, paths: Paths) -> str:
    first = next(iter(rates.values.values()))
    between = [figure.median for (a, b), figure in rates.values.items() if a != b]
    caption = ""
    if between:
        caption = (
            f"Median over pairs {show(median(between), first.unit)}, range "
            f"{show_range(min(between), max(between), first.unit)}. "
        )
    detours = {_path(rates, paths, place) for place in rates.values} - {"own", "peer", ""}
    if detours and rates.is_direct:
        names = " or ".join(sorted(_PATHS.get(path, path) for path in detours))
        some = [place for place in rates.values if _path(rates, paths, place) in detours]
        caption += f"{len(some)} of {len(between)} pairs have no peer access: their data go {names}. "
    return f"{caption}Rows are sources, columns are targets; the diagonal is within one device."


def _labels(rates: PeerRates, side: float) -> Iterator[str]:
    """The name of each device at its row; at its column the name if it fits, else the number."""
    longest = max(len(device.label) for device in rates.devices)
    for place, device in enumerate(rates.devices):
        if side >= CELL_WITH_LABEL:
            yield text(-6, (place + 0.5) * side + 4, device.label, "tick", "end")
            short = device.label if longest * _LETTER < side else str(device.number)
            yield text((place + 0.5) * side, -6, short, "tick")
    yield text(-6, -22, "from, to", "tick", "end")


def _numbers(rates: PeerRates, paths: Paths) -> Table:
    columns = [
        Column("From"),
        Column("To"),
        *([Column("Path")] if paths else []),
        Column("Median", numeric=True),
        Column("95 % interval", numeric=True),
    ]
    rows: list[Sequence[Cell]] = []
    for (row, column), figure in sorted(rates.values.items()):
        path = _path(rates, paths, (row, column))
        rows.append(
            [
                Cell(rates.devices[row].label),
                Cell(rates.devices[column].label),
                *([Cell(_PATHS.get(path, path))] if paths else []),
                Cell(show(figure.median, figure.unit, 4), figure.median),
                Cell(show_range(*figure.ci95, figure.unit, beside=figure.median) if figure.ci95 else "needs 6 repeats"),
            ]
        )
    return Table("All measured pairs", columns, rows)
