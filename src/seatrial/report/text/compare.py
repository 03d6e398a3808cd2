"""Comparisons, scaling and sweeps as text for a terminal: the verdicts, and the evidence behind them."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.analysis.answer import answer_of_comparisons, answer_of_study
from seatrial.model.results.figure_result import ScreenResult
from seatrial.model.spelling import count, settings
from seatrial.model.study.answer import Answer
from seatrial.model.study.comparison import decisive
from seatrial.model.study.result import BestOfResult, Compared, ScalingResult, StudyResult
from seatrial.report.blocks import Detail
from seatrial.report.studies import best_of_words, scaling_words
from seatrial.report.studies.answer_words import answer_line
from seatrial.report.studies.article import no_record, outcome_counts
from seatrial.report.studies.sections import (
    best_of_sections,
    comparison_sections,
    outlier_section,
    published_sections,
    scaling_sections,
)
from seatrial.report.text.blocks import section_text, sections_text
from seatrial.report.text.results import few, not_run, results_text
from seatrial.report.text.terminal import PLAIN, Style, joined, plain, rows_of, sentences

_MOST_LOST = 6
_IDENT = "s1"
"""Of charts, which are not drawn here."""
_MOST_PLACES = 3


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
        found = _title(best_of_words.outlier_headline(screen), style)
        is_brief = detail is Detail.BRIEF
        blocks.append(found if is_brief else f"{found}\n{section_text(outlier_section(screen), style, detail)}")
    blocks.append(_compared(compared, style, detail))
    return joined(blocks) or "nothing to compare"


def study_text(result: StudyResult, *, style: Style = PLAIN, detail: Detail = Detail.FULL) -> str:
    """The answer of a study, its question, the comparisons, and the experiments without a result; in brief, the answer
    alone; in full, all tables."""
    blocks = [_answer(answer_of_study(result), style)]
    if detail is Detail.BRIEF:
        return joined(blocks)
    blocks.append(f"{_title(result.study.name, style)}: {plain(result.study.question)}")
    blocks.append(_compared(result.compared, style, detail))
    if detail is Detail.FULL:
        found = [*scaling_sections(result.scaling, _IDENT), *best_of_sections(result.best_of, _IDENT)]
        blocks.append(sections_text([*published_sections(result.study), *found], style, detail))
    else:
        blocks += [_scaling(one, style) for one in decisive(result.scaling)]
        blocks += [_best_of(one, style) for one in result.best_of]
    if not (any(one.comparisons for one in result.compared) or result.scaling or result.best_of):
        blocks.append(results_text(result.results, style, detail))  # the study compares nothing
    else:
        blocks.append(_without_figures(result, style, detail))
    return joined(blocks)


def _answer(answer: Answer, style: Style) -> str:
    """The answer; its first sentence is what qualifies all below it (what had no CPU, or the load beside it)."""
    return "\n".join(style.paint(line, "heading") for line in sentences([answer_line(answer)], style, "answer: "))


def _title(text: str, style: Style) -> str:
    return style.paint(plain(text), "heading")


def _compared(compared: Sequence[Compared], style: Style, detail: Detail) -> str:
    """What was not compared, what else differs, the verdicts; in full, all tables."""
    if detail is Detail.BRIEF:
        return ""
    return sections_text(comparison_sections(compared, _IDENT, no_record), style, detail)


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
    shown = texts if detail is Detail.FULL else texts[:_MOST_LOST]
    if len(texts) > len(shown):
        shown = [*shown, f"and {count(len(texts) - len(shown), 'more experiment')} (--verbose shows all)"]
    counts = [outcome_counts(result.results)] if result.results and (texts or detail is Detail.FULL) else []
    return "\n".join([*counts, *sentences(shown, style)])


def _scaling(result: ScalingResult, style: Style) -> str:
    """One line, and the points without a result."""
    subject = f"{result.benchmark} {result.figure} over {result.along} ({result.kind} scaling)"
    lost = [
        f"no result at {scaling_words.workers(result, point.workers)}: {point.reason or 'no reason given'}"
        for point in scaling_words.failed(result)
    ]
    return "\n".join([f"{_title(subject, style)}: {scaling_words.ends_words(result)}", *sentences(lost, style)])


def _best_of(result: BestOfResult, style: Style) -> str:
    """The first contenders."""
    head, *rows = rows_of(best_of_words.contenders_table(result))
    more = len(rows) - _MOST_PLACES
    texts = [f"and {count(more, 'more contender')} (--verbose shows all)"] if more > 0 else []
    table = style.table([head, *rows[:_MOST_PLACES]], has_head=True)
    return "\n".join([_title(best_of_words.best_of_figure(result), style), table, *sentences(texts, style)])
