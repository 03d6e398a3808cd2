"""The core-to-core chart: a cell for each pair of CPUs, ordered by location, with borders of packages and caches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from seatrial.model.figure_result import FigureResult
from seatrial.model.frozen import Frozen
from seatrial.model.units import Unit
from seatrial.report.charts.core_pairs import CorePairs, core_pairs
from seatrial.report.charts.heat import HeatScale, Place, number, text
from seatrial.report.charts.pair_matrix import CELL_WITH_LABEL, Matrix
from seatrial.report.pages.svg import Svg
from seatrial.report.pages.tables import Cell, Column, Table
from seatrial.report.pages.view import BenchmarkView, TrialView
from seatrial.report.units import cpu_list, show, show_range

_LEAST_MARK = 5.0
_LONGEST_LABEL = 11
_BORDER = {40: "border-package", 30: "border-node"}


class CoreToCore(Frozen):
    """One experiment on the page. `picture` is None for two CPUs, whose only time is given as a sentence."""

    title: str
    said: str
    picture: Svg | None
    by_distance: Table
    numbers: Table


def core_to_core(view: TrialView, benchmark: BenchmarkView) -> Iterator[CoreToCore]:
    """One for each experiment that measured pairs of CPUs."""
    for result in benchmark.results:
        by_unit: dict[tuple[str, Unit], list[FigureResult]] = {}
        for figure in result.figures:
            by_unit.setdefault((figure.name, figure.unit), []).append(figure)
        for (name, unit), figures in by_unit.items():
            pairs = core_pairs(view.trial.machine, figures)
            if pairs is None:
                continue
            title = f"{benchmark.labels[result.id]}: {name} between CPUs"
            said = in_words(pairs, unit)
            ident = view.anchor(f"pairs-{result.id}-{name}")
            picture = _picture(pairs, unit, ident, title, said) if len(pairs.cpus) > 2 else None
            yield CoreToCore(title, said, picture, _by_distance(pairs, unit), _numbers(pairs, unit))


def in_words(pairs: CorePairs, unit: Unit) -> str:
    """The content of the picture as sentences."""
    if len(pairs.figures) == 1:
        ((a, b), figure), *_ = pairs.figures.items()
        interval = f" (95 % interval {show_range(*figure.ci95, unit, beside=figure.median)})" if figure.ci95 else ""
        return f"CPU {a} and CPU {b}: {show(figure.median, unit)}{interval}. They share: {pairs.distances[a, b].name}."
    measured = {frozenset(pair) for pair in pairs.figures}
    near, far = pairs.by_distance[0], pairs.by_distance[-1]
    times = f"Median {show(near.median_s, unit)} between CPUs that share {near.distance.name}"
    if far is not near:
        ratio = far.median_s / near.median_s
        times += f", {show(far.median_s, unit)} ({ratio:.1f} times that) where they share {far.distance.name}"
    return f"{times}. {len(measured)} of the {pairs.possible_pairs} pairs of {len(pairs.cpus)} CPUs were measured."


def _picture(pairs: CorePairs, unit: Unit, ident: str, title: str, said: str) -> Svg:
    matrix = Matrix(_values(pairs), len(pairs.cpus), unit, "lower is better", _LEAST_MARK)
    marks = [*_borders(pairs, matrix.side, matrix.edge), *_labels(pairs, matrix.side)]
    return matrix.drawn(ident, title, f"{said} {_distances_in_words(pairs, unit, matrix.scale)}", marks)


def _values(pairs: CorePairs) -> dict[Place, float]:
    """(row, column) -> seconds; a pair that was measured in one direction is on both sides of the diagonal."""
    position = {cpu: n for n, cpu in enumerate(pairs.cpus)}
    medians = {(position[a], position[b]): figure.median for (a, b), figure in pairs.figures.items()}
    return {(b, a): value for (a, b), value in medians.items()} | medians


def _borders(pairs: CorePairs, side: float, whole: float) -> Iterator[str]:
    for position, distance in sorted(pairs.boundaries.items(), key=lambda edge: edge[1].rank):
        at, end = number(position * side), number(whole)
        kind = _BORDER.get(distance.rank, "border-cache")
        line = f'd="M{at} 0V{end}M0 {at}H{end}"'
        if kind == "border-package":  # a light rim keeps it visible between dark cells
            yield f'<path class="border-rim" {line}/>'
        yield f'<path class="{kind}" {line}/>'


def _labels(pairs: CorePairs, side: float) -> Iterator[str]:
    """The CPU number at each row and column if it fits, else CPU ranges at each group; packages on top."""
    ends = sorted({0, *pairs.boundaries, len(pairs.cpus)})
    if side >= CELL_WITH_LABEL:
        for n, cpu in enumerate(pairs.cpus):
            yield text(-6, (n + 0.5) * side + 4, str(cpu), "tick", "end")
            if side >= CELL_WITH_LABEL + 6:
                yield text((n + 0.5) * side, -6, str(cpu), "tick")
    else:
        for start, end in pairwise(ends):
            if (end - start) * side >= CELL_WITH_LABEL:
                run = cpu_list(sorted(pairs.cpus[start:end]))
                yield text(
                    -6,
                    (start + end) / 2 * side + 4,
                    run if len(run) < _LONGEST_LABEL else f"{pairs.cpus[start]} .. {pairs.cpus[end - 1]}",
                    "tick",
                    "end",
                )
    for start, end in pairwise([*sorted(pairs.package_starts), len(pairs.cpus)]):
        if (end - start) * side > 70:
            yield text((start + end) / 2 * side, -22, pairs.package_starts[start], "tick")
    yield text(-6, -6, "CPU", "tick", "end")


def _distances_in_words(pairs: CorePairs, unit: Unit, scale: HeatScale) -> str:
    medians = ", ".join(f"{at.distance.name} {show(at.median_s, unit)}" for at in pairs.by_distance)
    return f"Medians by distance: {medians}. Colours from {scale.spelled(scale.bounds[0])} to " + show(
        scale.bounds[-1], unit
    )


def _by_distance(pairs: CorePairs, unit: Unit) -> Table:
    columns = [
        Column("What the two CPUs share"),
        Column("Pairs measured", numeric=True),
        Column("Median", numeric=True),
        Column("Range over pairs", numeric=True),
    ]
    rows: list[Sequence[Cell]] = []
    for at in pairs.by_distance:
        number_measured = len({frozenset(pair) for pair, far in pairs.distances.items() if far == at.distance})
        several = len(at.times_s) > 1
        rows.append(
            [
                Cell(at.distance.name),
                Cell(f"{number_measured} of {at.possible}"),
                Cell(show(at.median_s, unit), at.median_s),
                Cell(show_range(at.times_s[0], at.times_s[-1], unit) if several else "one pair"),
            ]
        )
    return Table("By distance", columns, rows)


def _numbers(pairs: CorePairs, unit: Unit) -> Table:
    columns = [
        Column("CPU", numeric=True),
        Column("CPU", numeric=True),
        Column("What they share"),
        Column("Median", numeric=True),
        Column("95 % interval", numeric=True),
    ]
    position = {cpu: n for n, cpu in enumerate(pairs.cpus)}
    in_order = sorted(pairs.figures, key=lambda pair: (position[pair[0]], position[pair[1]]))
    rows = [
        [
            Cell(str(a)),
            Cell(str(b)),
            Cell(pairs.distances[a, b].name),
            Cell(show(pairs.figures[a, b].median, unit, 4), pairs.figures[a, b].median),
            _interval(pairs.figures[a, b], unit),
        ]
        for a, b in in_order
    ]
    return Table("All measured pairs", columns, rows)


def _interval(figure: FigureResult, unit: Unit) -> Cell:
    return Cell(show_range(*figure.ci95, unit, beside=figure.median) if figure.ci95 else "needs 6 repeats")
