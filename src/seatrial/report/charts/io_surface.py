"""File I/O rate over file size and record size, as a small heat map for each call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from seatrial.model.benchmark.parameter import Value
from seatrial.model.frozen import Frozen
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.spelling import arrow_meaning, label, setting_number, show
from seatrial.model.units import Unit
from seatrial.report.blocks import Cell, Cells, Chart, Table, always, right
from seatrial.report.charts import heat
from seatrial.report.charts.vega import file_and_record
from seatrial.report.pages.view import MEDIAN_COLUMNS, BenchmarkView, TrialView, median_cells

_AXES = ("file_B", "record_B")

Point = tuple[int, int]
"""(file_B, record_B)."""
Settings = tuple[tuple[str, Value], ...]


class Surface(Frozen):
    """One mode of reading or writing, such as `read` with `direct`, at several points."""

    name: str
    settings: Settings
    environment: str
    figures: Mapping[Point, FigureResult]

    @property
    def files(self) -> list[int]:
        """The sizes of files, ascending."""
        return sorted({file for file, _ in self.figures})

    @property
    def records(self) -> list[int]:
        """The sizes of records, ascending."""
        return sorted({record for _, record in self.figures})


def io_surfaces(view: TrialView, benchmark: BenchmarkView) -> Iterator[Chart]:
    """One picture for each group of settings: its modes side by side, with one colour scale."""
    found = surfaces(benchmark)
    varying = _varying(found)
    several = len({surface.environment for surface in found}) > 1
    groups = groupby(found, key=lambda surface: (surface.settings, surface.environment))
    for count, ((settings, environment), group) in enumerate(groups, start=1):
        side_by_side = list(group)
        labels = [label(name, value) for name, value in settings if name in varying]
        words = " · ".join([*labels, f"environment {environment}"] if several else labels)
        title = f"{benchmark.name}{f' ({words})' if words else ''}"
        first = next(iter(side_by_side[0].figures.values()))
        caption = _in_words(side_by_side, first.unit)
        ident = view.anchor(f"{benchmark.name}-surface-{count}")
        maps = [_grid(surface) for surface in side_by_side]
        picture = heat.grids(maps, first.unit, arrow_meaning(first.better), ident, title, caption)
        yield Chart(title, caption, always(picture), _numbers(side_by_side))


def surfaces(benchmark: BenchmarkView) -> list[Surface]:
    """The surfaces of a benchmark, those of equal settings next to each other; only those with two file sizes and two
    record sizes: for one of them alone, a line chart is clearer.

    Points of experiments that differ in nothing else make one surface; if two have the same point, the experiment with
    more points is used.
    """
    gathered: dict[tuple[Settings, str, Unit, str], dict[Point, FigureResult]] = {}
    order = [_group(result, figure) for result in benchmark.results for figure in result.figures]
    for result in sorted(benchmark.results, key=lambda result: -len(result.figures)):
        for figure in result.figures:
            point = file_and_record(figure)
            if point is not None:
                key = (*_group(result, figure), figure.unit, figure.name)
                gathered.setdefault(key, {}).setdefault(point, figure)
    found = [
        Surface(name, settings, environment, points) for (settings, environment, _, name), points in gathered.items()
    ]
    kept = [surface for surface in found if len(surface.files) > 1 and len(surface.records) > 1]
    return sorted(kept, key=lambda surface: order.index((surface.settings, surface.environment)))


def _group(result: ExperimentResult, figure: FigureResult) -> tuple[Settings, str]:
    """The common properties of surfaces side by side: all settings except the two axes, and the environment."""
    everything = {**result.experiment.parameters, **figure.point}
    settings = tuple((name, value) for name, value in everything.items() if name not in _AXES)
    return settings, result.experiment.environment


def _varying(found: Sequence[Surface]) -> set[str]:
    """The settings in which surfaces differ."""
    values: dict[str, set[Value]] = {}
    for surface in found:
        for name, value in surface.settings:
            values.setdefault(name, set()).add(value)
    return {name for name, different in values.items() if len(different) > 1}


def _in_words(found: Sequence[Surface], unit: Unit) -> str:
    sentences = []
    for surface in found:
        ranked = sorted(surface.figures.items(), key=lambda entry: entry[1].median)
        (low_at, low), (high_at, high) = ranked[0], ranked[-1]
        sentences.append(
            f"{surface.name}: from {show(low.median, unit)} ({_at(low_at)}) "
            f"to {show(high.median, unit)} ({_at(high_at)})."
        )
    return " ".join(sentences)


def _at(point: Point) -> str:
    return f"file {setting_number('file_B', point[0])}, record {setting_number('record_B', point[1])}"


def _grid(surface: Surface) -> heat.Grid:
    """One small map: file sizes from left to right, record sizes from the bottom up."""
    files, records = surface.files, surface.records[::-1]
    values: dict[heat.Place, float] = {
        (records.index(record), files.index(file)): figure.median for (file, record), figure in surface.figures.items()
    }
    down = heat.Axis("record", [setting_number("record_B", size) for size in records])
    across = heat.Axis("file size", [setting_number("file_B", size) for size in files])
    return heat.Grid(surface.name, down, across, values)


def _numbers(found: Sequence[Surface]) -> Table:
    rows: list[Cells] = []
    for surface in found:
        for point, figure in sorted(surface.figures.items()):
            sizes = [Cell(setting_number(axis, size), size) for axis, size in zip(_AXES, point, strict=True)]
            rows.append([surface.name, *sizes, *median_cells(figure)])
    return Table.of("Rates by file and record size", ["Call", *right("File", "Record"), *MEDIAN_COLUMNS], rows)
