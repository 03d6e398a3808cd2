"""How long experiments and builds took on this machine: what later estimates are made of.

A file of the user's cache for each machine. It may be removed at any time, and what is not understood in it is ignored:
an estimate is then made of what the benchmarks declare. The latest entries are kept.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from statistics import median
from typing import Annotated, TypedDict

from msgspec import Struct

from seatrial.environments.cache import cache_folder, make_folder, own_cache
from seatrial.errors import BuildError, UsageError
from seatrial.model.experiment import content_key
from seatrial.model.json_check import check_shape
from seatrial.model.json_shape import Keywords, NonNegative, Positive, Text
from seatrial.model.secrets import masked_parameters
from seatrial.model.strict_json import parse_json
from seatrial.plan.points import Point
from seatrial.store.files import write_once

BUILD_S = 8.0
"""A program whose build was never timed."""
START_S = 3.0
"""From the start of a command to its first repeat, without builds, if that was never timed."""

_FOLDER = "durations"
_MOST = 4000
_LONGEST_B = 4 << 20
_MOST_SLOWER = 1.25
_FACTORS = (0.05, 50.0)
"""How far an estimate may be from what the benchmark declares because other parameters were."""


class RepeatTimeJson(TypedDict):
    """The mean time of the last repeats of an experiment, and what its benchmark declares."""

    benchmark: Text
    repeat_s: Positive
    declared_s: NonNegative
    at_s: NonNegative


class BuildTimeJson(TypedDict):
    """The time to build a program."""

    build_s: NonNegative
    at_s: NonNegative


class DurationsJson(TypedDict):
    """The file. Times in seconds, `at_s` since the epoch."""

    v: Annotated[int, Keywords(minimum=1, maximum=1)]
    repeats: dict[str, RepeatTimeJson]
    builds: dict[str, BuildTimeJson]
    start_s: NonNegative | None


class Durations(Struct):
    """What is known of one machine."""

    machine_key: str
    repeats: dict[str, RepeatTimeJson] = {}
    builds: dict[str, BuildTimeJson] = {}
    own_start_s: float | None = None
    _factors: dict[str, float] | None = None

    @classmethod
    def of(cls, machine_key: str) -> Durations:
        """Those of a machine; none if the file is missing, damaged, or may have been written by somebody else."""
        found = cls(machine_key)
        with suppress(OSError, ValueError, UsageError, BuildError):
            data = own_cache().read(_FOLDER, f"{machine_key}.json")
            if data is not None and len(data) <= _LONGEST_B:
                document = parse_json(data)
                check_shape(DurationsJson, document)
                found.repeats, found.builds = document["repeats"], document["builds"]
                found.own_start_s = document["start_s"]
        return found

    def repeat_s(self, point: Point) -> float:
        """The expected time of one repeat, in seconds; 0 if it cannot run. As it was measured with the same parameters,
        else as declared, corrected by how far other parameters of the benchmark were from what is declared."""
        declared_s = point.estimate_s
        if declared_s is None:
            return 0.0
        known = self.repeats.get(_key(point))
        return known["repeat_s"] if known is not None else declared_s * self._factor(point.benchmark.name)

    def build_s(self, program: str) -> float:
        """The expected time to build a program, in seconds; of an unknown one, as long as the others took."""
        known = self.builds.get(program)
        if known is not None:
            return known["build_s"]
        return median(one["build_s"] for one in self.builds.values()) if self.builds else BUILD_S

    @property
    def start_s(self) -> float:
        """The expected time from the start of a command to its first repeat, without builds, in seconds."""
        return START_S if self.own_start_s is None else self.own_start_s

    def _factor(self, benchmark: str) -> float:
        if self._factors is None:
            by_name: dict[str, list[float]] = {}
            for one in self.repeats.values():
                if one["declared_s"] > 0.0:
                    by_name.setdefault(one["benchmark"], []).append(one["repeat_s"] / one["declared_s"])
            low, high = _FACTORS
            self._factors = {name: min(max(median(own), low), high) for name, own in by_name.items()}
        return self._factors.get(benchmark, 1.0)


def learn(
    machine_key: str,
    repeats: Iterable[tuple[Point, float]] = (),
    builds: Mapping[str, float] | None = None,
    start_s: float | None = None,
) -> None:
    """Add the mean times of repeats, the times of builds and the time of a start, in seconds; the oldest entries of a
    full file go. A cache that cannot be written is no error: the next estimate is less exact."""
    found, now_s = Durations.of(machine_key), time.time()
    for point, repeat_s in repeats:
        if repeat_s > 0.0:
            declared_s = point.estimate_s or 0.0
            found.repeats[_key(point)] = {
                "benchmark": point.benchmark.name,
                "repeat_s": repeat_s,
                "declared_s": declared_s,
                "at_s": now_s,
            }
    for program, build_s in (builds or {}).items():
        found.builds[program] = {"build_s": build_s, "at_s": now_s}
    document: DurationsJson = {
        "v": 1,
        "repeats": dict(sorted(found.repeats.items(), key=lambda entry: -entry[1]["at_s"])[:_MOST]),
        "builds": dict(sorted(found.builds.items(), key=lambda entry: -entry[1]["at_s"])[:_MOST]),
        "start_s": _slower_by_steps(found.own_start_s, start_s),
    }
    with suppress(OSError, UsageError, BuildError):
        make_folder(cache_folder() / _FOLDER)
        write_once(cache_folder(), _FOLDER, f"{machine_key}.json", data=json.dumps(document).encode())


def _slower_by_steps(before_s: float | None, now_s: float | None) -> float | None:
    """The time of a start that is kept: one that other processes slowed down must not make later budgets hold less."""
    if before_s is None or now_s is None:
        return before_s if now_s is None else now_s
    return min(now_s, _MOST_SLOWER * before_s)


def _key(point: Point) -> str:
    there = {"vm": point.environment.vm} if point.environment.vm is not None else {}
    return content_key({"benchmark": point.benchmark.name, "parameters": masked_parameters(point.parameters), **there})
