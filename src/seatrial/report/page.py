"""The page: one self-contained HTML file about one or several machines, readable without network and without script."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from seatrial.model.trial import Trial
from seatrial.report.fingerprint import fact_lines, fingerprint
from seatrial.report.panels import PANELS
from seatrial.report.units import show_percent
from seatrial.report.verdict import verdict
from seatrial.report.view import TrialView, trial_view

if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATES = Path(__file__).parent / "templates"
_CODE = re.compile(r"`([^`\n]+)`")


def page(trials: Sequence[Trial], results_link: str | None = None) -> str:
    """The whole file as text.

    `results_link` is the address of the results folder as seen from where the page will lie (a relative path or a URL,
    already percent-encoded); None leaves raw records named but not linked. Nothing is read but the trials.
    """
    environment = _environment()
    articles = [_article(environment, trial_view(trial, n, results_link)) for n, trial in enumerate(trials, start=1)]
    style = (_TEMPLATES / "style.css").read_text(encoding="utf-8")
    return environment.get_template("page.html.j2").render(
        title=_title(trials),
        style=_verbatim(style),
        articles=articles,
        version=next((trial.version for trial in trials if trial.version), ""),
    )


def _article(environment: Environment, view: TrialView) -> dict[str, Any]:
    """One machine: its head, and the panels that have something to say."""
    sections = []
    for panel in PANELS:
        context = panel.context(view)
        if context is not None:
            template = environment.get_template(panel.file)
            html = template.render(view=view, panel=panel, **context)
            sections.append({"panel": panel, "anchor": view.anchor(panel.name), "html": _verbatim(html)})
    return {
        "view": view,
        "machine": view.trial.machine,
        "verdict": verdict(view),
        "fingerprint": fingerprint(view.trial.machine),
        "facts": fact_lines(view.trial.machine),
        "privileges": view.trial.machine.facts.text("privileges"),
        "sections": sections,
    }


def _title(trials: Sequence[Trial]) -> str:
    if len(trials) == 1:
        return f"Sea trial of {trials[0].machine.name or 'a machine'}"
    return f"Sea trials of {len(trials)} machines"


def _environment() -> Environment:
    import jinja2  # loaded only when a page is written

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["code"] = _with_code
    environment.filters["percent"] = show_percent
    return environment


def _with_code(text: str) -> Markup:
    """Text in which `backticks` become code; everything else is escaped."""
    pieces = _CODE.split(text)
    marked = [Markup("<code>{}</code>").format(piece) if n % 2 else escape(piece) for n, piece in enumerate(pieces)]
    return Markup("").join(marked)


class _Verbatim:
    """Text that was rendered with autoescaping already, or is ours as it stands (the style sheet)."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __html__(self) -> str:
        return self._text


def _verbatim(text: str) -> _Verbatim:
    return _Verbatim(text)
