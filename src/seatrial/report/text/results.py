"""Results as text for a terminal, in aligned columns."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from statistics import median

from seatrial.analysis.grouped import grouped
from seatrial.analysis.pairs import pair_of
from seatrial.model.machine.host_list import fold_hosts
from seatrial.model.machine.limit import Basis
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.results.no_cpu import NOT_JUDGED
from seatrial.model.results.sample import State
from seatrial.model.spelling import arrow, settings, show, show_percent, show_range, spark_line
from seatrial.report.blocks import Detail, Tone
from seatrial.report.first_sentence import first_of_results
from seatrial.report.intervals import RemarkKind, derivation, no_interval_of, remarks, shared_remarks, widening_words
from seatrial.report.studies.best_of_words import screening_lines
from seatrial.report.text.terminal import PLAIN, Style, clean

_MOST_PAIRS = 10
"""Pairs of ranks that are listed one by one."""
_MOST_POINTS = 3
"""Points of a sweep that are listed one by one."""
_MOST_NAMES = 8
_MOST_ALIKE = 4
"""Experiments with the same title that are listed one by one."""
_TONES: dict[State, Tone] = {State.SKIPPED: "near", State.UNSUPPORTED: "warning"}


def results_text(results: Sequence[ExperimentResult], style: Style = PLAIN, detail: Detail = Detail.USUAL) -> str:
    """A block for each experiment: its parameters, then a line for each figure, or the reason why there is none; in
    full, a line for each point of a sweep, and how limits are derived. Experiments that could not be run for the
    same reason are one line, at the end; many that differ in nothing that is shown are one block."""
    shared = {reason: alike for reason, alike in not_run(results).items() if len(alike) > 1}
    left_out = {id(result) for alike in shared.values() for result in alike}
    several = len({host for result in results for host in result.hosts}) > 1
    kept = [result for result in results if id(result) not in left_out]
    first = first_of_results(kept)
    blocks = ["\n".join(style.paint(line, "warning") for line in style.wrapped(f"{first}."))] if first else []
    shown = {"has_hosts": several, "has_company": len(kept) > 1, "is_full": detail is Detail.FULL}
    for alike in _runs_alike(kept):
        blocks += (
            [_together(alike, style)] if len(alike) > _MOST_ALIKE else [_experiment(r, style, **shown) for r in alike]
        )
    blocks += [
        f"{style.paint(state.value, _TONES[state])} ({len(alike)} experiments): "
        f"{few([result.experiment.benchmark for result in alike])}\n  {reason}"
        for (state, reason), alike in shared.items()
    ]
    return "\n\n".join(blocks)


def _runs_alike(results: Sequence[ExperimentResult]) -> Iterable[list[ExperimentResult]]:
    """Experiments with figures and the same title, which differ in what it does not state (copies of a program in one
    text, runs of unknown size), in the order of the first; each other one alone."""

    def title(number: int, result: ExperimentResult) -> object:
        is_plain = result.outcome.is_ok and result.shown and result.no_cpu is None and result.screening is None
        return _title(result) if is_plain else number

    return grouped((title(number, result), result) for number, result in enumerate(results)).values()


def _together(results: Sequence[ExperimentResult], style: Style) -> str:
    """A line for each figure, or for the ends of its sweep, over experiments with the same title; what all note."""
    rows = []
    by_name = grouped((figure.name, figure) for result in results for figure in result.shown)
    for name, figures in by_name.items():
        by_point = grouped((settings(figure.point), figure) for figure in figures)
        points = list(by_point)
        for point in points if len(points) <= _MOST_POINTS else (points[0], points[-1]):
            unit, medians = by_point[point][0].unit, [figure.median for figure in by_point[point]]
            middle = f"median {show(median(medians), unit)} {arrow(figures[0].better)}"
            rows.append((f"{name} {point}".rstrip(), middle, f"from {show_range(min(medians), max(medians), unit)}"))
    notes = [note for note in results[0].notes if all(note in result.notes for result in results)]
    lines = [style.paint(_title(results[0]), "heading"), f"  {len(results)} experiments, each on the page:"]
    return "\n".join([*lines, style.table(rows), *(f"  note: {note}" for note in notes)])


def not_run(results: Iterable[ExperimentResult]) -> dict[tuple[State, str], list[ExperimentResult]]:
    """(state, reason) -> the experiments that were skipped, or are unsupported, for it."""
    found = grouped(
        ((result.outcome.state, result.outcome.reason), result) for result in results if result.outcome.state in _TONES
    )
    return found


def few(names: Iterable[str]) -> str:
    """Names, each once, such as "a, b, c and 9 more"."""
    found = list(dict.fromkeys(names))
    more = len(found) - _MOST_NAMES
    return ", ".join(found) if more <= 1 else f"{', '.join(found[:_MOST_NAMES])} and {more} more"


def _title(result: ExperimentResult) -> str:
    return f"{result.experiment.benchmark} {settings(result.experiment.parameters)}".rstrip()


def _experiment(result: ExperimentResult, style: Style, *, has_hosts: bool, has_company: bool, is_full: bool) -> str:
    lines = [style.paint(_title(result), "heading") + ("  (stored)" if result.reused else "")]
    if not result.outcome.is_ok:
        state = style.paint(result.outcome.state.value, _TONES.get(result.outcome.state, "error"))
        lines.append(f"  {state}: {result.outcome.reason}")
        lines += [f"    | {line}" for line in result.outcome.evidence.splitlines()[-5:]]
    elif result.shown:
        if has_company and result.no_cpu is not None:
            lines.append(f"  no CPU {result.no_cpu.span} ({result.no_cpu.why})")
        shared = shared_remarks([remarks(figure) for figure in result.shown])
        lines.append(style.table(row for rows in _rows(result, shared, is_full=is_full) for row in rows))
        if result.why:
            lines += style.wrapped(clean(result.why), "  why: ")
        lines += [f"  {text}" for text in shared.values()]
        lines += [f"  {line}" for line in screening_lines(result.screening)]
        if is_full:
            lines += [f"  limit of {names}: {text}" for text, names in _derivations(result.shown).items()]
    if has_hosts and result.hosts:
        lines.append(f"  ran on {fold_hosts(result.hosts)}")
    lines += [f"  note: {note}" for note in result.notes]
    return "\n".join(lines)


def _rows(result: ExperimentResult, shared: Container[RemarkKind], *, is_full: bool) -> Iterable[list[tuple[str, ...]]]:
    """A line for each figure; in full, for each point of a sweep, else one for its ends. Of many pairs of ranks, one
    line for all and one for each slow pair. `shared` remarks are left out."""
    by_name = grouped((figure.name, figure) for figure in result.shown)
    for name, figures in by_name.items():
        are_pairs = all(pair_of(figure.point) for figure in figures)
        if not are_pairs or len(figures) <= _MOST_PAIRS:
            is_listed = are_pairs or is_full or len(figures) <= _MOST_POINTS
            yield [_row(result, figure, shared) for figure in figures] if is_listed else [_ends(figures)]
            continue
        medians = [figure.median for figure in figures]
        first = figures[0]
        slow = {pair_of(one.parameters) for one in (result.screening.outliers if result.screening else ())}
        yield [
            (
                f"{name} of {len(figures)} pairs",
                f"{show(median(medians), first.unit)} {arrow(first.better)}",
                f"pairs from {show_range(min(medians), max(medians), first.unit)}",
                f"n={first.n_repeats}",
            ),
            *(_row(result, figure, shared) for figure in figures if pair_of(figure.point) in slow),
        ]


def _ends(figures: Sequence[FigureResult]) -> tuple[str, ...]:
    """The first and the last point of a sweep, and a bar for each between them."""
    first, last = figures[0], figures[-1]
    ends = [f"{show(one.median, one.unit)} at {settings(one.point)}" for one in (first, last)]
    bars = spark_line([one.median for one in figures])
    return (f"{first.name} {arrow(first.better)}", *ends, bars)


def _row(result: ExperimentResult, figure: FigureResult, shared: Container[RemarkKind]) -> tuple[str, ...]:
    is_said = figure.dependence or RemarkKind.FEW in shared
    interval = (
        "no interval" + ("" if is_said else f" ({no_interval_of(figure).removeprefix('none: ')})")
        if figure.ci95 is None
        else f"95 % interval {show_range(*figure.ci95, figure.unit, beside=figure.median)}"
    )
    share = figure.fraction_of_limit
    limit = figure.limit
    if limit is None or limit.value is None or share is None:
        against = ""
    elif result.no_cpu is not None:
        against = f"{NOT_JUDGED} (limit {show(limit.value, limit.unit)})"
    else:
        kind = "" if limit.basis is Basis.PHYSICAL else f" ({limit.basis})"
        against = f"{show_percent(share)} of {show(limit.value, limit.unit)}{kind}"
        if share > 1.0 and not limit.is_physical:
            against += ", above expected"
    point = f" {settings(figure.point)}" if figure.point else ""
    return (
        figure.name + point,
        f"{show(figure.median, figure.unit)} {arrow(figure.better)}"
        + (f" ({figure.customary})" if figure.customary else ""),
        interval,
        f"n={figure.n_repeats}",
        "; ".join(filter(None, (against, widening_words(figure, shared)))),
    )


def _derivations(figures: Sequence[FigureResult]) -> dict[str, str]:
    """Derivation -> the figures that share it."""
    shared = grouped(
        (derivation(figure.limit, figure.attainable), figure.name) for figure in figures if figure.limit is not None
    )
    return {derivation: ", ".join(dict.fromkeys(names)) for derivation, names in shared.items()}
