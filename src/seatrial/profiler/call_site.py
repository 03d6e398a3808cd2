"""The place in a program that calls MPI."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Annotated

from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import Count, Keywords, NonNegative


class Frame(Frozen):
    """A place in a source file: `file` is "" and `line` 0 if the program has no debug information for it."""

    function: str
    file: str = ""
    line: int = 0


class Caller(Frozen):
    """One call on the way to a call of MPI: the return address, as `offset` in the file `module`, or a line of Python,
    which has only `frames`. These go from the innermost (perhaps inlined) function outwards; empty if no symbol is
    known."""

    module: str = ""
    offset: int = 0
    frames: tuple[Frame, ...] = ()


_FOR_OTHERS = re.compile(
    r"lib(petsc|slepc|hdf5|netcdf|pnetcdf|adios2|scalapack|fftw3|superlu_dist|HYPRE|parmetis|ptscotch|"
    r"mpi|pmpi|mpich|mpifort|mpicxx|mpichf90|mpichcxx|mpicxx|oshmem|ffi|boost_mpi|MPItrampoline)[^/]*\.so.*"
    r"|MPI\..*\.so|_ctypes\..*\.so|_cffi_backend\..*\.so|(_?h5py|defs|h5\w*)\.(cpython|abi3).*\.so|PETSc\..*\.so"
)
"""Files of libraries and language bindings that call MPI for the code that calls them."""


def is_for_others(module: str) -> bool:
    """Whether this file is a library that calls MPI for others, by its name."""
    return _FOR_OTHERS.fullmatch(PurePosixPath(module).name) is not None


def shown_of(path: Sequence[Caller]) -> int:
    """The index of the innermost call outside of libraries that call MPI for others; 0 if all are inside."""
    return next((k for k, one in enumerate(path) if not (one.module and is_for_others(one.module))), 0)


Resolve = Callable[[str, Sequence[int]], Mapping[int, tuple[Frame, ...]]]
"""(file, return addresses as offsets in it) -> the frames of the known addresses."""


def no_symbols(module: str, offsets: Sequence[int]) -> Mapping[int, tuple[Frame, ...]]:
    """Leave call sites as file and offset."""
    return {}


class CallSite(Frozen):
    """One place that calls one MPI function. `offset` is the return address in the file `module`.

    `frames` go from the innermost (perhaps inlined) function outwards; empty if no symbol is known. `ranks` is the
    number of ranks that called from here. `module` is "" if the place is a line of Python, if the address is in no
    mapped file, or if it was dropped. `path` are the calls that led here, innermost first, including the call site;
    empty if only that is known. If the innermost ones are in libraries that call MPI for others, the place is the first
    one outside of them.
    """

    call: Annotated[str, Keywords(pattern="^(MPIX?_.*)?$"), '"" for a parallel region']
    module: str
    offset: int
    count: Count
    time_s: NonNegative
    bytes: Count
    ranks: Annotated[Count, "how many of them called here"]
    frames: tuple[Frame, ...] = ()
    path: tuple[Caller, ...] = ()
