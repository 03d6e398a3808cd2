"""The verdict line: counted from the results by the same judge that the rules use."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from seatrial.analysis.rules.expectation import LOW_SHARE, Judgement
from seatrial.model.finding import Severity
from seatrial.report.pages.view import TrialView
from seatrial.report.units import count, show_percent


@dataclass(frozen=True, slots=True)
class Verdict:
    """The line, and an explanation of its terms. `defects` is the number of experiments with a defect."""

    line: str
    explanation: str
    defects: int


def verdict(view: TrialView) -> Verdict:
    """Such as: "7 of 8 experiments as expected, 1 defect, 3 not measured"."""
    counts = Counter(view.judge.experiment(result) for result in view.trial.results)
    not_measured = counts.pop(Judgement.NOT_MEASURED, 0) + len(view.trial.not_measured)
    tried = counts.total()
    clauses = []
    if tried:
        clauses.append(f"{counts[Judgement.EXPECTED]} of {count(tried, 'experiment')} as expected")
    if counts[Judgement.UNJUDGED]:
        clauses.append(f"{counts[Judgement.UNJUDGED]} not judged")
    if counts[Judgement.UNSTEADY]:
        clauses.append(f"{counts[Judgement.UNSTEADY]} too unsteady to judge")
    if counts[Judgement.DEFECT]:
        clauses.append(count(counts[Judgement.DEFECT], "defect"))
    if not_measured:
        clauses.append(f"{not_measured} not measured")
    line = ", ".join(clauses) or "nothing was measured"
    if not tried and not_measured:
        line = f"nothing was measured: {line}"
    return Verdict(
        line[0].upper() + line[1:], _explanation(view, tried, counts[Judgement.UNJUDGED]), counts[Judgement.DEFECT]
    )


def _explanation(view: TrialView, tried: int, unjudged: int) -> str:
    severities = Counter(finding.severity for finding in view.trial.findings)
    counted = [
        count(severities[severity], noun)
        for severity, noun in ((Severity.ERROR, "error"), (Severity.WARNING, "warning"), (Severity.INFO, "note"))
        if severities[severity]
    ]
    text = f"Findings about the machine and the figures: {', '.join(counted)}." if counted else "No findings."
    if tried:
        text += (
            " An experiment is as expected if its checks hold, its repeats agree, and the best figure under the same "
            f"limit reaches at least {show_percent(LOW_SHARE)} of the attainable part of that limit."
        )
    if unjudged:
        text += " Experiments without a known limit, or with a better figure under the same limit, are not judged."
    return text
