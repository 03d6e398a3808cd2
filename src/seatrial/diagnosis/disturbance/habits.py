"""What the threads of a program did while they were looked at, added up over the repeats: they slept, or waited for
mutexes, child processes or each other; and what the kernel counted: page faults, reads and writes, and the threads and
processes that were started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from seatrial.model.frozen import Frozen
from seatrial.profiler.waiting_code import Spot, Waiting, system_call_before, waiting_loops


class HabitSpan(Frozen):
    """In how many looks it was seen, and the seconds that they stand for."""

    seconds: float = 0.0
    looks: float = 0.0

    def __add__(self, other: HabitSpan) -> HabitSpan:
        return HabitSpan(self.seconds + other.seconds, self.looks + other.looks)


class Locks(Frozen):
    """The threads that waited for mutexes. They were blocked for any reason in `blocked_looks`, and for `blocked_s` as
    the kernel counts; they got a CPU `turns` times."""

    wait: HabitSpan
    blocked_looks: float
    blocked_s: float
    turns: float


class Other(Frozen):
    """Another process that is waited for: `where` is a "pipe" that has no data, a "full pipe", a "file lock" (of the
    file `path`) or a "socket". `name` is "" if it is not known."""

    where: str
    name: str
    path: str = ""
    is_child: bool = False


class OtherSpan(Frozen):
    """How long another process was waited for, and in how many of these looks it ran."""

    span: HabitSpan = HabitSpan()
    ran: float = 0.0


class Processes(Frozen):
    """The processes of one name. `waits_for`: by the name of a child, while no thread of theirs ran; `waits_on`: other
    processes, in the same way."""

    name: str
    processes: float
    seen_s: float
    cpu_s: float
    system_s: float
    minor_faults: float
    waits_for: Mapping[str, HabitSpan] = {}
    waits_on: Mapping[Other, OtherSpan] = {}


class CodeUse(Frozen):
    """Where threads were seen to execute: seconds of CPU time in loops that only wait, at least, and the main
    one; `calls`: samples behind system calls, by name."""

    loop_s: float = 0.0
    loop: Waiting | None = None
    calls: Mapping[str, float] = {}


class Habits(Frozen):
    """Sums over repeats. `looked_s`: the time that the looks stand for; `runs` of the program were made in it.

    `system_s`, `minor_faults` and `voluntary` (switches) are of the program and the children that it waited for, and so
    are the `calls` that read and wrote `moved_B`. `started_tasks` are those of the machine. `short_threads` and
    `short_processes`: that were seen beyond the most at one look. `openings`: looks with a file that was open neither
    at the look before nor at the next. `catches_faults`: a process has a handler for SIGSEGV.
    `teams`: the CPU time of the threads of each repeat of one run. What records of earlier versions do not have is 0.
    """

    looked_s: float
    runs: float
    system_s: float
    minor_faults: float
    voluntary: float
    most_resident_B: float
    sleep: HabitSpan
    locks: Locks
    processes: tuple[Processes, ...]
    looks: float = 0.0
    calls: float = 0.0
    moved_B: float = 0.0
    started_tasks: float = 0.0
    most_threads: float = 0.0
    most_processes: float = 0.0
    short_threads: float = 0.0
    short_processes: float = 0.0
    thread_waits: HabitSpan = HabitSpan()
    openings: float = 0.0
    opened: str = ""
    catches_faults: bool = False
    teams: tuple[tuple[float, ...], ...] = ()
    code: CodeUse = CodeUse()


def habits(repeats: Sequence[Mapping[str, Any]]) -> Habits | None:
    """None if some of the repeats have no such values: records of earlier versions, or of other programs."""
    looks = [part for one in repeats if isinstance(part := one.get("looks"), Mapping) and "processes" in part]
    if not looks or len(looks) < len(repeats):
        return None

    locks = [part for one in looks if isinstance(part := one.get("locks"), Mapping)]
    used = [part for one in repeats if isinstance(part := one.get("used"), Mapping)]
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for part in (part for one in looks for part in one.get("processes") or ()):
        by_name.setdefault(str(part.get("name", "")), []).append(part)
    return Habits(
        looked_s=_total(looks, "covered_s"),
        runs=_total(looks, "runs"),
        system_s=_total(looks, "program_system_s"),
        minor_faults=_total(looks, "minor_faults"),
        voluntary=_total(looks, "voluntary"),
        most_resident_B=max(_number(one, "max_resident_B") for one in looks),
        sleep=HabitSpan(_total(looks, "sleep_s"), _total(looks, "sleep_looks")),
        locks=Locks(
            HabitSpan(_total(locks, "wait_s"), _total(locks, "looks")),
            _total(locks, "blocked_looks"),
            _total(locks, "blocked_s"),
            _total(locks, "turns"),
        ),
        processes=tuple(_of_name(name, parts) for name, parts in by_name.items()),
        looks=_total(looks, "looks"),
        calls=_total(used, "read_calls") + _total(used, "write_calls"),
        moved_B=_total(used, "read_B") + _total(used, "written_B"),
        started_tasks=_total(repeats, "started_tasks"),
        most_threads=max(_number(one, "most_threads") for one in looks),
        most_processes=max(_number(one, "most_processes") for one in looks),
        short_threads=sum(_beyond(one, _number(one, "threads"), "most_threads") for one in looks),
        short_processes=sum(_beyond(one, _total(one["processes"], "processes"), "most_processes") for one in looks),
        thread_waits=HabitSpan(_total(looks, "thread_wait_s"), _total(looks, "thread_waits")),
        openings=_total(looks, "openings"),
        opened=next((str(one["opened"]) for one in looks if one.get("opened")), ""),
        catches_faults=any(one.get("catches_faults") is True for one in looks),
        teams=tuple(_team(one) for one in looks if _number(one, "runs") == 1),
        code=_code_use([part for one in looks if isinstance(part := one.get("code"), Mapping)]),
    )


def _code_use(parts: Sequence[Mapping[str, Any]]) -> CodeUse:
    """Of all repeats together: one of a short program has few samples."""
    period_s = max((_number(one, "period_s") for one in parts), default=0.0)
    spots: dict[tuple[str, int], Spot] = {}
    calls: dict[str, float] = {}
    for one in (spot for part in parts for spot in _spots(part, "spots")):
        before = spots.get((one.module, one.offset))
        spots[one.module, one.offset] = one if before is None else replace(before, samples=before.samples + one.samples)
    for one in (spot for part in parts for spot in _spots(part, "returns")):
        if name := system_call_before(one.code):
            calls[name] = calls.get(name, 0.0) + one.samples
    loops = waiting_loops(tuple(spots.values()))
    return CodeUse(period_s * sum(one.samples for one in loops), loops[0] if loops else None, calls)


def _spots(part: Mapping[str, Any], name: str) -> list[Spot]:
    """Without those whose code is not in hexadecimal digits."""
    found = []
    for one in part.get(name) or ():
        with suppress(ValueError):
            code = bytes.fromhex(str(one.get("code", "")))
            found.append(
                Spot(str(one.get("file", "")), int(_number(one, "offset")), int(_number(one, "samples")), code)
            )
    return found


def _beyond(looks: Mapping[str, Any], seen: float, most: str) -> float:
    """What was seen of a kind beyond the most at one look, in each run; 0 if that is unknown."""
    at_once = _number(looks, most)
    return max(0.0, seen - at_once * max(1.0, _number(looks, "runs"))) if at_once else 0.0


def _team(looks: Mapping[str, Any]) -> tuple[float, ...]:
    """The CPU time of each thread; empty if it is unknown, or if threads came and went."""
    listed = looks.get("thread_cpu_s")
    is_whole = isinstance(listed, list) and len(listed) == _number(looks, "threads") == _number(looks, "most_threads")
    return tuple(_number({"cpu_s": one}, "cpu_s") for one in listed) if isinstance(listed, list) and is_whole else ()


def _number(part: Mapping[str, Any], name: str) -> float:
    """0 if it is missing or no finite number."""
    value = part.get(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and value - value == 0
    return float(value) if is_number and value is not None else 0.0


def _total(parts: Sequence[Mapping[str, Any]], name: str) -> float:
    return sum(_number(one, name) for one in parts)


def _of_name(name: str, parts: Sequence[Mapping[str, Any]]) -> Processes:
    waits: dict[str, HabitSpan] = {}
    for child in (child for one in parts for child in one.get("waits_for") or ()):
        key = str(child.get("name", ""))
        waits[key] = waits.get(key, HabitSpan()) + HabitSpan(_number(child, "wait_s"), _number(child, "looks"))
    processes, seen_s, cpu_s = (_total(parts, what) for what in ("processes", "seen_s", "cpu_s"))
    faults, system_s = _total(parts, "minor_faults"), _total(parts, "system_s")
    return Processes(name, processes, seen_s, cpu_s, system_s, faults, waits, _others(parts))


def _others(parts: Sequence[Mapping[str, Any]]) -> dict[Other, OtherSpan]:
    found: dict[Other, OtherSpan] = {}
    for one in (one for part in parts for one in part.get("waits_on") or ()):
        name, path = str(one.get("name", "")), str(one.get("path", ""))
        key = Other(str(one.get("in", "")), name, path, one.get("is_child") is True)
        before = found.get(key, OtherSpan())
        span = before.span + HabitSpan(_number(one, "wait_s"), _number(one, "looks"))
        found[key] = OtherSpan(span, before.ran + _number(one, "ran"))
    return found
