"""Comparisons, scaling and sweeps as text for a terminal: the verdicts, and the evidence behind them."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.analysis.answer import answer_of_comparisons, answer_of_study
from seatrial.model.results.figure_result import ScreenResult
from seatrial.model.spelling import count, settings
from seatrial.model.study.answer import Answer
from seatrial.model.study.comparison import Breakdown, Difference, Verdict
from seatrial.model.study.result import BestOfResult, Compared, ScalingResult, StudyResult
from seatrial.report.blocks import Detail, Tone
from seatrial.report.charts.scaling import scaling_table
from seatrial.report.studies import best_of_words, change_words, scaling_words
from seatrial.report.studies.answer_words import answer_line
from seatrial.report.studies.article import outcome_counts
from seatrial.report.studies.container_section import alike_line, cost_lines, fact_rows, is_stated_by_facts
from seatrial.report.studies.design import design_lines, fairness_headline, said_once, spoken, unintended_first
from seatrial.report.studies.sections import published_lines
from seatrial.report.studies.verdicts import Statement, comparison_table, headline, in_order_of_sizes, ratio_note
from seatrial.report.text.results import few, not_run, results_text
from seatrial.report.text.terminal import PLAIN, Style, joined, plain, rows_of, sentences, side_text

_MOST_VERDICTS = 6
_MOST_PLACES = 3
_TONES: dict[Verdict, Tone] = {Verdict.SLOWER: "error", Verdict.FASTER: "direct", Verdict.AMBIGUOUS: "warning"}


def compare_text(
    compared: Sequence[Compared],
    screen: ScreenResult | None = None,
    *,
    answer: Answer | None = None,
    style: Style = PLAIN,
    detail: Detail = Detail.FULL,
) -> str:
    """The output of `seatrial compare` (`answer`: None), or of a study of commands with its answer, without a trailing
    newline: the answer, unintended differences, and the verdicts; in brief, the answer alone, and of a screen its
    headline; in full, also tables, the design and every intended difference. `screen` is None if there was no
    screening.
    """
    answer = answer or (answer_of_comparisons(compared) if compared else None)
    blocks = [] if answer is None else [_answer(answer, style)]
    if screen is not None:
        is_brief = detail is Detail.BRIEF
        blocks.append(_title(best_of_words.outlier_headline(screen), style) if is_brief else _outliers(screen, style))
    blocks += _compared(compared, style, detail)
    return joined(blocks) or "nothing to compare"


def study_text(result: StudyResult, *, style: Style = PLAIN, detail: Detail = Detail.FULL) -> str:
    """The answer of a study, its question, the comparisons, and the experiments without a result; in brief, the answer
    alone; in full, all tables."""
    blocks = [_answer(answer_of_study(result), style)]
    if detail is Detail.BRIEF:
        return joined(blocks)
    blocks.append(f"{_title(result.study.name, style)}: {plain(result.study.question)}")
    blocks += _compared(result.compared, style, detail)
    said: set[str] = set()
    blocks += [_scaling(one, style, said, detail) for one in result.scaling]
    blocks += [_best_of(one, style, said, detail) for one in result.best_of]
    if not (any(one.comparisons for one in result.compared) or result.scaling or result.best_of):
        blocks.append(results_text(result.results, style, detail))  # the study compares nothing
    else:
        blocks.append(_without_figures(result, style, detail))
    published = published_lines(result.study)
    blocks.append("\n".join(line for lead, text in published for line in sentences([text], style, lead)))
    return joined(blocks)


def _answer(answer: Answer, style: Style) -> str:
    """The answer; its first sentence is what qualifies all below it (what had no CPU, or the load beside it)."""
    return "\n".join(style.paint(line, "heading") for line in sentences([answer_line(answer)], style, "answer: "))


def _title(text: str, style: Style) -> str:
    return style.paint(plain(text), "heading")


def _compared(compared: Sequence[Compared], style: Style, detail: Detail) -> list[str]:
    if not compared or detail is Detail.BRIEF:
        return []
    is_full = detail is Detail.FULL
    title = _title(headline(compared), style) if is_full else ""
    where = [_containers(one, style) for one in compared if one.containers is not None]
    where += [_breakdown(one, style, detail) for one in change_words.breakdowns_of(compared)]
    lost = dict.fromkeys(f"not compared: {text}" for one in compared for text in one.lost)
    left_out = "\n".join(sentences(lost, style, ""))
    is_empty = not any(one.comparisons for one in compared)
    if is_empty and not where and (left_out or not any(one.differences for one in compared)):
        return [title, left_out]
    differences = _fairness(compared, style, detail)
    aspects = [(f"{one.name.lower()}: ".ljust(9), one.text) for one in design_lines(compared) if one.is_weak or is_full]
    design = "\n".join(line for lead, text in aspects for line in sentences([text], style, lead))
    return [title, left_out, differences, _verdicts(compared, style, detail), *where, design]


def _without_figures(result: StudyResult, style: Style, detail: Detail) -> str:
    """The experiments without figures, and why; "" if all have some, but for the whole text."""
    shared = {reason: alike for reason, alike in not_run(result.results).items() if len(alike) > 1}
    texts = []
    for (state, reason), alike in shared.items():
        names = few(one.experiment.benchmark for one in alike)
        texts.append(f"{state}: {len(alike)} experiments of {names}: {reason}")
    for one in result.results:
        if not one.shown and (one.outcome.state, one.outcome.reason) not in shared:
            named = f"{one.experiment.benchmark} {settings(one.experiment.parameters)}".rstrip()
            texts.append(f"{one.outcome.state}: {named}: {one.outcome.reason}")
    shown = texts if detail is Detail.FULL else texts[:_MOST_VERDICTS]
    if len(texts) > len(shown):
        shown = [*shown, f"and {count(len(texts) - len(shown), 'more experiment')} (--verbose shows all)"]
    counts = [outcome_counts(result.results)] if result.results and (texts or detail is Detail.FULL) else []
    return "\n".join([*counts, *sentences(shown, style)])


def _fairness(compared: Sequence[Compared], style: Style, detail: Detail) -> str:
    pairs = unintended_first(compared)
    unintended = [(one, difference) for one, difference in pairs if not difference.intended]
    intended = [pair for pair in pairs if pair[1].intended and not is_stated_by_facts(*pair)]
    lines = [style.paint(fairness_headline(compared), "error" if unintended else "heading")]
    several = len(compared) > 1
    if unintended:
        lines.append(style.table([_difference(one, difference, several) for one, difference in unintended]))
    if intended and detail is Detail.FULL:
        lines.append("intended:")
        lines.append(style.table([_difference(one, difference, several) for one, difference in intended]))
    return "\n".join(lines)


def _difference(compared: Compared, one: Difference, several: bool) -> list[str]:
    of = [f"{side_text(compared.candidate)}:"] * several
    cells = [*of, plain(one.what), side_text(one.baseline), "->", side_text(one.candidate)]
    return [*cells, f"(follows from {plain(one.follows_from)})"] if one.follows_from else cells


def _verdicts(compared: Sequence[Compared], style: Style, detail: Detail) -> str:
    pairs = in_order_of_sizes(compared)
    if not pairs:
        return ""
    is_full = detail is Detail.FULL
    made = spoken(compared)
    shown = made if is_full else made[:_MOST_VERDICTS]
    blocks = ["\n".join(_statement(statement, style, is_full=is_full)) for statement in shown]
    if len(made) > len(shown):
        blocks.append(f"and {count(len(made) - len(shown), 'more verdict')} (--verbose shows all)")
    if not is_full:
        return "\n".join(blocks)
    table = comparison_table([(subject, comparison) for comparison, subject in pairs])
    rows = rows_of(table, style)
    note = sentences([ratio_note(comparison for comparison, _ in pairs)], style)
    return "\n".join([*blocks, "", style.table(rows, has_head=True), *note])


def _statement(one: Statement, style: Style, *, is_full: bool) -> list[str]:
    lines = style.wrapped(f"{plain(one.subject)}: {plain(one.sentence)}", f"{one.word} ", "  ")
    word = style.paint(one.word, _TONES.get(one.comparison.verdict, "near"))
    lines[0] = word + lines[0][len(one.word) :]
    return lines + sentences((one.hint, one.note) if is_full else (one.note,), style)


def _containers(one: Compared, style: Style) -> str:
    """What the container changes: the facts that differ, and what costs. The overheads are in the verdicts."""
    if one.containers is None:
        return ""
    lines = [_title(f"What the container changes: {one.candidate} against {one.baseline}", style)]
    rows = [[name, side_text(first), "->", side_text(second)] for name, first, second in fact_rows(one.containers)]
    if rows:
        lines.append(style.table([[plain(cell) for cell in row] for row in rows]))
    return "\n".join([*lines, *sentences((alike_line(one.containers), *cost_lines(one)), style)])


def _breakdown(one: Breakdown, style: Style, detail: Detail) -> str:
    """Where the difference comes from: the sentence, then the parts."""
    lines = [_title(f"Where the difference comes from: {change_words.breakdown_title(one)}", style)]
    lines += sentences((f"{change_words.breakdown_sentence(one)}.", *change_words.change_lines(one)), style)
    if detail is Detail.FULL and (table := change_words.breakdown_table(one)) is not None:
        lines.append(style.table(rows_of(table), has_head=True))
    return "\n".join([*lines, *sentences(change_words.breakdown_lines(one), style)])


def _scaling(result: ScalingResult, style: Style, said: set[str], detail: Detail) -> str:
    subject = f"{result.benchmark} {result.figure} over {result.along} ({result.kind} scaling)"
    lost = [
        f"no result at {scaling_words.workers(result, point.workers)}: {point.reason or 'no reason given'}"
        for point in result.points
        if point.value is None
    ]
    if detail is not Detail.FULL:
        return "\n".join([f"{_title(subject, style)}: {scaling_words.ends_words(result)}", *sentences(lost, style)])
    texts = [
        scaling_words.scaling_design(result),
        scaling_words.crossing_words(result),
        *(scaling_words.fit_words(result, fit) for fit in result.fits),
    ]
    shown = (*lost, *said_once((*texts, scaling_words.no_fit_words(result)), said))
    table = style.table(rows_of(scaling_table(result)), has_head=True)
    return "\n".join([_title(subject, style), table, *sentences(shown, style)])


def _best_of(result: BestOfResult, style: Style, said: set[str], detail: Detail) -> str:
    head, *rows = rows_of(best_of_words.contenders_table(result))
    most = len(rows) if detail is Detail.FULL else _MOST_PLACES
    texts = [f"and {count(len(rows) - most, 'more contender')} (--verbose shows all)"] if len(rows) > most else []
    if detail is Detail.FULL:
        texts += said_once(best_of_words.best_of_lines(result), said)
    table = style.table([head, *rows[:most]], has_head=True)
    return "\n".join([_title(best_of_words.best_of_figure(result), style), table, *sentences(texts, style)])


def _outliers(screen: ScreenResult, style: Style) -> str:
    lines = [_title(best_of_words.outlier_headline(screen), style)]
    table = best_of_words.outlier_table(screen.outliers)
    if table is not None:
        lines.append(style.table(rows_of(table), has_head=True))
    return "\n".join([*lines, *sentences(best_of_words.outlier_lines(screen), style)])
