"""Call sites that are more than an address: which of the calls that led to MPI is shown as the place."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import PurePosixPath

from seatrial.profiler.call_site import Caller
from seatrial.profiler.tables.places import Place
from seatrial.profiler.tables.process_table import Module, ProcessTable

_FOR_OTHERS = re.compile(
    r"lib(petsc|slepc|hdf5|netcdf|pnetcdf|adios2|scalapack|fftw3|superlu_dist|HYPRE|parmetis|ptscotch|"
    r"mpi|pmpi|mpich|mpifort|mpicxx|mpichf90|mpichcxx|mpicxx|oshmem|ffi|boost_mpi|MPItrampoline)[^/]*\.so.*"
    r"|MPI\..*\.so|_ctypes\..*\.so|_cffi_backend\..*\.so|(_?h5py|defs|h5\w*)\.(cpython|abi3).*\.so|PETSc\..*\.so"
)
"""Files of libraries and language bindings that call MPI for the code that calls them."""
_C_LIBRARY = re.compile(r"libc(\.so\.6|-2\.\d+\.so)")
_INTERPRETER = re.compile(r"(lib)?python3[.\d]*[a-z]*(\.so.*)?|pypy3.*")


def is_for_others(module: str) -> bool:
    """Whether this file is a library that calls MPI for others, by its name."""
    return _FOR_OTHERS.fullmatch(PurePosixPath(module).name) is not None


def shown_of(path: Sequence[Caller]) -> int:
    """The index of the innermost call outside of libraries that call MPI for others; 0 if all are inside."""
    return next((k for k, one in enumerate(path) if not (one.module and is_for_others(one.module))), 0)


class Paths:
    """The calls that led to MPI in the processes of a program, each path once: those of processes that have their files
    mapped at other addresses are the same."""

    def __init__(self) -> None:
        self.found: list[tuple[Caller, ...]] = []
        self._numbers: dict[tuple[Caller, ...], int] = {}

    def number_of(self, place: Place, table: ProcessTable, mapped: Sequence[Module]) -> int:
        """The index of a place's path. `mapped` are the modules of the process by address."""
        path = _path(place, table, mapped)
        number = self._numbers.setdefault(path, len(self.found))
        if number == len(self.found):
            self.found.append(path)
        return number


def _path(place: Place, table: ProcessTable, mapped: Sequence[Module]) -> tuple[Caller, ...]:
    native = [_located(address, table, mapped) for address in place.addresses]
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


def _located(address: int, table: ProcessTable, mapped: Sequence[Module]) -> Caller:
    place = bisect_right(mapped, address, key=lambda one: one.begin) - 1
    if place < 0 or address >= mapped[place].end:
        return Caller()
    module = mapped[place]
    return Caller(module.path or table.program, address - module.begin + module.offset)
