"""Sensors that are files of sysfs: read once, or by the reader again and again.

The reader keeps them open and copies their bytes; what they mean is found when its readings are collected. Files of one
set (Cray's) are taken together: what says how often the set was updated must be the same before and after.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from seatrial.machine.files import FileTree
from seatrial.model.frozen import Frozen
from seatrial.probes.power.source import Reading, Values

_MOST_B = 256
_MOST_TRIES = 5
CHANGED = "changed each time that it was read"
Raw = tuple[int, float, float, bytes | None, str]
"""Number of the sensor, when it was read (the middle, CLOCK_MONOTONIC), for how long, its bytes, else why none."""


class SensorFile(Frozen):
    """A file with the value of a sensor. `values`: (bytes, seconds on CLOCK_MONOTONIC) -> what a `Reading` has;
    `refused`: the fault of one that may not be read. `same`: the file that is the same before and after a set.
    `is_kept`: the kernel's own, which nobody replaces."""

    path: Path
    values: Callable[[bytes, float], Values]
    refused: str = "cannot be read without root"
    same: Path | None = None
    is_kept: bool = True

    def reading(self, at_s: float, took_s: float, data: bytes | None, fault: str = "") -> Reading:
        """What these bytes mean."""
        return Reading(at_s, took_s, **({"fault": fault} if data is None else self.values(data, at_s)))

    def read(self) -> Reading:
        """Read once."""
        files = OpenFiles({0: self})
        try:
            ((_, at_s, took_s, data, fault),) = files.read()
            return self.reading(at_s, took_s, data, fault)
        finally:
            files.close()


def file_of(tree: FileTree, path: str, values: Callable[[bytes, float], Values], **more: object) -> SensorFile:
    """The file of a tree."""
    return SensorFile(tree.where(path), values, is_kept=tree.is_live, **more)  # type: ignore[arg-type]


def integer(data: bytes) -> int | None:
    """The whole number in a one-value file, or None."""
    try:
        return int(data)
    except ValueError:
        return None


class OpenFiles:
    """Files of sensors by their numbers, that are kept open."""

    def __init__(self, files: Mapping[int, SensorFile]) -> None:
        self._sets: dict[Path | None, list[tuple[int, _Open]]] = {}
        self._same: dict[Path, _Open] = {}
        for number, file in files.items():
            self._sets.setdefault(file.same, []).append((number, _Open(file.path, file.refused, file.is_kept)))
            if file.same is not None and file.same not in self._same:
                self._same[file.same] = _Open(file.same, file.refused, file.is_kept)

    def read(self) -> list[Raw]:
        """All of them now."""
        found: list[Raw] = []
        for same, members in self._sets.items():
            found += _each(members) if same is None else self._set(self._same[same], members)
        return found

    def close(self) -> None:
        """Close them."""
        for one in (*self._same.values(), *(one for members in self._sets.values() for _, one in members)):
            one.close()

    def _set(self, same: _Open, members: Sequence[tuple[int, _Open]]) -> list[Raw]:
        """The set at one moment; of a tree without that file, as it is."""
        found: list[Raw] = []
        before, _ = same.read()
        for _ in range(_MOST_TRIES):
            found = _each(members)
            after, _ = same.read()
            if after == before:
                return found
            before = after
        return [(number, at_s, took_s, None, CHANGED) for number, at_s, took_s, _, _ in found]


def _each(members: Sequence[tuple[int, _Open]]) -> list[Raw]:
    found: list[Raw] = []
    before_s = time.monotonic()
    for number, one in members:
        data, fault = one.read()
        now_s = time.monotonic()
        found.append((number, (before_s + now_s) / 2, now_s - before_s, data, fault))
        before_s = now_s
    return found


class _Open:
    """A file that is open. Of a device that has gone, it is opened again."""

    __slots__ = ("_file", "_is_kept", "_path", "_refused")

    def __init__(self, path: Path, refused: str, is_kept: bool) -> None:
        self._path, self._refused, self._is_kept = path, refused, is_kept
        self._file = -1

    def read(self) -> tuple[bytes | None, str]:
        """Its bytes, or None and why."""
        for _ in range(2):
            try:
                if self._file >= 0 and not self._is_kept and not os.fstat(self._file).st_nlink:
                    self.close()
                if self._file < 0:
                    self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
                return os.pread(self._file, _MOST_B, 0), ""
            except PermissionError:
                return None, self._refused
            except OSError:  # missing; EINVAL, EIO and ENODEV of drivers without a value
                if self._file < 0:
                    break
                self.close()
        return None, "reports no value"

    def close(self) -> None:
        """Close it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
