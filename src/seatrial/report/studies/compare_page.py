"""The page of one comparison, or of an outlier screen, as a separate file."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.analysis.answer.answer import answer_of_comparisons
from seatrial.model.results.figure_result import ScreenResult
from seatrial.model.study.result import Compared
from seatrial.report.studies.answer_words import answer_sentence
from seatrial.report.studies.article import Head, Section, alarm, article, no_record, whole_page
from seatrial.report.studies.best_of_words import outlier_headline, outlier_lines, outlier_table
from seatrial.report.studies.sections import comparison_sections

_ABOUT = "This page shows stored measurements. A ratio is candidate over baseline."


def compare_page(compared: Sequence[Compared], screen: ScreenResult | None = None) -> str:
    """The whole file as text. `screen` is None if no screen was made."""
    lines = [answer_sentence(answer_of_comparisons(compared))] if compared else []
    sections = comparison_sections(compared, "s1", no_record)
    if screen is not None:
        lines.append(outlier_headline(screen))
        context = {"lines": outlier_lines(screen), "table": outlier_table(screen.outliers) if screen.outliers else None}
        sections.append(Section("outliers", "Outliers", "outliers", context))
    name = _name(compared)
    head = Head("Comparison", name, lines or ["Nothing could be compared"], about=_ABOUT, alarm=alarm(compared))
    return whole_page(name, [article("s1", head, sections, is_alone=True)])


def _name(compared: Sequence[Compared]) -> str:
    bases = dict.fromkeys(one.baseline for one in compared)
    if not compared:
        return "Outlier screen"
    if len(compared) == 1:
        return f"{compared[0].candidate} against {compared[0].baseline}"
    return f"{len(compared)} candidates against {next(iter(bases)) if len(bases) == 1 else 'their baselines'}"
