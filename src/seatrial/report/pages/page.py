"""The page: one self-contained HTML file about studies and machines, which needs no network and no scripts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from seatrial.analysis.answer import answer_of_comparisons, answer_of_study
from seatrial.model.results.figure_result import ScreenResult
from seatrial.model.results.history import FigureHistory
from seatrial.model.spelling import count, few_names, show, written
from seatrial.model.study.result import Compared, StudyResult, Trial
from seatrial.profiler.profile import Profile
from seatrial.report.charts.distributions import Recorded
from seatrial.report.histories import history_article
from seatrial.report.pages.fingerprint import fact_lines, fingerprint
from seatrial.report.pages.view import Rendered, TrialView, trial_view
from seatrial.report.panels import PANELS
from seatrial.report.profile.page import profile_article
from seatrial.report.studies.answer_words import answer_sentence
from seatrial.report.studies.article import Article, Head, alarm, article, no_record, outcome_counts, whole_page
from seatrial.report.studies.best_of_words import needed_words, outlier_headline
from seatrial.report.studies.container_section import start_sections
from seatrial.report.studies.sections import (
    best_of_sections,
    comparison_sections,
    experiment_sections,
    outlier_section,
    published_sections,
    scaling_sections,
    trade_off_sections,
)
from seatrial.report.trial_verdict import verdict
from seatrial.version import __version__

_MOST_VALUES = 8


def study_article(
    result: StudyResult, number: int = 1, record: Recorded = no_record, *, is_alone: bool = True
) -> Article:
    """One study. `number` counts the studies of the page from 1; `record` gives the addresses of raw records.

    `is_alone`: nothing else is on the page, so its name is the main heading.
    """
    ident = f"s{number}"
    results = [
        *comparison_sections(result.compared, ident, record),
        *start_sections(result.results),
        *scaling_sections(result.scaling, ident),
        *best_of_sections(result.best_of, ident),
        *trade_off_sections(result.results, ident, result.given),
        *experiment_sections(result.results, record, result.given),
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
    return article(ident, head, sections, is_alone=is_alone)


def _about(result: StudyResult) -> str:
    """The varied axes, the outcomes, and the time spent."""
    axes = [
        f"{axis.name} ({few_names([written(axis.name, value) for value in axis.values], _MOST_VALUES)})"
        for axis in result.study.axes
    ]
    varied = f"Varied: {'; '.join(axes)}. " if axes else ""
    measured = f"{outcome_counts(result.results)}. " if result.results else ""
    repeats = sum(max((figure.n_repeats for figure in one.figures), default=0) for one in result.results)
    took = f" in {show(result.spent_s, 's')}" if result.spent_s > 0 else ""
    return f"{varied}{measured}{count(repeats, 'repeat')}{took}." if repeats else f"{varied}{measured}".strip()


_HISTORIES = "Figures over time"


def page(
    trials: Sequence[Trial],
    results_link: str | None = None,
    studies: Sequence[StudyResult] = (),
    profiles: Sequence[Profile] = (),
    histories: Sequence[FigureHistory] = (),
) -> str:
    """The whole file as text; see `page_pieces`."""
    return "".join(page_pieces(trials, results_link, studies, profiles, histories))


def page_pieces(
    trials: Sequence[Trial],
    results_link: str | None = None,
    studies: Sequence[StudyResult] = (),
    profiles: Sequence[Profile] = (),
    histories: Sequence[FigureHistory] = (),
) -> Iterable[str]:
    """The whole file, in pieces: the studies first, then profiles of programs, histories of figures, then the machines.

    `results_link` is the address of the results folder relative to the page, or a URL, already percent-encoded; with
    None, raw records are named but not linked. Nothing else is read.
    """
    views = [trial_view(trial, n, results_link) for n, trial in enumerate(trials, start=1)]
    is_alone = len(trials) + len(studies) + len(profiles) + bool(histories) == 1
    record = _records(views)
    return whole_page(
        _title(trials, studies, profiles),
        [
            *(study_article(one, n, record, is_alone=is_alone) for n, one in enumerate(studies, start=1)),
            *(profile_article(one, n, is_alone=is_alone) for n, one in enumerate(profiles, start=1)),
            *([history_article(histories, _HISTORIES, is_alone=is_alone)] if histories else []),
        ],
        [_article(view) for view in views],
        version=next((trial.version for trial in trials if trial.version), __version__ if studies or profiles else ""),
    )


def _records(views: Sequence[TrialView]) -> Recorded:
    """The address of the raw record of a repeat, in any trial of the page."""

    def record(experiment: str, repeat: int) -> str | None:
        links = (view.record(experiment, repeat) for view in views)
        return next((link.href for link in links if link is not None), None)

    return record


def _article(view: TrialView) -> dict[str, Any]:
    """One machine: its head and its panels."""
    sections = []
    for panel in PANELS:
        context = panel.context(view)
        if context is not None:
            html = Rendered(panel.file, view=view, panel=panel, **context)
            sections.append({"panel": panel, "anchor": view.anchor(panel.name), "html": html})
    return {
        "view": view,
        "machine": view.trial.machine,
        "verdict": verdict(view.trial, view.judge),
        "fingerprint": fingerprint(view.trial.machine),
        "facts": fact_lines(view.trial.machine),
        "privileges": view.trial.machine.facts.text("privileges"),
        "sections": sections,
    }


def _title(trials: Sequence[Trial], studies: Sequence[StudyResult], profiles: Sequence[Profile]) -> str:
    if studies or profiles:
        named = count(len(profiles), "profile")
        if studies:
            named = count(len(studies), "study", "studies") if len(studies) > 1 else f"Study {studies[0].study.name}"
        elif not trials:
            named = named.capitalize()
        return f"{named} and {machines_words(trials)}" if trials else named
    if len(trials) == 1:
        return f"Sea trial of {trials[0].machine.title}"
    return f"Sea trials of {machines_words(trials)}"


def machines_words(trials: Sequence[Trial]) -> str:
    """The number of machines: "2 machines"; "1 machine (2 configurations)" for one whose settings or kernel changed."""
    names = {trial.machine.name or str(n) for n, trial in enumerate(trials)}
    more = f" ({len(trials)} configurations)" if len(names) < len(trials) else ""
    return count(len(names), "machine") + more


_ABOUT = "This page shows stored measurements. A ratio is candidate over baseline."


def compare_page(compared: Sequence[Compared], screen: ScreenResult | None = None) -> str:
    """The whole file as text. `screen` is None if no screen was made."""
    lines = [answer_sentence(answer_of_comparisons(compared))] if compared else []
    sections = comparison_sections(compared, "s1", no_record)
    if screen is not None:
        lines.append(outlier_headline(screen))
        sections.append(outlier_section(screen))
    name = _name(compared)
    head = Head("Comparison", name, lines or ["Nothing could be compared"], about=_ABOUT, alarm=alarm(compared))
    return whole_page(name, [article("s1", head, sections, is_alone=True)]).__html__()


def _name(compared: Sequence[Compared]) -> str:
    bases = dict.fromkeys(one.baseline for one in compared)
    if not compared:
        return "Outlier screen"
    if len(compared) == 1:
        return f"{compared[0].candidate} against {compared[0].baseline}"
    return f"{len(compared)} candidates against {next(iter(bases)) if len(bases) == 1 else 'their baselines'}"
