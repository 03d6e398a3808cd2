"""The page: one self-contained HTML file about studies and machines, which needs no network and no scripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from seatrial.model.history import FigureHistory
from seatrial.model.study_result import StudyResult
from seatrial.model.trial import Trial
from seatrial.profiler.profile import Profile
from seatrial.report.charts.two_sides import Recorded
from seatrial.report.histories.article import history_article
from seatrial.report.pages.fingerprint import fact_lines, fingerprint
from seatrial.report.pages.study_page import study_article
from seatrial.report.pages.templating import Verbatim, style_sheet, templates
from seatrial.report.pages.view import TrialView, trial_view
from seatrial.report.panels import PANELS
from seatrial.report.profile.page import profile_article
from seatrial.report.trial_verdict import verdict
from seatrial.report.units import count
from seatrial.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

_HISTORIES = "Figures over time"


def page(
    trials: Sequence[Trial],
    results_link: str | None = None,
    studies: Sequence[StudyResult] = (),
    profiles: Sequence[Profile] = (),
    histories: Sequence[FigureHistory] = (),
) -> str:
    """The whole file as text: the studies first, then profiles of programs, histories of figures, then the machines.

    `results_link` is the address of the results folder relative to the page, or a URL, already percent-encoded; with
    None, raw records are named but not linked. Nothing else is read.
    """
    environment = templates()
    views = [trial_view(trial, n, results_link) for n, trial in enumerate(trials, start=1)]
    is_alone = len(trials) + len(studies) + len(profiles) + bool(histories) == 1
    record = _records(views)
    return environment.get_template("page.html.j2").render(
        title=_title(trials, studies, profiles),
        style=style_sheet(),
        studies=[
            *(study_article(environment, one, n, record, is_alone=is_alone) for n, one in enumerate(studies, start=1)),
            *(profile_article(environment, one, n, is_alone=is_alone) for n, one in enumerate(profiles, start=1)),
            *([history_article(environment, histories, _HISTORIES, is_alone=is_alone)] if histories else []),
        ],
        articles=[_article(environment, view) for view in views],
        version=next((trial.version for trial in trials if trial.version), __version__ if studies or profiles else ""),
    )


def _records(views: Sequence[TrialView]) -> Recorded:
    """The address of the raw record of a repeat, in any trial of the page."""

    def record(experiment: str, repeat: int) -> str | None:
        links = (view.record(experiment, repeat) for view in views)
        return next((link.href for link in links if link is not None), None)

    return record


def _article(environment: Environment, view: TrialView) -> dict[str, Any]:
    """One machine: its head and its panels."""
    sections = []
    for panel in PANELS:
        context = panel.context(view)
        if context is not None:
            template = environment.get_template(panel.file)
            html = template.render(view=view, panel=panel, **context)
            sections.append({"panel": panel, "anchor": view.anchor(panel.name), "html": Verbatim(html)})
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
    if profiles and not studies:
        named = count(len(profiles), "profile")
        return f"{named} and {count(len(trials), 'machine')}" if trials else named.capitalize()
    if studies:
        named = f"Study {studies[0].study.name}" if len(studies) == 1 else count(len(studies), "study", "studies")
        return f"{named} and {count(len(trials), 'machine')}" if trials else named
    if len(trials) == 1:
        return f"Sea trial of {trials[0].machine.name or 'a machine'}"
    return f"Sea trials of {len(trials)} machines"
