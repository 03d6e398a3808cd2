"""Rules about experiments that gave no figures although they should have."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.analysis.rules.again import again
from seatrial.analysis.rules.case import Case
from seatrial.analysis.rules.words import Names, listed
from seatrial.model.figure_result import ExperimentResult
from seatrial.model.finding import Finding, Severity
from seatrial.model.outcome import Outcome, Stage, State
from seatrial.model.spelling import count

_SAID = {State.INVALID: "is invalid", State.FAILED: "failed", State.TIMED_OUT: "did not end in time"}
_MEANS = {
    State.INVALID: "It ran, but a check of its results failed, so no number of it may be believed and none is shown. "
    "The raw samples are kept.",
    State.FAILED: "It gave no result.",
    State.TIMED_OUT: "It took much longer than planned and was ended with all its children: it hangs, or the machine "
    "is far slower than expected.",
}
_WHAT_TO_DO = {
    Stage.BUILD: "Read the compiler's message below; see which compilers are found with `seatrial list`, then",
    Stage.LAUNCH: "See that the program can be started here (memory, CPU mask, a folder mounted noexec), then",
    Stage.RUN: "Read the end of its output below and look for kills with `sudo dmesg | tail`, then",
    Stage.RECORD: "See that the results folder can be written and has space (`df -h .`), then",
}


def no_figures(case: Case) -> Iterator[Finding]:
    """Fires for every experiment that is invalid, failed or timed out; those with one reason make one finding."""
    names = Names(case.results)
    groups: dict[tuple[State, str], list[ExperimentResult]] = {}
    for result in case.results:
        if result.outcome.state in _SAID:
            groups.setdefault((result.outcome.state, result.outcome.reason), []).append(result)
    for (state, reason), results in groups.items():
        first = results[0]
        others = f" So it went with {count(len(results) - 1, 'more experiment')}." if len(results) > 1 else ""
        yield Finding(
            rule=f"experiment-{state.value.replace('_', '-')}",
            severity=Severity.ERROR,
            devices=(),
            observation=f"{names.experiment(first)} {_SAID[state]}: {reason or 'no reason was recorded'}.{others}",
            diagnosis=_MEANS[state],
            remedy=f"{_todo(first.outcome)} `{again(case.machine, first)}`",
            evidence="\n".join(
                filter(None, [listed(names.experiment(result) for result in results), first.outcome.evidence.strip()])
            ),
            loss=1.0,  # all of the figure is lost
        )


def _todo(outcome: Outcome) -> str:
    if outcome.state is State.INVALID:
        return "Run it again alone; if it stays invalid, suspect the machine before the program:"
    if outcome.state is State.TIMED_OUT:
        return "See what else runs (`top`), then run it alone:"
    return "Run it again alone:" if outcome.stage is None else _WHAT_TO_DO[outcome.stage]
