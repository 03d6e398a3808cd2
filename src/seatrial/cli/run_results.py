"""What `seatrial run` prints of its results, and the exit status that they give."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from seatrial.analysis.reference_check import ReferenceCheck, checked_references, stored_references
from seatrial.analysis.results import RunResult
from seatrial.cli.compare import reference_status, verdict_status
from seatrial.cli.output import FailOn, Output, message, print_json, style_of
from seatrial.cli.programs import print_comparison
from seatrial.model.frozen import Frozen
from seatrial.model.results.figure_result import ExperimentResult
from seatrial.model.results.sample import State
from seatrial.model.study.result import StudyResult
from seatrial.report.blocks import Detail
from seatrial.report.documents.compare import study_document
from seatrial.report.documents.results import results_document
from seatrial.report.text.check import problems_text
from seatrial.report.text.compare import study_text
from seatrial.report.text.references import references_text
from seatrial.report.text.results import few, results_text
from seatrial.report.text.terminal import Style, clean, joined
from seatrial.report.trial_verdict import verdict

_MOST_REASONS = 12


class Printer(Frozen):
    """Prints what a run found into the folder `results`; `named`: its benchmarks were named."""

    results: Path
    named: bool
    fail_on: FailOn | None
    out: Output

    def found(self, found: RunResult) -> int:
        """Print results; the exit status."""
        if found.problem is not None:
            message(f"seatrial: {found.problem}")
        checks = self._references(found)
        if self.out.as_json:
            document = results_document(found.experiments, found.environments, found.trial, checks)
            print_json(document if found.study is None else {**document, "study": study_document(found.study)})
        else:
            text = self._text(found, style_of(sys.stdout))
            print(joined([references_text(checks, style_of(sys.stdout)), text] if checks else [text]))
        return self._status(found, checks)

    def _text(self, found: RunResult, style: Style) -> str:
        """Of a trial: the answer, and what is wrong, the costliest first (in full, also its figures, which are on the
        page). Else the figures, or the result of the study."""
        is_full = self.out.detail is Detail.FULL
        if found.study is not None:
            return study_text(found.study, style=style, detail=self.out.detail)
        if found.trial is None:
            return _by_environment(found, style, self.out.detail)
        answer = "\n".join(style.wrapped(clean(verdict(found.trial).sentence), "answer: "))
        figures = _by_environment(found, style, Detail.FULL) if is_full else ""
        return joined([figures, answer, problems_text(found.trial.findings, style)])

    def compared(self, found: RunResult) -> int:
        """Print the comparison of programs; the exit status."""
        if found.problem is not None:
            message(f"seatrial: {found.problem}")
        print_comparison(found, self.out)
        checks = self._references(found)
        if checks and not self.out.as_json:
            print(references_text(checks, style_of(sys.stdout)))
        return self._status(found, checks)

    def _references(self, found: RunResult) -> tuple[ReferenceCheck, ...] | None:
        """The figures beside stored references; None if these are not asked for."""
        if self.fail_on is not FailOn.REFERENCE:
            return None
        named = found.study.study.references if found.study is not None else ()
        return checked_references(stored_references(named), found.experiments)

    def _status(self, found: RunResult, checks: Sequence[ReferenceCheck] | None) -> int:
        """Print where the records are, and what is missing; the exit status."""
        if not self.out.as_json:
            folder = shlex.quote(str(self.results))
            self.out.announce(f"records: {self.results}; the page: seatrial report {folder} -o FILE.html")
        for line in nothing_measured(found.experiments):
            message(line)
        status = exit_status(found.experiments, named=self.named) or compared_status(found.study)
        if checks is not None:
            return status or reference_status(checks)
        return status or verdict_status(found.study.compared if found.study else (), self.fail_on)


def compared_status(study: StudyResult | None) -> int:
    """3 if a study was to compare, and nothing was compared; else 0."""
    if study is None or study.study.compare is None or any(one.comparisons for one in study.compared):
        return 0
    message("nothing was compared")
    return 3


def _by_environment(found: RunResult, style: Style, detail: Detail) -> str:
    """The results; if experiments chose different environments, grouped by choice and resolved environment."""
    if len(set(found.choices.values())) <= 1:
        return results_text(found.experiments, style, detail)

    def heading(result: ExperimentResult) -> str:
        chosen = found.choices[result.id].text or "the default environment"
        document = found.environments.get(result.experiment.environment)
        return f"In {chosen}" + ("" if document is None else f" ({document.get('name', '')})")

    groups = groupby(found.experiments, heading)
    return "\n\n".join(f"{title}\n\n{results_text(list(group), style, detail)}" for title, group in groups)


def exit_status(results: Sequence[ExperimentResult], *, named: bool) -> int:
    """3 if an experiment failed, timed out or is invalid, or a named benchmark is unsupported, or none has a result;
    else 0."""
    bad = {State.FAILED, State.TIMED_OUT, State.INVALID} | ({State.UNSUPPORTED} if named else set())
    states = [result.outcome.state for result in results]
    return 0 if State.OK in states and bad.isdisjoint(states) else 3


def nothing_measured(results: Sequence[ExperimentResult]) -> list[str]:
    """What was missing, if no experiment has a result; else []."""
    if any(result.outcome.is_ok for result in results):
        return []
    reasons: dict[tuple[str, str], list[str]] = {}
    for result in results:
        reasons.setdefault((result.outcome.state.value, result.outcome.reason), []).append(result.experiment.benchmark)
    lines = [
        f"  {few(names)}: {state}{f' ({len(names)} experiments)' if len(names) > 1 else ''}: {reason}"
        for (state, reason), names in list(reasons.items())[:_MOST_REASONS]
    ]
    more = len(reasons) - len(lines)
    return ["nothing was measured", *lines, *([f"  and {more} more reasons"] if more else [])]
