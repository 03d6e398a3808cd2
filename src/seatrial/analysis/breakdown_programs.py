"""Why two programs without MPI differ in time: by what the kernel counted of their runs, and what their threads did
when they were looked at.

The time of a run is split into CPU time in user code and in the kernel, and waiting: for a CPU, for mutexes, for time
to pass, for files. Times of threads are divided by the number of threads that worked at once, so that they compare with
the wall time. The parts are tested together over the blocks, as those of MPI profiles (`breakdown_causes.py`).

A part is what differs. Its cause is the one that the repeats of the longer side show by themselves
(docs/adr/0085), if what was counted for it grew as the part did. Sides that were measured apart have no test: parts
count whose repeats are clearly apart, and the answer says that the machine may have changed in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean

from msgspec.structs import replace

from seatrial.analysis.fairness.side import clearly_apart
from seatrial.diagnosis.cpu import EXPLAINS, LEAST_DELAY
from seatrial.diagnosis.disturbance.cause import CPU_CAUSES, Disturbance, RepeatCause, remedy, sentence
from seatrial.diagnosis.disturbance.diagnose import disturbances, of_file_lock, works_beside
from seatrial.diagnosis.disturbance.habits import Habits
from seatrial.diagnosis.disturbance.signals import Signals, signals
from seatrial.model.frozen import Frozen
from seatrial.model.results.record import RepeatRecord
from seatrial.model.study.comparison import Change, ChangeDiagnosis, ChangeEvidence, ChangeSignal, Part, SideName
from seatrial.stats.interval import MINIMUM_REPEATS
from seatrial.stats.max_t import adjusted_p

LEAST_SHARE = 0.05
"""Parts of less of the difference are not named."""
_ALPHA = 0.05
_MOST_REPEATS = 500
"""Repeats of a side that are looked at: more do not change the means."""

_OF_THREADS = (ChangeSignal.USER, ChangeSignal.KERNEL, ChangeSignal.CPU_WAIT, ChangeSignal.LOCK_WAIT)
_ADDITIVE: Mapping[ChangeSignal, str] = {
    ChangeSignal.USER: "CPU time in user code",
    ChangeSignal.KERNEL: "CPU time in the kernel",
    ChangeSignal.CPU_WAIT: "waiting for a CPU",
    ChangeSignal.LOCK_WAIT: "waiting for mutexes",
    ChangeSignal.SLEEP: "sleep",
    ChangeSignal.FILE_WAIT: "waiting for files",
}
REST = "other time"
_COUNTED_BESIDE = (
    *(ChangeSignal.CHILD_WAIT, ChangeSignal.THREAD_WAIT, ChangeSignal.DATA_WAIT, ChangeSignal.FILE_LOCK_WAIT),
)
"""Waiting while other threads or processes of the program work, whose CPU time is a part."""
_CAUSE_OF: Mapping[ChangeSignal, frozenset[RepeatCause]] = {
    ChangeSignal.USER: frozenset({RepeatCause.WAITING_LOOP}),
    ChangeSignal.KERNEL: frozenset(
        {
            *(RepeatCause.PAGE_FAULTS, RepeatCause.SMALL_CALLS, RepeatCause.FILE_OPENINGS, RepeatCause.THREAD_STARTS),
            *(RepeatCause.LOCKS, RepeatCause.KERNEL_TIME),
        }
    ),
    ChangeSignal.CPU_WAIT: CPU_CAUSES,
    ChangeSignal.LOCK_WAIT: frozenset({RepeatCause.LOCKS}),
    ChangeSignal.SLEEP: frozenset({RepeatCause.SLEEP}),
    ChangeSignal.FILE_WAIT: frozenset({RepeatCause.FILE_SYSTEM, RepeatCause.SYNCHRONISED_IO, RepeatCause.IO_LIMIT}),
    ChangeSignal.CHILD_WAIT: frozenset({RepeatCause.CHILD}),
    ChangeSignal.THREAD_WAIT: frozenset({RepeatCause.UNEVEN_THREADS}),
    ChangeSignal.DATA_WAIT: frozenset({RepeatCause.OTHERS_DATA}),
    ChangeSignal.FILE_LOCK_WAIT: frozenset({RepeatCause.FILE_LOCK}),
}
"""What may be the cause of a part."""
_UNKNOWN: Mapping[ChangeSignal, Change] = {
    ChangeSignal.USER: Change.USER_CODE,
    ChangeSignal.KERNEL: Change.KERNEL_TIME,
    ChangeSignal.CPU_WAIT: Change.NO_CPU,
    ChangeSignal.LOCK_WAIT: Change.LOCKS,
    ChangeSignal.SLEEP: Change.SLEEP,
    ChangeSignal.FILE_WAIT: Change.FILES,
}
"""What a part is named by where no cause is known; parts without an entry need one."""
_COUNTERS: Mapping[RepeatCause, Callable[[Habits], float]] = {
    RepeatCause.PAGE_FAULTS: lambda one: one.minor_faults,
    RepeatCause.SMALL_CALLS: lambda one: one.calls,
    RepeatCause.FILE_OPENINGS: lambda one: one.calls,
    RepeatCause.THREAD_STARTS: lambda one: one.started_tasks,
    RepeatCause.PROCESS_STARTS: lambda one: one.started_tasks,
    RepeatCause.LOCKS: lambda one: one.voluntary,
    RepeatCause.WAITING_LOOP: lambda one: one.code.loop_s,
}
"""What grows with a cause of CPU time."""


class Run(Frozen):
    """The mean run of one repeat: seconds of its wall time and of each part, those of threads added up."""

    wall_s: float
    parts: Mapping[ChangeSignal, float]
    block: str

    @property
    def workers(self) -> float:
        """Threads that worked or waited for their turn at once; at least 1."""
        return max(1.0, sum(self.parts[part] for part in _OF_THREADS) / self.wall_s)


class ProgramChange(Frozen):
    """The time of a run and its parts, why it differs, the blocks that have both sides, and the repeats of each."""

    whole: Part
    parts: tuple[Part, ...]
    diagnoses: tuple[ChangeDiagnosis, ...]
    blocks: int
    repeats: tuple[int, int]


def program_change(baseline: Sequence[RepeatRecord], candidate: Sequence[RepeatRecord]) -> ProgramChange | None:
    """Why the runs of two programs differ in time; None if they do not clearly differ, or were not looked at."""
    seen = [_some(side) for side in (baseline, candidate)]
    runs = [[run for one in side if (run := _run(one)) is not None] for side in seen]
    if any(len(side) < max(MINIMUM_REPEATS, len(own)) for side, own in zip(runs, seen, strict=True)):
        return None
    found = _Compared.of(runs[0], runs[1])
    if not found.is_sure(None):
        return None
    sides = tuple(_Side(signals([one.seen for one in side])) for side in seen)
    diagnoses = _diagnoses(found, (sides[0], sides[1]))
    parts = tuple(sorted(found.rows(), key=lambda part: -abs(part.difference_s)))
    return ProgramChange(found.row(None, "wall"), parts, diagnoses, found.blocks, (len(runs[0]), len(runs[1])))


def _some(records: Sequence[RepeatRecord]) -> Sequence[RepeatRecord]:
    """Those that succeeded; of very many evenly spaced ones."""
    return [one for one in records[:: len(records) // _MOST_REPEATS + 1] if one.outcome.is_ok]


def _run(record: RepeatRecord) -> Run | None:
    looks = record.seen.get("looks")
    if not isinstance(looks, Mapping) or "processes" not in looks:
        return None
    known = signals([record.seen], least_s=0.0)
    habits = None if known is None else known.habits
    if known is None or habits is None or known.cpu_s is None or habits.runs <= 0 or known.wall_s <= 0:
        return None
    runs = habits.runs
    seconds = {
        ChangeSignal.USER: max(0.0, known.cpu_s - habits.system_s),
        ChangeSignal.KERNEL: habits.system_s,
        ChangeSignal.CPU_WAIT: known.delay_s or 0.0,
        ChangeSignal.LOCK_WAIT: min(habits.locks.wait.seconds, habits.locks.blocked_s),
        ChangeSignal.SLEEP: habits.sleep.seconds,
        ChangeSignal.FILE_WAIT: sum(wait.seconds for wait in known.waits),
        ChangeSignal.CHILD_WAIT: sum(
            span.seconds for one in habits.processes for span in one.waits_for.values() if _works(one.cpu_s, one.seen_s)
        ),
        ChangeSignal.THREAD_WAIT: habits.thread_waits.seconds,
        ChangeSignal.DATA_WAIT: _for_others_s(habits, is_lock=False),
        ChangeSignal.FILE_LOCK_WAIT: _for_others_s(habits, is_lock=True),
    }
    parts = {part: value / runs for part, value in seconds.items()}
    return Run(known.wall_s / runs, parts, str(record.seen.get("block") or ""))


def _for_others_s(habits: Habits, *, is_lock: bool) -> float:
    """The longest waiting of one process for another one."""
    return max(
        (
            sums.span.seconds / max(1.0, one.processes / habits.runs)
            for one in habits.processes
            for other, sums in one.waits_on.items()
            if of_file_lock(other) is is_lock and (is_lock or works_beside(one, other))
        ),
        default=0.0,
    )


def _works(cpu_s: float, seen_s: float) -> bool:
    """Whether a process has its own work: a launcher only waits for others."""
    return cpu_s >= LEAST_DELAY * seen_s > 0


class _Side(Frozen):
    """All repeats of a side together; None: too little was recorded."""

    known: Signals | None

    @property
    def delay_share(self) -> float:
        return (self.known.delay_share or 0.0) if self.known is not None else 0.0

    def cause(self, among: frozenset[RepeatCause]) -> Disturbance | None:
        """The largest of these causes."""
        found = disturbances(self.known) if self.known is not None else []
        return max((one for one in found if one.cause in among), key=lambda one: one.share or 0.0, default=None)

    def counted(self, cause: RepeatCause) -> float:
        """What grows with a cause, of one run."""
        habits = self.known.habits if self.known is not None else None
        return _COUNTERS[cause](habits) / max(1.0, habits.runs) if habits is not None and cause in _COUNTERS else 0.0


class _Compared(Frozen):
    """The runs of both sides, the mean difference of the whole (None) and each part in seconds of a run, and whether
    it is beyond noise."""

    runs: tuple[Sequence[Run], Sequence[Run]]
    mean_s: Mapping[ChangeSignal | None, float]
    p: Mapping[ChangeSignal | None, float | None]
    sure: frozenset[ChangeSignal | None]
    workers: float
    blocks: int

    @classmethod
    def of(cls, baseline: Sequence[Run], candidate: Sequence[Run]) -> _Compared:
        keys: list[ChangeSignal | None] = [None, *_ADDITIVE, *_COUNTED_BESIDE]
        workers = fmean([fmean(run.workers for run in side) for side in (baseline, candidate)])
        pairs = _pairs(baseline, candidate)
        p: list[float | None] = [None] * len(keys)
        if len(pairs) >= MINIMUM_REPEATS:
            values = {key: [_seconds(b, key, workers) - _seconds(a, key, workers) for a, b in pairs] for key in keys}
            values[ChangeSignal.CPU_WAIT] = [_without_cpu_s(a, b, workers) for a, b in pairs]
            p = adjusted_p(list(values.values()))
            means = {key: fmean(own) for key, own in values.items()}
            sure = {key for key, one in zip(keys, p, strict=True) if one is not None and one < _ALPHA}
        else:
            sides = {
                key: [[_seconds(run, key, workers) for run in side] for side in (baseline, candidate)] for key in keys
            }
            means = {key: fmean(own[1]) - fmean(own[0]) for key, own in sides.items()}
            least_s = LEAST_SHARE * abs(means[None])
            sure = {key for key, own in sides.items() if clearly_apart(own[0], own[1], least_s)}
        return cls((baseline, candidate), means, dict(zip(keys, p, strict=True)), frozenset(sure), workers, len(pairs))

    def is_sure(self, key: ChangeSignal | None) -> bool:
        """Whether it moved beyond noise, and as the whole did."""
        return key in self.sure and self.mean_s[key] * self.mean_s[None] > 0

    def share(self, key: ChangeSignal) -> float:
        """What a part explains of the difference: CPU time with the waiting for a CPU that follows from it."""
        more = self.waits_each if key in (ChangeSignal.USER, ChangeSignal.KERNEL) else 0.0
        return (1 + more) * self.mean_s[key] / self.mean_s[None]

    @property
    def waits_each(self) -> float:
        """Seconds of waiting for a CPU that follow from each second of CPU time, on the mean of both sides."""
        cpu_s = [
            sum(found) for found in zip(self.sides(ChangeSignal.USER), self.sides(ChangeSignal.KERNEL), strict=True)
        ]
        return sum(self.sides(ChangeSignal.CPU_WAIT)) / sum(cpu_s) if sum(cpu_s) > 0 else 0.0

    @property
    def longer(self) -> int:
        """The side that takes longer: 0 or 1."""
        return int(self.mean_s[None] > 0)

    def sides(self, key: ChangeSignal | None) -> tuple[float, float]:
        """Seconds of a run on both sides."""
        first, second = (fmean(_seconds(run, key, self.workers) for run in side) for side in self.runs)
        return first, second

    def row(self, key: ChangeSignal | None, what: str) -> Part:
        return Part(what, None, *self.sides(key), 0.0, 0.0, self.p[key])

    def rows(self) -> Iterator[Part]:
        """The parts that add up to the whole, without those of which there is nothing."""
        whole = self.sides(None)
        left = list(whole)
        for key, what in _ADDITIVE.items():
            row = self.row(key, what)
            left = [left[0] - row.baseline_s, left[1] - row.candidate_s]
            if row.baseline_s or row.candidate_s:
                yield row
        yield Part(REST, None, max(0.0, left[0]), max(0.0, left[1]), 0.0, 0.0)


def _pairs(baseline: Sequence[Run], candidate: Sequence[Run]) -> list[tuple[Run, Run]]:
    of_baseline = {run.block: run for run in baseline if run.block}
    return [(of_baseline[run.block], run) for run in candidate if run.block in of_baseline]


def _seconds(run: Run, key: ChangeSignal | None, workers: float) -> float:
    if key is None:
        return run.wall_s
    return run.parts[key] / (workers if key in _OF_THREADS else 1.0)


def _without_cpu_s(baseline: Run, candidate: Run, workers: float) -> float:
    """What runs waited longer for a CPU, per second that they ran: who computes longer also waits longer."""
    sides = (baseline, candidate)
    waited = [_seconds(run, ChangeSignal.CPU_WAIT, workers) for run in sides]
    ran = [max(1e-9, run.wall_s - own) for run, own in zip(sides, waited, strict=True)]
    return sum(ran) / 2 * (waited[1] / ran[1] - waited[0] / ran[0])


def _diagnoses(found: _Compared, sides: tuple[_Side, _Side]) -> tuple[ChangeDiagnosis, ...]:
    """The largest share first; what explains less than half ends in "not known"."""
    missing = max(side.delay_share for side in sides) >= LEAST_DELAY
    keys = [key for key in (*_ADDITIVE, *_COUNTED_BESIDE) if found.is_sure(key) and found.share(key) >= LEAST_SHARE]
    if ChangeSignal.CPU_WAIT in keys and found.share(ChangeSignal.CPU_WAIT) < EXPLAINS:
        keys.remove(ChangeSignal.CPU_WAIT)
    if missing or ChangeSignal.CPU_WAIT in keys:  # who waits for whom depends on who had a CPU
        kept = (ChangeSignal.CPU_WAIT, ChangeSignal.USER, ChangeSignal.KERNEL, ChangeSignal.SLEEP)
        keys = [key for key in keys if key in kept]
    named = [one for key in keys if (one := _diagnosis(found, sides, key)) is not None]
    named = _joined(_without_repetition(found, sides, named))
    named.sort(key=lambda one: -one.share)
    left = 1.0 - sum(one.share for one in named)
    if left > 1.0 - EXPLAINS:
        cpu = (ChangeSignal.USER, ChangeSignal.KERNEL, ChangeSignal.CPU_WAIT)
        evidence = tuple(_evidence(found, key) for key in cpu)
        named.append(ChangeDiagnosis(Change.NOT_KNOWN, min(1.0, left), evidence))
    return tuple(named)


def _diagnosis(found: _Compared, sides: tuple[_Side, _Side], key: ChangeSignal) -> ChangeDiagnosis | None:
    own, other = sides[found.longer], sides[1 - found.longer]
    cause = own.cause(_CAUSE_OF.get(key, frozenset()))
    if cause is not None and not _grew(found, key, cause.cause, own, other):
        cause = None
    if cause is None and key not in _UNKNOWN:
        return None
    change = _UNKNOWN[key] if cause is None else Change(cause.cause.value)
    evidence = (_evidence(found, key), _evidence(found, ChangeSignal.WALL))
    return _named(found, change, found.share(key), evidence, found.p[key], cause)


def _named(
    found: _Compared,
    change: Change,
    share: float,
    evidence: tuple[ChangeEvidence, ...],
    p_value: float | None,
    cause: Disturbance | None,
) -> ChangeDiagnosis:
    made = ChangeDiagnosis(change, min(1.0, share), evidence, p_value=p_value)
    if cause is None:
        return made
    on: SideName = "candidate" if found.longer else "baseline"
    return replace(made, on=on, seen=sentence(cause), remedy=remedy(cause))


def _grew(found: _Compared, key: ChangeSignal, cause: RepeatCause, own: _Side, other: _Side) -> bool:
    """Whether what is counted for a cause grew as the part did: by half as much at least."""
    if cause is RepeatCause.WAITING_LOOP:
        more_s = found.workers * abs(found.mean_s[key])
        return own.counted(cause) - other.counted(cause) >= EXPLAINS * more_s
    if key is not ChangeSignal.KERNEL or cause not in _COUNTERS:
        return True
    seconds = found.sides(key)
    more_s = abs(seconds[1] - seconds[0]) / max(seconds)
    counts = own.counted(cause), other.counted(cause)
    return counts[0] > 0 and (counts[0] - counts[1]) / counts[0] >= EXPLAINS * more_s


def _without_repetition(
    found: _Compared, sides: tuple[_Side, _Side], named: Sequence[ChangeDiagnosis]
) -> list[ChangeDiagnosis]:
    """CPU time is not named beside its cause: processes that are started again and again, or that others wait for."""
    own, other = sides[found.longer], sides[1 - found.longer]
    started = own.cause(frozenset({RepeatCause.PROCESS_STARTS}))
    cpu = [one for one in named if one.change in (Change.USER_CODE, Change.KERNEL_TIME)]
    if started is not None and cpu and own.counted(started.cause) > other.counted(started.cause):
        evidence = tuple(dict.fromkeys(each for one in cpu for each in one.evidence))
        whole = _named(found, Change.PROCESS_STARTS, sum(one.share for one in cpu), evidence, cpu[0].p_value, started)
        named = [*(one for one in named if one not in cpu), whole]
    waits = {Change.CHILD, Change.UNEVEN_THREADS, Change.OTHERS_DATA, Change.FILE_LOCK}
    if any(one.change in waits and one.share >= EXPLAINS for one in named):
        named = [one for one in named if one.change is not Change.USER_CODE]
    return list(named)


def _joined(named: Sequence[ChangeDiagnosis]) -> list[ChangeDiagnosis]:
    """Waiting for mutexes, and the time in the kernel that it takes, are one cause."""
    locks = [one for one in named if one.change is Change.LOCKS]
    if len(locks) < 2:
        return list(named)
    first = max(locks, key=lambda one: one.share)
    evidence = tuple(dict.fromkeys(each for one in locks for each in one.evidence))
    whole = replace(first, evidence=evidence, share=min(1.0, sum(one.share for one in locks)))
    return [whole, *(one for one in named if one.change is not Change.LOCKS)]


def _evidence(found: _Compared, signal: ChangeSignal) -> ChangeEvidence:
    return ChangeEvidence(signal, *found.sides(None if signal is ChangeSignal.WALL else signal))
