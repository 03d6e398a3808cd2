"""Pairs of devices and of ranks as matrices of colours, with what is slow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from seatrial.analysis.device_copies import PeerRates, peer_rates
from seatrial.analysis.pairs import pair_of
from seatrial.model.frozen import Frozen
from seatrial.model.results.figure_result import ExperimentResult, FigureResult, Outlier
from seatrial.model.spelling import arrow_meaning, show, show_range
from seatrial.report.blocks import Cells, Chart, Svg, Table, always, headings, right
from seatrial.report.charts import heat
from seatrial.report.pages.view import MEDIAN_COLUMNS, BenchmarkView, TrialView, median_cells
from seatrial.report.studies.best_of_words import screening_lines

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
        better = arrow_meaning(first.better)
        matrix = heat.HeatMatrix(values, len(rates.devices), first.unit, better, _LEAST_MARK, has_diagonal=True)
        ident = view.anchor(f"devices-{rates.result.id}-{rates.figure}")
        picture = matrix.drawn(ident, title, caption, _labels(rates, matrix.side))
        yield Chart(title, caption, always(picture), _numbers(rates, paths))


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
        if side >= heat.CELL_WITH_LABEL:
            yield heat.text(-6, (place + 0.5) * side + 4, device.label, "tick", "end")
            short = device.label if longest * _LETTER < side else str(device.number)
            yield heat.text((place + 0.5) * side, -6, short, "tick")
    yield heat.text(-6, -22, "from, to", "tick", "end")


def _numbers(rates: PeerRates, paths: Paths) -> Table:
    rows: list[Cells] = []
    for place, figure in sorted(rates.values.items()):
        path = _path(rates, paths, place)
        ends = [rates.devices[end].label for end in place]
        rows.append([*ends, *([_PATHS.get(path, path)] if paths else []), *median_cells(figure)])
    return Table.of("All measured pairs", ["From", "To", *(["Path"] if paths else []), *MEDIAN_COLUMNS], rows)


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
            pair = pair_of(figure.point)
            if pair is not None:
                by_name.setdefault(figure.name, {})[pair] = figure
        hosts = _hosts(view, result) if by_name else ()  # of a large folder, all its records would be made
        for name, figures in by_name.items():
            slow = [one for one in (result.screening.outliers if result.screening else ()) if one.figure == name]
            title = f"{benchmark.labels[result.id]}: {name} between ranks"
            said = _ranks_in_words(figures, hosts)
            ident = view.anchor(f"ranks-{result.id}-{name}")
            picture = _picture(figures, slow, hosts, ident, title, said) if len(figures) > 1 else None
            yield RankPairs(title, said, _found(result, name), picture, _rank_numbers(figures, slow, hosts))


def _found(result: ExperimentResult, name: str) -> list[str]:
    """What is slow by this figure; or that nothing is slow by any figure."""
    lines = screening_lines(result.screening)
    return [line for line in lines if f": {name} " in line or not line.startswith("slow: ")]


def _hosts(view: TrialView, result: ExperimentResult) -> Sequence[str]:
    """The host of each rank, as recorded by the last repeat; empty if it is not recorded."""
    recorded = [seen.get("hosts", ()) for seen in view.seen(result.id)]
    return [str(host) for host in recorded[-1]] if recorded else []


def _ranks_in_words(figures: Mapping[Pair, FigureResult], hosts: Sequence[str]) -> str:
    """The content of the picture as sentences."""
    unit = next(iter(figures.values())).unit
    medians = [figure.median for figure in figures.values()]
    if len(figures) == 1:
        ((a, b),) = figures
        return f"Ranks {a} and {b}: {show(medians[0], unit)}."
    last = max(rank for pair in figures for rank in pair)
    where = f" on {len(set(hosts))} hosts" if len(set(hosts)) > 1 else ""
    return (
        f"Median over pairs {show(median(medians), unit)}, range {show_range(min(medians), max(medians), unit)}. "
        f"{len(figures)} of the {last * (last + 1) // 2} pairs of {last + 1} ranks{where} were measured."
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
    values: dict[heat.Place, float] = {}
    for (a, b), figure in figures.items():
        values[a, b] = values[b, a] = figure.median
    count = max(rank for pair in figures for rank in pair) + 1
    matrix = heat.HeatMatrix(values, count, first.unit, arrow_meaning(first.better), _LEAST_MARK)
    side, edge = matrix.side, matrix.edge
    marks = [*heat.borders(hosts, side, edge), *_rank_labels(hosts, count, side)]
    return matrix.drawn(ident, title, said, marks, (frame for one in slow for frame in _frames(one, hosts, side, edge)))


def _frames(one: Outlier, hosts: Sequence[str], side: float, edge: float) -> Iterator[str]:
    """A frame around both cells of a pair, or around row and column of a rank, or of each rank of a node."""
    a, b, rank, host = (one.parameters.get(name) for name in ("a", "b", "rank", "host"))
    if isinstance(a, int) and isinstance(b, int):
        mark = max(side, 2 * _LEAST_MARK)
        for row, column in ((a, b), (b, a)):
            yield from heat.framed((column + 0.5) * side - mark / 2, (row + 0.5) * side - mark / 2, mark, mark)
    ranks = [rank] if isinstance(rank, int) else [k for k, name in enumerate(hosts) if name == host]
    for k in ranks:
        yield from heat.framed(0, k * side, edge, side)
        yield from heat.framed(k * side, 0, side, edge)


def _rank_labels(hosts: Sequence[str], count: int, side: float) -> Iterator[str]:
    """The number of every rank if they fit, else of every k-th; host names on top, where they fit."""
    step = heat.step_of_labels(side, heat.CELL_WITH_LABEL)
    for rank in range(0, count, step):
        yield heat.text(-6, (rank + 0.5) * side + 4, str(rank), "tick", "end")
        if step * side >= heat.CELL_WITH_LABEL + 6:
            yield heat.text((rank + 0.5) * side, -6, str(rank), "tick")
    yield heat.text(-6, -6, "rank", "tick", "end")
    yield from heat.names_of_hosts(hosts, count, side, -22)


def _rank_numbers(figures: Mapping[Pair, FigureResult], slow: Sequence[Outlier], hosts: Sequence[str]) -> Table:
    several = len(set(hosts)) > 1
    named = {pair_of(one.parameters) for one in slow}
    rows: list[Cells] = []
    for (a, b), figure in sorted(figures.items(), key=lambda item: (item[0] not in named, item[0])):
        where = [f"{hosts[a]}, {hosts[b]}" if b < len(hosts) else ""] * several
        rows.append([str(a), str(b), *where, *median_cells(figure), "slow" if (a, b) in named else ""])
    columns = headings(*right("Rank", "Rank"), *["Hosts"] * several, *MEDIAN_COLUMNS, "Remark")
    return Table.of("All measured pairs", columns, rows)
