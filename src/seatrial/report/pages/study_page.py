"""The article of a study: its results first, then the details."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from seatrial.analysis.answer.answer import answer_of_study
from seatrial.model.parameter import Value
from seatrial.model.study_result import StudyResult
from seatrial.report.charts.two_sides import Recorded
from seatrial.report.studies.answer_words import answer_sentence
from seatrial.report.studies.article import Article, Head, alarm, article, no_record
from seatrial.report.studies.container_section import start_sections
from seatrial.report.studies.experiments import experiment_sections
from seatrial.report.studies.needed_words import needed_words
from seatrial.report.studies.outcomes import outcome_counts
from seatrial.report.studies.published import published_sections
from seatrial.report.studies.sections import best_of_sections, comparison_sections, scaling_sections
from seatrial.report.units import count, show, written

if TYPE_CHECKING:
    from jinja2 import Environment

_MOST_VALUES = 8


def study_article(
    environment: Environment,
    result: StudyResult,
    number: int = 1,
    record: Recorded = no_record,
    *,
    is_alone: bool = True,
) -> Article:
    """One study. `number` counts the studies of the page from 1; `record` gives the addresses of raw records.

    `is_alone`: nothing else is on the page, so its name is the main heading.
    """
    ident = f"s{number}"
    results = [
        *comparison_sections(result.compared, ident, record),
        *start_sections(result.results),
        *scaling_sections(result.scaling, ident),
        *best_of_sections(result.best_of),
        *experiment_sections(result.results, record),
    ]
    place = next((at for at, section in enumerate(results, start=1) if section.name == "verdicts"), 1)
    sections = [*results[:place], *published_sections(result.study), *results[place:]]
    answer = answer_of_study(result)
    head = Head(
        "Study",
        result.study.name,
        [answer_sentence(answer)],
        question=result.study.question,
        about=_about(result),
        alarm=alarm(result.compared),
        needed=needed_words(answer),
    )
    return article(environment, ident, head, sections, is_alone=is_alone)


def _about(result: StudyResult) -> str:
    """The varied axes, the outcomes, and the time spent."""
    axes = [f"{axis.name} ({_values(axis.name, axis.values)})" for axis in result.study.axes]
    varied = f"Varied: {'; '.join(axes)}. " if axes else ""
    measured = f"{outcome_counts(result.results)}. " if result.results else ""
    repeats = sum(max((figure.n_repeats for figure in one.figures), default=0) for one in result.results)
    took = f" in {show(result.spent_s, 's')}" if result.spent_s > 0 else ""
    return f"{varied}{measured}{count(repeats, 'repeat')}{took}." if repeats else f"{varied}{measured}".strip()


def _values(name: str, values: Sequence[Value | None]) -> str:
    spelled = [written(name, value) for value in values]
    more = f" and {len(spelled) - _MOST_VALUES} more" if len(spelled) > _MOST_VALUES else ""
    return ", ".join(spelled[:_MOST_VALUES]) + more
