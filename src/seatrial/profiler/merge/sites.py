"""The call sites of MPI over all ranks, also those that are more than an address.

The call sites of MPI over all ranks. Addresses are first mapped to (file, offset), which agrees across ranks; call
sites that are more than an address to (a file of no name, number of the path).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from seatrial.profiler.cause import Caller, CallSite, Frame, Resolve, is_for_others, shown_of
from seatrial.profiler.merge.rows import Rows
from seatrial.profiler.tables.process_table import PLACE_BIT, CallPlace, Module, ProcessTable

if TYPE_CHECKING:
    import numpy.typing as npt
_C_LIBRARY = re.compile(r"libc(\.so\.6|-2\.\d+\.so)")
_INTERPRETER = re.compile(r"(lib)?python3[.\d]*[a-z]*(\.so.*)?|pypy3.*")


class Paths:
    """The calls that led to MPI in the processes of a program, each path once: those of processes that have their files
    mapped at other addresses are the same."""

    def __init__(self) -> None:
        self.found: list[tuple[Caller, ...]] = []
        self._numbers: dict[tuple[Caller, ...], int] = {}

    def number_of(self, place: CallPlace, table: ProcessTable, mapped: Sequence[Module]) -> int:
        """The index of the path of a call site. `mapped` are the modules of the process by address."""
        path = _path(place, table, mapped)
        number = self._numbers.setdefault(path, len(self.found))
        if number == len(self.found):
            self.found.append(path)
        return number


def _path(place: CallPlace, table: ProcessTable, mapped: Sequence[Module]) -> tuple[Caller, ...]:
    native = [located(address, table, mapped) for address in place.addresses]
    python = [Caller(frames=(frame,)) for frame in place.python]
    if python:
        is_interpreter = [_INTERPRETER.fullmatch(PurePosixPath(one.module).name) is not None for one in native]
        if True in is_interpreter[1:]:
            del native[is_interpreter.index(True, 1) :]
        if len(place.addresses) == 1 and is_for_others(native[0].module):
            native = []
    else:
        _drop_start(native)
    return (*native, *python)


def _drop_start(path: list[Caller]) -> None:
    """Drop what calls `main`: functions of the C library, and `_start` of the program."""
    is_c = [_C_LIBRARY.fullmatch(PurePosixPath(one.module).name) is not None for one in path]
    end = len(path) if is_c[-1] else len(path) - 1
    first = end
    while first > 1 and is_c[first - 1]:
        first -= 1
    if first < end:
        del path[first:]


def located(address: int, table: ProcessTable, mapped: Sequence[Module]) -> Caller:
    """Where an address of a process is: its file and the offset there. `mapped`: its modules, by address."""
    place = bisect_right(mapped, address, key=lambda one: one.begin) - 1
    if place < 0 or address >= mapped[place].end:
        return Caller()
    module = mapped[place]
    return Caller(module.path or table.program, address - module.begin + module.offset)


_MOST_RESOLVED = 1000
_NOWHERE, _PATH = 0, 1
_BITS_OF_FILE = 32


def call_sites(tables: Sequence[ProcessTable], rows: Rows, names: Sequence[str], resolve: Resolve) -> list[CallSite]:
    """Call sites by function and address, longest time first. The first thousand are resolved to functions and
    lines."""
    if not len(rows.call):
        return []
    files, paths, module, offset = _places(tables, rows)
    # The sort is stable: the rows of a process stay together.
    order = np.lexsort((offset, rows.call << _BITS_OF_FILE | module))
    call, module, offset, process = rows.call[order], module[order], offset[order], rows.process[order]
    is_new = np.ones(len(order), bool)
    is_new[1:] = (call[1:] != call[:-1]) | (module[1:] != module[:-1]) | (offset[1:] != offset[:-1])
    first = np.flatnonzero(is_new)
    other_rank = is_new.copy()
    other_rank[1:] |= process[1:] != process[:-1]
    sums = [np.add.reduceat(column[order], first) for column in (rows.count, rows.time_s, rows.bytes)]
    ranks = np.add.reduceat(other_rank.astype(np.int64), first)
    found: list[CallSite] = []
    keys = (call[first], module[first], offset[first])
    for c, m, at, count, time_s, total, n in zip(*(column.tolist() for column in (*keys, *sums, ranks)), strict=True):
        path = paths.found[at] if m == _PATH else ()
        if path:
            shown, whole = path[shown_of(path)], path if len(path) > 1 else ()
            place = shown.module, shown.offset
            found.append(CallSite(names[c - 1], *place, count, time_s, total, n, shown.frames, whole))
        else:
            found.append(CallSite(names[c - 1], files[m], at, count, time_s, total, n))
    found.sort(key=lambda one: (-one.time_s, one.call, one.module, one.offset))
    return _resolved(found, resolve)


def _places(
    tables: Sequence[ProcessTable], rows: Rows
) -> tuple[list[str], Paths, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(files, paths, index of the file of each row, offset in it). File 0 is "", for addresses in no mapped file; file
    1 stands for the paths, with the number of the path as offset."""
    numbers: dict[str | None, int] = {"": _NOWHERE, None: _PATH}
    paths = Paths()
    module: npt.NDArray[np.int64] = np.zeros(len(rows.call), np.int64)
    offset: npt.NDArray[np.int64] = np.zeros(len(rows.call), np.int64)
    ends = np.searchsorted(rows.process, np.arange(len(tables) + 1))
    for table, start, end in zip(tables, ends[:-1], ends[1:], strict=True):
        site = rows.site[start:end]
        mapped = sorted(table.modules, key=lambda one: one.begin)
        if not mapped or not len(site):
            continue
        begins = np.array([one.begin for one in mapped], np.uint64)
        stops = np.array([one.end for one in mapped], np.uint64)
        offsets = np.array([one.offset for one in mapped], np.int64)
        which = np.array([numbers.setdefault(one.path or table.program, len(numbers)) for one in mapped], np.int64)
        place = np.searchsorted(begins, site, "right") - 1
        is_in = (place >= 0) & (site < stops[place])
        module[start:end] = np.where(is_in, which[place], _NOWHERE)
        offset[start:end] = np.where(is_in, (site - begins[place]).astype(np.int64) + offsets[place], 0)
        for key in np.unique(site[site >= np.uint64(PLACE_BIT)]).tolist():
            if key in table.places:
                is_there = np.flatnonzero(site == np.uint64(key)) + start
                module[is_there], offset[is_there] = _PATH, paths.number_of(table.places[key], table, mapped)
    return [name or "" for name in numbers], paths, module, offset


def _resolved(sites: list[CallSite], resolve: Resolve) -> list[CallSite]:
    wanted: dict[str, set[int]] = {}
    for site in sites[:_MOST_RESOLVED]:
        for module, offset in ((site.module, site.offset), *((one.module, one.offset) for one in site.path)):
            if module:
                wanted.setdefault(module, set()).add(offset)
    known = {module: resolve(module, sorted(offsets)) for module, offsets in wanted.items()}

    def frames(one: CallSite | Caller) -> tuple[Frame, ...]:
        return known.get(one.module, {}).get(one.offset, ()) if one.module else one.frames

    named = [
        replace(site, frames=frames(site), path=tuple(replace(one, frames=frames(one)) for one in site.path))
        for site in sites[:_MOST_RESOLVED]
    ]
    return named + sites[_MOST_RESOLVED:]
