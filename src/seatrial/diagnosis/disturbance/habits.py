"""What the threads of a program did while they were looked at, added up over the repeats: they slept, or waited for
mutexes or child processes; and its page faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seatrial.model.frozen import Frozen


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


class Processes(Frozen):
    """The processes of one name. `waits_for`: by the name of a child, while no thread of theirs ran."""

    name: str
    processes: float
    seen_s: float
    cpu_s: float
    system_s: float
    minor_faults: float
    waits_for: Mapping[str, HabitSpan] = {}


class Habits(Frozen):
    """Sums over repeats. `looked_s`: the time that the looks stand for; `runs` of the program were made in it.

    `system_s`, `minor_faults` and `voluntary` (switches) are of the program and the children that it waited for.
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


def habits(repeats: Sequence[Mapping[str, Any]]) -> Habits | None:
    """None if some of the repeats have no such values: records of earlier versions, or of other programs."""
    looks = [part for one in repeats if isinstance(part := one.get("looks"), Mapping) and "processes" in part]
    if not looks or len(looks) < len(repeats):
        return None

    locks = [part for one in looks if isinstance(part := one.get("locks"), Mapping)]
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
    )


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
    return Processes(name, processes, seen_s, cpu_s, _total(parts, "system_s"), _total(parts, "minor_faults"), waits)
