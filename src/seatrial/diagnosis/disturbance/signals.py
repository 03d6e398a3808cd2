"""The values that the repeats of an experiment recorded, added up: single repeats say nothing, because the kernel
counts some of them in steps of 10 ms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from seatrial.diagnosis.cpu import LEAST_DELAY
from seatrial.diagnosis.disturbance.habits import Habits, habits
from seatrial.model.frozen import Frozen

LEAST_TIME_S = 1.0
"""Shares of less time say nothing: the kernel counts in steps of 10 ms on each CPU."""
_REPRESENTATIVE = 0.5
"""Threads with at least this part of the program's CPU time speak for all."""
_LEAST_OF_PROGRAM = 0.05
"""Threads with less of the time of all do not tell where the program runs: a shell that starts it may use all CPUs."""

Seen = Mapping[str, Any]


class QuotaSignal(Frozen):
    """A CPU quota and how far it was used up: `periods` of which `throttled_periods`, and `throttled_s` of all CPUs."""

    cpus: float
    file: str
    periods: float
    throttled_periods: float
    throttled_s: float


class IoLimitSignal(Frozen):
    """A limit on I/O (B/s or op/s) and what was moved under it."""

    file: str
    device: str
    direction: str
    unit: str
    limit: float
    moved: float


class FileWait(Frozen):
    """Waiting in calls of one kind ("read", "write", "sync", "open", "fault") for files of a file system, in seconds.
    The file system's type is "" where it is unknown."""

    kind: str
    type: str
    mount_point: str
    options: tuple[str, ...]
    seconds: float


class BoundThreads(Frozen):
    """Threads that may run on these CPUs only: how many, their CPU time, and how long they waited for a CPU."""

    cpus: frozenset[int]
    threads: int
    cpu_s: float
    delay_s: float


class Signals(Frozen):
    """Sums over repeats. None: some of the repeats have no value.

    `wall_s` is the time of the programs; `cpu_s` their CPU time. `counted_cpu_s` and `delay_s`: CPU time of the threads
    whose waiting for a CPU is known, and this waiting; `threads_s` their wall time. `window_s`: the time of the CPUs,
    of which `busy_s` each was busy, `others_s` for other processes, and `steal_s` was taken by the hypervisor. `bound`:
    the threads by their CPUs, if they are of several groups without a common CPU; `is_part`: of one of these groups.
    `waiting`: the same of the repeats that waited for a CPU, if the others did not, so that CPUs that were idle during
    the others do not hide what took them.
    """

    repeats: int
    wall_s: float
    cpu_s: float | None = None
    counted_cpu_s: float | None = None
    delay_s: float | None = None
    threads_s: float | None = None
    threads: int | None = None
    allowed: frozenset[int] = frozenset()
    window_s: float | None = None
    others_s: float | None = None
    steal_s: float | None = None
    busy_s: Mapping[int, float] | None = None
    quota: QuotaSignal | None = None
    io_limits: tuple[IoLimitSignal, ...] = ()
    pressure_s: Mapping[str, float] | None = None
    major_faults: float | None = None
    waits: tuple[FileWait, ...] = ()
    waits_covered_s: float | None = None
    file_system: FileWait | None = None
    bound: tuple[BoundThreads, ...] = ()
    is_part: bool = False
    habits: Habits | None = None
    waiting: Signals | None = None

    @property
    def delay_share(self) -> float | None:
        """Of the time in which the counted threads ran or could have run, or of the wall time if that is longer: the
        part in which they waited for a CPU. None if not known of most of the program."""
        whole_s = self._threads_s
        return None if whole_s is None or self.delay_s is None else self.delay_s / whole_s

    @property
    def blocked_share(self) -> float | None:
        """Of the same time, the part in which the counted threads neither ran nor could have run: they slept, or waited
        for files, sockets or each other. None if not known of most of the program."""
        whole_s = self._threads_s
        if whole_s is None or self.delay_s is None or self.counted_cpu_s is None:
            return None
        return max(0.0, 1 - (self.counted_cpu_s + self.delay_s) / whole_s)

    @property
    def _threads_s(self) -> float | None:
        """The time of the counted threads, in seconds; None if they are not most of the program."""
        if self.delay_s is None or self.counted_cpu_s is None or self.threads_s is None:
            return None
        if self.cpu_s is not None and self.counted_cpu_s < _REPRESENTATIVE * (self.cpu_s - 0.01 * self.repeats):
            return None
        return max(self.threads_s, self.counted_cpu_s + self.delay_s) or None


def signals(repeats: Sequence[Seen], least_s: float = LEAST_TIME_S) -> Signals | None:
    """The sums; None if the programs ran less than `least_s` together, or too little was recorded."""
    timed = [(one, wall_s) for one in repeats if (wall_s := _of_program(one, "program_s")) is not None]
    if not timed or sum([wall_s for _, wall_s in timed]) < least_s:
        return None
    seen = [one for one, _ in timed]
    found = _sums(timed)
    if (found.delay_share or 0.0) < LEAST_DELAY:
        return found
    waited = [pair for pair in timed if (own := repeat_shares(pair[0])) and (own.delay or 0.0) >= LEAST_DELAY]
    is_part = len(waited) < len(seen) and sum(wall_s for _, wall_s in waited) >= LEAST_TIME_S
    return replace(found, waiting=_sums(waited)) if is_part else found


def _sums(timed: Sequence[tuple[Seen, float]]) -> Signals:
    """Of these repeats, each with the wall time of its programs."""
    seen = [one for one, _ in timed]
    counted = [_counted(one, wall_s) for one, wall_s in timed]
    is_counted = None not in counted
    known = [one for one in counted if one is not None]
    waits, covered_s = _waits(seen)
    return Signals(
        repeats=len(seen),
        wall_s=sum([wall_s for _, wall_s in timed]),
        cpu_s=_total([_of_program(one, "program_cpu_s") for one in seen]),
        counted_cpu_s=sum([one[0] for one in known]) if is_counted else None,
        delay_s=sum([one[1] for one in known]) if is_counted else None,
        threads_s=sum([one[2] for one in known]) if is_counted else None,
        threads=max([one[3] for one in known], default=None),
        allowed=_allowed(seen),
        window_s=_total([_number(one.get("cpu_window_s")) for one in seen]),
        others_s=_total([_number(one.get("others_s")) for one in seen]),
        steal_s=_total([_number(one.get("steal_s")) for one in seen]),
        busy_s=_busy(seen),
        quota=_quota(seen),
        io_limits=_io_limits(seen),
        pressure_s=_pressure(seen),
        major_faults=_total([_of_program(one, "major_faults") for one in seen]),
        waits=waits,
        waits_covered_s=covered_s,
        file_system=_file_system(seen[-1].get("file_system"), "", 0.0),
        bound=_bound(seen),
        habits=habits(seen),
    )


class RepeatShares(Frozen):
    """Shares of the time of one repeat, however short it is; None: unknown."""

    delay: float | None
    throttled: float
    short_of_memory: float | None
    blocked: float | None


def repeat_shares(seen: Seen) -> RepeatShares | None:
    """What varies between single repeats, by the rules of `signals`; None if the time of the program is unknown."""
    wall_s = _of_program(seen, "program_s")
    if wall_s is None or wall_s <= 0:
        return None
    cpu_s, delay_s, threads_s, _ = _counted(seen, wall_s) or (None, None, None, 0)
    known = Signals(1, wall_s, _of_program(seen, "program_cpu_s"), cpu_s, delay_s, threads_s)
    quota = _quota([seen])
    stalled_s = _part(seen, "pressure", "memory_some_s")
    return RepeatShares(
        known.delay_share,
        0.0 if quota is None else min(1.0, quota.throttled_s / wall_s),
        None if stalled_s is None else min(1.0, stalled_s / wall_s),
        known.blocked_share,
    )


def _number(value: Any) -> float | None:
    if type(value) is float:  # nearly all of many
        return value if value - value == 0 else None
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and value - value == 0
    return float(value) if is_number else None


_NOTHING: Mapping[str, Any] = {}


def _mapping(seen: Seen, key: str) -> Mapping[str, Any]:
    part = seen.get(key)
    return part if type(part) is dict or isinstance(part, Mapping) else _NOTHING


def _part(seen: Seen, key: str, name: str) -> float | None:
    return _number(_mapping(seen, key).get(name))


_WITH_OUR_OWN = {"program_cpu_s": "cpu_s", "major_faults": "major_faults"}


def _of_program(seen: Seen, name: str) -> float | None:
    """A value of the program itself, as `command` reports it; else that of the process that was started."""
    if "looks" in seen and (own := _part(seen, "looks", name)) is not None:
        return own
    return _number(seen.get(name)) if name not in _WITH_OUR_OWN else _part(seen, "used", _WITH_OUR_OWN[name])


def _total(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _counted(seen: Seen, wall_s: float) -> tuple[float, float, float, int] | None:
    """CPU time and waiting of the threads that were counted, the wall time that this covers, and their number: as the
    program reported it, else of its main thread."""
    looks = _mapping(seen, "looks")
    if looks.get("threads"):
        cpu_s, delay_s = _number(looks.get("cpu_s")), _number(looks.get("delay_s"))
        covered_s = _number(looks.get("covered_s"))
        if cpu_s is not None and delay_s is not None:
            return cpu_s, delay_s, wall_s if covered_s is None else covered_s, int(looks["threads"])
    cpu_s, delay_s = _part(seen, "used", "leader_cpu_s"), _part(seen, "used", "leader_delay_s")
    return None if cpu_s is None or delay_s is None else (cpu_s, delay_s, wall_s, 1)


def _allowed(seen: Sequence[Seen]) -> frozenset[int]:
    """The CPUs that the program might use: those of its own mask where it was seen, else as it was started."""
    for one in reversed(seen):
        text = _mapping(one, "looks").get("allowed")
        if isinstance(text, str) and text:
            return _cpus(text)
        if isinstance(masks := one.get("affinity"), list):
            return frozenset(cpu for mask in masks for cpu in mask)
    return frozenset()


def _bound(seen: Sequence[Seen]) -> tuple[BoundThreads, ...]:
    """Threads whose CPUs overlap are one group. Empty if all are, or if some of the repeats say nothing."""
    groups: list[BoundThreads] = []
    for one in seen:
        parts = _mapping(one, "looks").get("bound")
        if not isinstance(parts, list) or not parts:
            return ()
        of_repeat = [group for part in parts if (group := _group(part)) is not None]
        whole_s = sum(group.cpu_s + group.delay_s for group in of_repeat)
        for group in of_repeat:
            if group.cpu_s + group.delay_s >= _LEAST_OF_PROGRAM * whole_s:
                groups = _joined(groups, group)
    return tuple(groups) if len(groups) > 1 else ()


def _group(part: Mapping[str, Any]) -> BoundThreads | None:
    cpus, threads = _cpus(str(part.get("cpus", ""))), _number(part.get("threads"))
    cpu_s, delay_s = _number(part.get("cpu_s")), _number(part.get("delay_s"))
    return (
        BoundThreads(cpus, int(threads or 0), cpu_s, delay_s)
        if cpus and cpu_s is not None and delay_s is not None
        else None
    )


def _joined(groups: Sequence[BoundThreads], more: BoundThreads) -> list[BoundThreads]:
    """With a further group, and those that share CPUs with it as one."""
    apart = [one for one in groups if not one.cpus & more.cpus]
    same = [one for one in groups if one.cpus & more.cpus]
    return [
        *apart,
        BoundThreads(
            more.cpus.union(*(one.cpus for one in same)),
            max([more.threads, *(one.threads for one in same)]),  # of a repeat: the next has its own threads
            more.cpu_s + sum(one.cpu_s for one in same),
            more.delay_s + sum(one.delay_s for one in same),
        ),
    ]


def _cpus(text: str) -> frozenset[int]:
    """The CPUs of "0-3,8"; empty if it is not such a list."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal() or int(last or first) > 1 << 16:
            return frozenset()
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def _busy(seen: Sequence[Seen]) -> dict[int, float] | None:
    sums: dict[str, float] = {}
    for one in seen:
        busy = one.get("busy_s")
        if not isinstance(busy, Mapping):
            return None
        for cpu, value in busy.items():
            if (number := _number(value)) is not None:
                sums[cpu] = sums.get(cpu, 0.0) + number
    return {int(cpu): seconds for cpu, seconds in sums.items() if cpu.isdecimal()}


def _quota(seen: Sequence[Seen]) -> QuotaSignal | None:
    quotas = [quota for one in seen if isinstance(quota := one.get("quota"), Mapping)]
    if len(quotas) < len(seen):
        return None
    names = ("periods", "throttled_periods", "throttled_s")
    sums = [_total([_number(one.get(name)) for one in quotas]) for name in names]
    if any(value is None for value in sums):
        return None
    cpus = _number(quotas[-1].get("cpus")) or 0.0
    return QuotaSignal(cpus, str(quotas[-1].get("file", "")), *(value or 0.0 for value in sums)) if cpus > 0 else None


def _io_limits(seen: Sequence[Seen]) -> tuple[IoLimitSignal, ...]:
    """The limits that all repeats had, with what was moved."""
    found: dict[tuple[str, str, str, str], list[tuple[float, float]]] = {}
    for one in seen:
        for limit in one.get("io_limits") or ():
            value, moved = _number(limit.get("limit")), _number(limit.get("moved"))
            if value and moved is not None:
                key = (str(limit["file"]), str(limit["device"]), str(limit["direction"]), str(limit["unit"]))
                found.setdefault(key, []).append((value, moved))
    return tuple(
        IoLimitSignal(*key, min(limit for limit, _ in values), sum(moved for _, moved in values))
        for key, values in found.items()
        if len(values) == len(seen)
    )


def _pressure(seen: Sequence[Seen]) -> dict[str, float] | None:
    names = ("cpu_some_s", "io_some_s", "io_full_s", "memory_some_s", "memory_full_s")
    parts = [_mapping(one, "pressure") for one in seen]
    # A missing value makes a sum unknown, as no pressure at all does in most records of many.
    known = [name for name in names if name in parts[0]] if parts else []
    totals = {name: _total([_number(part.get(name)) for part in parts]) for name in known}
    return {name: total for name, total in totals.items() if total is not None} or None


def _waits(seen: Sequence[Seen]) -> tuple[tuple[FileWait, ...], float | None]:
    """What programs waited for while they were looked at, and the seconds that this covers."""
    sums: dict[tuple[str, str, str, tuple[str, ...]], float] = {}
    covered_s: float | None = None
    for one in seen:
        looks = _mapping(one, "looks")
        covered = _number(looks.get("covered_s"))
        if covered is None:
            continue
        covered_s = (covered_s or 0.0) + covered
        for wait in looks.get("waits") or ():
            place = _file_system(wait.get("file_system"), str(wait.get("in", "")), _number(wait.get("wait_s")) or 0.0)
            key = (place.kind, place.type, place.mount_point, place.options)
            sums[key] = sums.get(key, 0.0) + place.seconds
    return tuple(FileWait(*key, seconds) for key, seconds in sums.items()), covered_s


def _file_system(document: Any, kind: str, seconds: float) -> FileWait:
    if not isinstance(document, Mapping):
        return FileWait(kind, "", "", (), seconds)
    options = document.get("options")
    names = tuple(str(name) for name in options) if isinstance(options, list) else ()
    return FileWait(kind, str(document.get("type", "")), str(document.get("mount_point", "")), names, seconds)
