"""The verdict on a machine in one line: what is as expected, what is wrong, what to do next.

It is counted from the results by the judge that the rules use, and is the same on the terminal, on the page and in
JSON. It counts what was asked for: what a machine cannot have, or was not requested, is listed and not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from seatrial.analysis.missing_cpus import missing_cpus
from seatrial.analysis.rules.expectation import LOW_SHARE, Judge, Judgement
from seatrial.analysis.rules.finding import NO_CPU_RULE
from seatrial.model.frozen import Frozen
from seatrial.model.machine.fact import Finding, Severity
from seatrial.model.results.no_cpu import NoCpu
from seatrial.model.results.sample import NO_TIME
from seatrial.model.spelling import count, show_percent
from seatrial.model.study.result import Trial
from seatrial.report.first_sentence import first_of_results


class TrialVerdict(Frozen):
    """`line` counts the experiments, `wrong` and `todo` are of the most important finding ("" if nothing is wrong).

    `explanation` defines the terms; `measured` and `expected` are numbers of experiments, `defects` of those with a
    defect. `first` is what qualifies all of them: programs that had no CPU, or else what used CPUs beside them ("":
    nothing). `is_said_first`: `wrong` says no more than it. All texts are without a full stop.
    """

    line: str
    wrong: str
    todo: str
    explanation: str
    measured: int
    expected: int
    defects: int
    first: str = ""
    no_cpu: tuple[NoCpu, ...] = ()
    is_said_first: bool = False

    @property
    def sentence(self) -> str:
        """All in one line: "14 of 15 experiments as expected, 1 defect; wrong: ...; next: ..."; after the sentence
        that qualifies it."""
        wrong = "" if self.is_said_first else self.wrong
        parts = [self.line, f"wrong: {wrong}" if wrong else "", f"next: {self.todo}" if self.todo else ""]
        return f"{self.first}. {'; '.join(filter(None, parts))}.".removeprefix(". ")


def verdict(trial: Trial, judge: Judge | None = None) -> TrialVerdict:
    """The verdict on a trial; `judge` is that of its results, if there is one already."""
    judge = Judge(trial.results) if judge is None else judge
    counts = Counter(judge.experiment(result) for result in trial.results)
    not_measured = counts.pop(Judgement.NOT_MEASURED, 0) + len(trial.not_measured)
    no_time = sum(result.outcome.reason.startswith(NO_TIME) for result in trial.results)
    tried = counts.total()
    clauses = _counted(counts)
    if no_time:
        clauses.append(f"{no_time} not measured: no time left")
    wrong, todo = _worst(trial.findings)
    if no_time and not todo:
        todo = "run it again with a larger budget, which measures what is missing"
    return TrialVerdict(
        line=", ".join(clauses) or "Nothing was measured",
        wrong=wrong,
        todo=todo,
        explanation=_explanation(trial.findings, tried, counts[Judgement.UNJUDGED], not_measured),
        measured=tried,
        expected=counts[Judgement.EXPECTED],
        defects=counts[Judgement.DEFECT],
        first=first_of_results(trial.results),
        is_said_first=bool(trial.findings) and trial.findings[0].rule == NO_CPU_RULE,
        no_cpu=missing_cpus(trial.results),
    )


def _counted(counts: Mapping[Judgement, int]) -> list[str]:
    """A clause for each judgement. What is too unsteady to judge comes first: it limits all that follows."""
    tried = sum(counts.values())
    if not tried:
        return []
    words = {
        Judgement.UNSTEADY: "too unsteady to judge",
        Judgement.EXPECTED: "as expected",
        Judgement.UNJUDGED: "not judged",
    }
    found = [(counts[one], said) for one, said in words.items() if counts[one] or one is Judgement.EXPECTED]
    (number, said), *others = found
    clauses = [f"{number} of {count(tried, 'experiment')} {said}", *(f"{number} {said}" for number, said in others)]
    return clauses + ([count(counts[Judgement.DEFECT], "defect")] if counts[Judgement.DEFECT] else [])


def _worst(findings: Sequence[Finding]) -> tuple[str, str]:
    """Observation and remedy of the most important finding: an error before a warning, then by loss."""
    for severity in (Severity.ERROR, Severity.WARNING):
        found = [finding for finding in findings if finding.severity is severity]
        if found:
            others = sum(one.severity is not Severity.INFO for one in findings) - 1
            more = f" (and {count(others, 'more finding')})" if others else ""
            return f"{_bare(found[0].observation)}{more}", _bare(found[0].remedy)
    return "", ""


def _bare(text: str) -> str:
    return " ".join(text.split()).removesuffix(".")


def _explanation(findings: Sequence[Finding], tried: int, unjudged: int, not_measured: int) -> str:
    counted = findings_counted(findings)
    text = f"Findings about the machine and the figures: {counted}." if counted else "No findings."
    if tried:
        text += (
            " An experiment is as expected if its checks hold, its repeats agree, and the best figure under the same "
            f"limit reaches at least {show_percent(LOW_SHARE)} of the attainable part of that limit."
        )
    if unjudged:
        text += " Experiments without a known limit, with a better figure under the same limit, or without a CPU "
        text += "for part of their time, are not judged."
    if not_measured:
        text += " What cannot be measured here, or was not requested, is listed below and not counted."
    return text


def findings_counted(findings: Sequence[Finding]) -> str:
    """The number of findings of each severity: "1 error, 2 notes"; "" without findings."""
    counts = Counter(finding.severity for finding in findings)
    nouns = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
    return ", ".join(count(counts[severity], noun) for severity, noun in nouns.items() if counts[severity])
