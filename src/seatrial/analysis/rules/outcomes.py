"""Rules about experiments that should have produced figures but did not."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.analysis.rules.case import Case
from seatrial.analysis.rules.finding import Subject, error, rule
from seatrial.analysis.rules.words import Names, again, listed
from seatrial.model.machine.finding import Finding
from seatrial.model.results.figure_result import ExperimentResult
from seatrial.model.results.outcome import Outcome, Stage, State
from seatrial.model.spelling import count

_ENDED = {State.INVALID: "is invalid", State.FAILED: "failed", State.TIMED_OUT: "timed out"}
_MEANS = {
    State.INVALID: "It ran, but a check of its results failed, so its figures cannot be trusted and are not shown. "
    "The raw samples are kept.",
    State.FAILED: "It produced no result.",
    State.TIMED_OUT: "It took much longer than planned and was killed with all its child processes: it hangs, or the "
    "machine is far slower than expected.",
}
_WHAT_TO_DO = {
    Stage.BUILD: "Read the compiler's message below and check the compilers found with `seatrial list`, then",
    Stage.LAUNCH: "Check that the program can be started here (memory, CPU mask, a folder mounted noexec), then",
    Stage.RUN: "Read the end of its output below and look for killed processes with `sudo dmesg | tail`, then",
    Stage.RECORD: "Check that the results folder is writable and has free space (`df -h .`), then",
}


@rule(Subject.OUTCOMES)
def no_figures(case: Case) -> Iterator[Finding]:
    """Fires if experiments are invalid, failed or timed out; those with the same reason are one finding."""
    names = Names(case.results)
    groups: dict[tuple[State, str], list[ExperimentResult]] = {}
    for result in case.results:
        if result.outcome.state in _ENDED:
            groups.setdefault((result.outcome.state, result.outcome.reason), []).append(result)
    for (state, reason), results in groups.items():
        first = results[0]
        others = f" The same happened to {count(len(results) - 1, 'other experiment')}." if len(results) > 1 else ""
        yield error(
            f"experiment-{state.value.replace('_', '-')}",
            observation=f"{names.experiment(first)} {_ENDED[state]}: {reason or 'no reason was recorded'}.{others}",
            diagnosis=_MEANS[state],
            remedy=f"{_remedy(first.outcome)} `{again(case.machine, first)}`",
            evidence="\n".join(
                filter(None, [listed(names.experiment(result) for result in results), first.outcome.evidence.strip()])
            ),
            loss=1.0,
        )


def _remedy(outcome: Outcome) -> str:
    if outcome.state is State.INVALID:
        return "Run it again alone; if it stays invalid, suspect the machine rather than the program:"
    if outcome.state is State.TIMED_OUT:
        return "Check what else is running (`top`), then run it alone:"
    return "Run it again alone:" if outcome.stage is None else _WHAT_TO_DO[outcome.stage]
