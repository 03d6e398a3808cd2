"""The chart of pairs of ranks: a cell for each pair, slow ones framed, with borders between hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from seatrial.analysis.pairs import pair_of
from seatrial.model.figure_result import ExperimentResult, FigureResult
from seatrial.model.frozen import Frozen
from seatrial.model.outlier import Outlier
from seatrial.report.charts.heat import Place, number, rectangle, text
from seatrial.report.charts.pair_matrix import CELL_WITH_LABEL, Matrix
from seatrial.report.charts.shapes import rank_pair
from seatrial.report.pages.svg import Svg
from seatrial.report.pages.tables import Cell, Column, Table
from seatrial.report.pages.view import BenchmarkView, TrialView
from seatrial.report.studies.outlier_words import screening_lines
from seatrial.report.units import arrow_meaning, show, show_range

_LEAST_MARK = 3.0

Pair = tuple[int, int]


class RankPairs(Frozen):
    """One figure of one experiment on the page. `found` lists what is slow, or states that nothing is."""

    title: str
    said: str
    found: Sequence[str]
    picture: Svg | None
    numbers: Table


def rank_pairs(view: TrialView, benchmark: BenchmarkView) -> Iterator[RankPairs]:
    """One for each figure of each experiment that measured pairs of ranks."""
    for result in benchmark.results:
        by_name: dict[str, dict[Pair, FigureResult]] = {}
        for figure in result.figures:
            pair = rank_pair(figure)
            if pair is not None:
                by_name.setdefault(figure.name, {})[pair] = figure
        hosts = _hosts(view, result)
        for name, figures in by_name.items():
            slow = [one for one in (result.screening.outliers if result.screening else ()) if one.figure == name]
            title = f"{benchmark.labels[result.id]}: {name} between ranks"
            said = _in_words(figures, hosts)
            ident = view.anchor(f"ranks-{result.id}-{name}")
            picture = _picture(figures, slow, hosts, ident, title, said) if len(figures) > 1 else None
            yield RankPairs(title, said, _found(result, name), picture, _numbers(figures, slow, hosts))


def _found(result: ExperimentResult, name: str) -> list[str]:
    """What is slow by this figure; or that nothing is slow by any figure."""
    lines = screening_lines(result.screening)
    return [line for line in lines if f": {name} " in line or not line.startswith("slow: ")]


def _hosts(view: TrialView, result: ExperimentResult) -> Sequence[str]:
    """The host of each rank, as recorded by the last repeat; empty if it is not recorded."""
    recorded = [seen.get("hosts", ()) for seen in view.seen(result.id)]
    return [str(host) for host in recorded[-1]] if recorded else []


def _in_words(figures: Mapping[Pair, FigureResult], hosts: Sequence[str]) -> str:
    """The content of the picture as sentences."""
    first = next(iter(figures.values()))
    medians = [figure.median for figure in figures.values()]
    ranks = {rank for pair in figures for rank in pair}
    where = f" on {len(set(hosts))} hosts" if len(set(hosts)) > 1 else ""
    if len(figures) == 1:
        ((a, b),) = figures
        return f"Ranks {a} and {b}: {show(first.median, first.unit)}."
    possible = max(ranks) * (max(ranks) + 1) // 2
    return (
        f"Median over pairs {show(median(medians), first.unit)}, range "
        f"{show_range(min(medians), max(medians), first.unit)}. {len(figures)} of the {possible} pairs of "
        f"{max(ranks) + 1} ranks{where} were measured."
    )


def _picture(
    figures: Mapping[Pair, FigureResult],
    slow: Sequence[Outlier],
    hosts: Sequence[str],
    ident: str,
    title: str,
    said: str,
) -> Svg:
    first = next(iter(figures.values()))
    values: dict[Place, float] = {}
    for (a, b), figure in figures.items():
        values[a, b] = values[b, a] = figure.median
    count = max(rank for pair in figures for rank in pair) + 1
    matrix = Matrix(values, count, first.unit, arrow_meaning(first.better), _LEAST_MARK)
    side, edge = matrix.side, matrix.edge
    marks = [*_borders(hosts, side, edge), *_labels(hosts, count, side)]
    return matrix.drawn(ident, title, said, marks, (frame for one in slow for frame in _frames(one, hosts, side, edge)))


def _frames(one: Outlier, hosts: Sequence[str], side: float, edge: float) -> Iterator[str]:
    """A frame around both cells of a pair, or around row and column of a rank, or of each rank of a node."""
    a, b, rank, host = (one.parameters.get(name) for name in ("a", "b", "rank", "host"))
    if isinstance(a, int) and isinstance(b, int):
        mark = max(side, 2 * _LEAST_MARK)
        for row, column in ((a, b), (b, a)):
            yield from _framed((column + 0.5) * side - mark / 2, (row + 0.5) * side - mark / 2, mark, mark)
    ranks = [rank] if isinstance(rank, int) else [k for k, name in enumerate(hosts) if name == host]
    for k in ranks:
        yield from _framed(0, k * side, edge, side)
        yield from _framed(k * side, 0, side, edge)


def _framed(x: float, y: float, width: float, height: float) -> Iterator[str]:
    """A dark frame with a light rim, visible on any colour."""
    yield rectangle(x, y, width, height, "slow-rim")
    yield rectangle(x, y, width, height, "slow")


def _borders(hosts: Sequence[str], side: float, edge: float) -> Iterator[str]:
    """Lines between ranks of different hosts."""
    for n in range(1, min(len(hosts), round(edge / side))):
        if hosts[n] != hosts[n - 1]:
            at, end = number(n * side), number(edge)
            yield f'<path class="border-node" d="M{at} 0V{end}M0 {at}H{end}"/>'


def _labels(hosts: Sequence[str], count: int, side: float) -> Iterator[str]:
    """The number of every rank if they fit, else of every k-th; host names on top, where they fit."""
    step = 1
    while step * side < CELL_WITH_LABEL:
        step *= 2
    for rank in range(0, count, step):
        yield text(-6, (rank + 0.5) * side + 4, str(rank), "tick", "end")
        if step * side >= CELL_WITH_LABEL + 6:
            yield text((rank + 0.5) * side, -6, str(rank), "tick")
    yield text(-6, -6, "rank", "tick", "end")
    if len(set(hosts)) < 2:
        return
    starts = [n for n in range(min(count, len(hosts))) if n == 0 or hosts[n] != hosts[n - 1]]
    for start, end in zip(starts, [*starts[1:], count], strict=True):
        if (end - start) * side > 7.5 * len(hosts[start]):
            yield text((start + end) / 2 * side, -22, hosts[start], "tick")


def _numbers(figures: Mapping[Pair, FigureResult], slow: Sequence[Outlier], hosts: Sequence[str]) -> Table:
    several = len(set(hosts)) > 1
    columns = [
        Column("Rank", numeric=True),
        Column("Rank", numeric=True),
        *([Column("Hosts")] if several else []),
        Column("Median", numeric=True),
        Column("95 % interval", numeric=True),
        Column("Remark"),
    ]
    named = {pair_of(one.parameters) for one in slow}
    rows: list[Sequence[Cell]] = []
    for (a, b), figure in sorted(figures.items(), key=lambda item: (item[0] not in named, item[0])):
        where = f"{hosts[a]}, {hosts[b]}" if several and b < len(hosts) else ""
        rows.append(
            [
                Cell(str(a)),
                Cell(str(b)),
                *([Cell(where)] if several else []),
                Cell(show(figure.median, figure.unit, 4), figure.median),
                Cell(show_range(*figure.ci95, figure.unit, beside=figure.median) if figure.ci95 else "needs 6 repeats"),
                Cell("slow" if (a, b) in named else ""),
            ]
        )
    return Table("All measured pairs", columns, rows)
