"""Rules about repeats that disagree, with the load and steal recorded during them; and about repeats that were slow
because something was missing (a CPU, I/O, memory), or because the program itself waits or takes time in the kernel. The
latter fire where all repeats are alike, too: then no spread shows it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from seatrial.analysis.grouped import grouped
from seatrial.analysis.rules.expectation import UNSTEADY_WIDTH, is_wide, levels, relative_width
from seatrial.analysis.rules.finding import (
    NO_CPU_RULE,
    Case,
    Names,
    Subject,
    again,
    finding,
    finite_numbers,
    listed,
    rule,
    waits_for_files,
    warning,
)
from seatrial.diagnosis.cpu import steal_words
from seatrial.diagnosis.disturbance.cause import (
    CPU_CAUSES,
    HABITS,
    IN_KERNEL,
    Disturbance,
    RepeatCause,
    evidence,
    remedy,
    sentence,
    sentences,
)
from seatrial.diagnosis.disturbance.diagnose import disturbances, has_idle_cpus
from seatrial.diagnosis.disturbance.signals import Signals, signals
from seatrial.model.frozen import Frozen
from seatrial.model.machine.fact import Finding, NamedCause, Severity
from seatrial.model.machine.machine import DeviceKind
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.spelling import count, show, show_percent, surrounding
from seatrial.model.units import budget_for
from seatrial.profiler import cause as profile
from seatrial.profiler.cause import Sureness

_RULES: Mapping[str, frozenset[RepeatCause]] = {
    NO_CPU_RULE: CPU_CAUSES,
    "io-limited": frozenset({RepeatCause.IO_LIMIT}),
    "slow-file-system": frozenset({RepeatCause.FILE_SYSTEM}),
    "synchronised-io": frozenset({RepeatCause.SYNCHRONISED_IO}),
    "memory-short": frozenset({RepeatCause.MEMORY}),
    "lock-contention": frozenset({RepeatCause.LOCKS}),
    "page-faults": frozenset({RepeatCause.PAGE_FAULTS}),
    "program-sleeps": frozenset({RepeatCause.SLEEP}),
    "waits-for-child": frozenset({RepeatCause.CHILD}),
    "kernel-time": IN_KERNEL,
    "uneven-threads": frozenset({RepeatCause.UNEVEN_THREADS}),
    "waiting-loop": frozenset({RepeatCause.WAITING_LOOP}),
    "waits-for-process": frozenset({RepeatCause.OTHERS_DATA, RepeatCause.FILE_LOCK}),
}
_NOTES = frozenset(
    {
        *("slow-file-system", "synchronised-io", "lock-contention", "page-faults", "program-sleeps", "waits-for-child"),
        *("kernel-time", "uneven-threads", "waiting-loop", "waits-for-process"),
    }
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
        groups = grouped(
            (frozenset(cause.cause for cause in own), Disturbed(one.result, one.signals, own))
            for one in found
            if (own := tuple(cause for cause in one.causes if cause.cause in causes))
        )
        for group in groups.values():
            yield _finding(case, name, group)


def disturbed(case: Case, results: Sequence[ExperimentResult]) -> list[Disturbed]:
    """Those of the experiments that something disturbed."""
    found, of = [], case.known.signals
    for result in results:
        known = of.get(result.id)
        if known is not None and (causes := _causes(result, known)):
            found.append(Disturbed(result, known, causes))
    return found


def _causes(result: ExperimentResult, known: Signals) -> tuple[Disturbance, ...]:
    """The causes; benchmarks of files have in addition the file system that they measure, as no waiting in calls was
    looked at there."""
    found = disturbances(known)
    place = known.file_system
    if result.experiment.benchmark.startswith("io.") and place is not None and waits_for_files(known):
        seen = {"type": place.type, "mount_point": place.mount_point, "options": place.options}
        found.append(Disturbance(RepeatCause.FILE_SYSTEM, None, Sureness.INFERRED, seen))
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
    if causes[0].cause in IN_KERNEL | {RepeatCause.PAGE_FAULTS}:
        return f"The figures include this time.{rest}"
    return f"The figures include this waiting.{rest}"


_STEAL_MATTERS = 0.02
_OTHERS_MATTER = 0.05
_LEAST_WINDOW_S = 1.0
"""A share of a shorter time says nothing: the kernel counts in steps of 10 ms on each CPU."""
_DELAY_MATTERS = 0.02
"""A program that waited less for a CPU, as a share of its time, was not disturbed by others that computed."""
_NOT_EXPLAINED = (
    "neither missing CPUs nor steal explains it, and clocks (`turbostat`), temperature (`sensors`) and the placement "
    "of memory (`numastat -p PID`) were not recorded"
)
_ROOM = 1.2
_START_S = 5.0
"""Of a command that measures again: what is not in its programs."""
_HALF = (1.85, 2.15)
"""Between these ratios, one level counts as half of the other."""

Named = tuple[ExperimentResult, FigureResult]


@rule(Subject.STEADINESS)
def wide_spread(case: Case) -> Iterator[Finding]:
    """Fires if intervals are wider than `UNSTEADY_WIDTH`, unless `two_levels` fires; all figures are one finding."""
    names = Names(case.results)
    wide = sorted(
        (pair for pair in _figures(case) if is_wide(pair[1]) and not _levels(pair[1])),
        key=lambda pair: -(relative_width(pair[1]) or 0.0),
    )
    if not wide:
        return
    result, figure = wide[0]
    cause, seen, causes = _disturbance(case, wide)
    total = len(_figures(case))
    yield warning(
        "repeats-spread",
        observation=f"The repeats of {len(wide)} of {count(total, 'figure')} spread widely; the worst is "
        f"{names.figure(result, figure)}, whose interval is {show_percent(relative_width(figure))} of its median.",
        diagnosis=f"An interval wider than {show_percent(UNSTEADY_WIDTH)} is too imprecise for comparisons.{cause}",
        remedy=f"Measure again on an idle machine (`--wait-quiet 10min`), or for longer: {_for_longer(case, *wide[0])}",
        evidence="; ".join(
            [listed(f"{names.figure(r, f)}: {show_percent(relative_width(f) or 0.0)}" for r, f in wide), *seen]
        ),
        causes=causes,
    )


def _for_longer(case: Case, result: ExperimentResult, figure: FigureResult) -> str:
    """The command with the budget in which the interval would be narrow enough, if its width falls with the root of the
    repeats; without one if that is unknown: repeats are correlated, or their time was not recorded."""
    command = again(case.machine, result)
    seen = [case.seen.get((result.id, repeat.repeat), {}) for repeat in figure.repeats]
    times_s = finite_numbers(entry.get("program_s") for entry in seen)
    n, width = figure.n_repeats, relative_width(figure)
    if not times_s or width is None or figure.dependence:
        return f"`{command} --budget 5min` (a sufficient budget is unknown)"
    more = max(1, math.ceil(n * (width / UNSTEADY_WIDTH) ** 2) - n)
    budget_s = _ROOM * more * sum(times_s) / len(times_s) + _START_S
    return f"`{command} --budget {budget_for(budget_s)}` (about {count(more, 'more repeat')} at this noise)"


@rule(Subject.STEADINESS)
def two_levels(case: Case) -> Iterator[Finding]:
    """Fires if repeats fall into two clusters, so the median represents neither; all figures are one finding."""
    names = Names(case.results)
    split = [(pair, found) for pair in _figures(case) if (found := _levels(pair[1]))]
    if not split:
        return
    (result, figure), (low, high) = max(split, key=lambda entry: median(entry[1][1]) / (median(entry[1][0]) or 1.0))
    cause, seen, causes = _disturbance(case, [pair for pair, _ in split])
    if _shares_a_core(case, split):
        cause += (
            " One level is half of the other with several CPUs in use: at times the host seems to run two CPUs of "
            "this virtual machine on one core."
        )
    yield warning(
        "repeats-in-two-levels",
        observation=f"The repeats of {names.figure(result, figure)} fall into two levels: "
        f"{show(median(low), figure.unit)} ({count(len(low), 'repeat')}) and {show(median(high), figure.unit)} "
        f"({len(high)})."
        + (f" So do the repeats of {count(len(split) - 1, 'other figure')}." if len(split) > 1 else ""),
        diagnosis="In each repeat, the machine was in one of two states, and the median represents neither. Possible "
        f"causes: the placement of cores or pages, a changed clock, or another job on the machine.{cause}",
        remedy="See the chart of repeats over time: a single step is a change of state, a mixture is placement. Then "
        f"measure again: `{again(case.machine, result)}`",
        evidence="; ".join([listed(names.figure(r, f) for (r, f), _ in split), *seen]),
        causes=causes,
    )


def _shares_a_core(case: Case, split: Sequence[tuple[Named, tuple[list[float], list[float]]]]) -> bool:
    """Whether two levels look like hyperthreads that a hypervisor presents as cores: half of an arithmetic rate, on
    several CPUs of a virtual machine."""
    if surrounding(case.machine.facts, "hypervisor") is None:
        return False
    for (result, figure), (low, high) in split:
        several = any(len(case.seen.get((result.id, r.repeat), {}).get("affinity", ())) > 1 for r in figure.repeats)
        if figure.unit == "flop/s" and several and _HALF[0] <= median(high) / median(low) <= _HALF[1]:
            return True
    return False


def _figures(case: Case) -> list[Named]:
    return [(result, figure) for result in case.results for figure in result.figures if not figure.is_secondary]


def _levels(figure: FigureResult) -> tuple[list[float], list[float]] | None:
    return levels(figure.values)


def _disturbance(case: Case, named: Sequence[Named]) -> tuple[str, list[str], tuple[NamedCause, ...]]:
    """(what explains it, values that the repeats recorded, the causes as values), over the repeats of these figures.

    What the repeats waited for comes first (`disturbed`). Else, of the CPU time that the hypervisor took and that
    other processes used, over all repeats together, the larger share. Single repeats say nothing: some last for two of
    the kernel's 10 ms ticks.
    """
    places = {(result.id, repeat.repeat) for result, figure in named for repeat in figure.repeats}
    seen = [case.seen[place] for place in places if place in case.seen]
    loads = finite_numbers(entry.get("load_1m") for entry in seen)
    steal, others = _share_of_window(seen, "steal"), _share_of_window(seen, "others")
    known = signals(seen)
    delay = None if known is None else known.delay_share
    evidence = []
    if loads:
        evidence.append(f"load {min(loads):.1f} to {max(loads):.1f}")
    if steal is not None:
        evidence.append(f"steal {show_percent(steal)}")
    if others is not None:
        evidence.append(f"other processes {show_percent(others)} of the CPU time")
    if delay is not None:
        evidence.append(f"waited for a CPU {show_percent(delay)} of the time")
    found = disturbed(case, [result for result, _ in named])
    # What a program always does explains no spread.
    measured = [
        [cause for cause in one.causes if cause.share is not None and cause.cause not in HABITS] for one in found
    ]
    if worst := max(filter(None, measured), key=lambda own: own[0].share or 0.0, default=None):
        causes = tuple(NamedCause(one.cause.value, one.share) for one in worst)
        return f" {sentences(worst)}", evidence, causes
    cpus = len(case.machine.allowed_cpus) or len(case.machine.of_kind(DeviceKind.PU))
    if steal is not None and steal >= max(_STEAL_MATTERS, others or 0.0):
        said = steal_words(f"{show_percent(steal)} of the CPU time")
        return f" {said[0].upper()}{said[1:]}.", evidence, (NamedCause(RepeatCause.STEAL.value, steal),)
    # On CPUs that the others did not use, or could have, as far as is known.
    has_run = delay < _DELAY_MATTERS if delay is not None else known is not None and has_idle_cpus(known)
    if others is not None and others >= _OTHERS_MATTER and not has_run:
        said = f" Other processes used {show_percent(others)} of the time of the measured CPUs."
        return said, evidence, (NamedCause(RepeatCause.OTHER_PROCESSES.value, others),)
    if others is None and loads and cpus and max(loads) > cpus + 1 and not has_run:
        said = f" Other programs ran: the load was up to {max(loads):.1f} on {count(cpus, 'CPU')}."
        return said, evidence, (NamedCause(RepeatCause.OTHER_PROCESSES.value, None),)
    if evidence:
        return f" The cause is unknown: {_NOT_EXPLAINED}.", evidence, (NamedCause(profile.Cause.NOT_KNOWN.value, None),)
    return "", evidence, ()


def _share_of_window(seen: Sequence[Mapping[str, Any]], what: str) -> float | None:
    """The share of CPU time over all repeats; None if unknown, or if the repeats together were too short for it.

    Records without `cpu_window_s` weigh the same.
    """
    windows = finite_numbers(entry.get("cpu_window_s") for entry in seen)
    if len(windows) < len(seen):
        shares = finite_numbers(entry.get(f"{what}_share") for entry in seen)
        return sum(shares) / len(shares) if shares else None
    seconds = finite_numbers(entry.get(f"{what}_s") for entry in seen)
    total_s = sum(windows)
    return min(1.0, sum(seconds) / total_s) if total_s >= _LEAST_WINDOW_S and seconds else None
