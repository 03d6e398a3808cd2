"""Rules about repeats that were slow because something was missing (a CPU, I/O, memory), or because the program itself
waits or takes time in the kernel. They fire where all repeats are alike, too: then no spread shows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from seatrial.analysis.rules.case import Case
from seatrial.analysis.rules.finding import Subject, finding, rule
from seatrial.analysis.rules.words import Names, again, listed
from seatrial.diagnosis.disturbance.cause import CPU_CAUSES, Cause, Disturbance, evidence, remedy, sentence, sentences
from seatrial.diagnosis.disturbance.diagnose import disturbances, is_slow
from seatrial.diagnosis.disturbance.signals import Seen, Signals, signals
from seatrial.model.frozen import Frozen
from seatrial.model.machine.finding import Finding, NamedCause, Severity
from seatrial.model.results.figure_result import ExperimentResult
from seatrial.model.spelling import count
from seatrial.profiler.cause import Sureness

_RULES: Mapping[str, frozenset[Cause]] = {
    "repeats-waited-for-cpu": CPU_CAUSES,
    "io-limited": frozenset({Cause.IO_LIMIT}),
    "slow-file-system": frozenset({Cause.FILE_SYSTEM}),
    "synchronised-io": frozenset({Cause.SYNCHRONISED_IO}),
    "memory-short": frozenset({Cause.MEMORY}),
    "lock-contention": frozenset({Cause.LOCKS}),
    "page-faults": frozenset({Cause.PAGE_FAULTS}),
    "program-sleeps": frozenset({Cause.SLEEP}),
    "waits-for-child": frozenset({Cause.CHILD}),
}
_NOTES = frozenset(
    {"slow-file-system", "synchronised-io", "lock-contention", "page-faults", "program-sleeps", "waits-for-child"}
)
"""How a program works, or where: not a fault of the machine."""


class Disturbed(Frozen):
    """An experiment with its causes."""

    result: ExperimentResult
    signals: Signals
    causes: tuple[Disturbance, ...]


@rule(Subject.WAITING)
def waiting(case: Case) -> Iterator[Finding]:
    """Fires if programs waited for a tenth of their time, or io.* measured a file system that is not of this machine;
    experiments with the same causes are one finding."""
    found = disturbed(case, case.results)
    for name, causes in _RULES.items():
        groups: dict[frozenset[Cause], list[Disturbed]] = {}
        for one in found:
            own = tuple(cause for cause in one.causes if cause.cause in causes)
            if own:
                groups.setdefault(frozenset(cause.cause for cause in own), []).append(
                    Disturbed(one.result, one.signals, own)
                )
        for group in groups.values():
            yield _finding(case, name, group)


def disturbed(case: Case, results: Sequence[ExperimentResult]) -> list[Disturbed]:
    """Those of the experiments that something disturbed."""
    repeats: dict[str, list[Seen]] = {}
    wanted = {result.id for result in results}
    for (experiment, _), seen in case.seen.items():
        if experiment in wanted:
            repeats.setdefault(experiment, []).append(seen)
    found = []
    for result in results:
        known = signals(repeats.get(result.id, ()))
        if known is not None and (causes := _causes(result, known)):
            found.append(Disturbed(result, known, causes))
    return found


def _causes(result: ExperimentResult, known: Signals) -> tuple[Disturbance, ...]:
    """The causes; benchmarks of files have in addition the file system that they measure, as no waiting in calls was
    looked at there."""
    found = disturbances(known)
    place = known.file_system
    is_of_files = result.experiment.benchmark.startswith("io.") and place is not None
    if is_of_files and place is not None and (is_slow(place.type) or place.options):
        seen = {"type": place.type, "mount_point": place.mount_point, "options": place.options}
        found.append(Disturbance(Cause.FILE_SYSTEM, None, Sureness.INFERRED, seen))
    return tuple(found)


def _finding(case: Case, name: str, group: Sequence[Disturbed]) -> Finding:
    names = Names(case.results)
    worst = max(group, key=lambda one: sum(cause.share or 0.0 for cause in one.causes))
    others = f" So did {count(len(group) - 1, 'other experiment')}." if len(group) > 1 else ""
    first = worst.causes[0]
    named = names.experiment(worst.result)
    return finding(
        name,
        severity=Severity.INFO if name in _NOTES else Severity.WARNING,
        observation=f"{named}, {count(worst.signals.repeats, 'repeat')}: {sentence(first)}{others}",
        diagnosis=_means(worst.causes),
        remedy=f"{remedy(first)}, then measure again: `{again(case.machine, worst.result)}`",
        evidence=f"{listed(names.experiment(one.result) for one in group)}: "
        f"{evidence(worst.causes, sorted(worst.signals.allowed))}",
        loss=None if name in _NOTES or not first.share else first.share,
        causes=tuple(NamedCause(one.cause.value, one.share) for one in worst.causes),
    )


def _means(causes: Sequence[Disturbance]) -> str:
    rest = f" In addition: {sentences(causes[1:])}" if len(causes) > 1 else ""
    if causes[0].cause in CPU_CAUSES:
        return f"The figures include this waiting, and describe the program with fewer CPUs than it asked for.{rest}"
    if causes[0].cause is Cause.PAGE_FAULTS:
        return f"The figures include this time.{rest}"
    return f"The figures include this waiting.{rest}"
