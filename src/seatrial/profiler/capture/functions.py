"""The functions of MPI in C with the kinds of their arguments: the table from which everything else is derived.

The table is `functions.txt`, made from the standard (MPI: A Message-Passing Interface Standard, Version 4.1,
Message Passing Interface Forum, November 2023). A line holds a function and its arguments, each as `name:kind`:

    MPI_Irecv buf:>buffer count:~count datatype:datatype source:rank tag:tag comm:comm request:>request

`>` before a kind: the call writes it; `=`: it reads and writes it; `~`: wider in the `_c` function of the same name
(MPI_Count instead of int); `+`: an argument of the `_c` function only; `[]` after it: an array. `!` after a name: it
does not return an error code; `-`: it has no Fortran binding; `^`: it is newer than MPI 3.1 (see the change logs of
4.0, 4.1 and 5.0), or is in 3.0 without a C binding in Open MPI.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from msgspec.structs import replace

from seatrial.model.frozen import Frozen

_TABLE = Path(__file__).with_name("functions.txt")
_LINE = re.compile(r"(MPI_\w+)(!?)(-?)(\^?)((?: \w+:[>=]?[~+]?\w+(?:\[\])?)*)")
_PARAMETER = re.compile(r"(\w+):([>=]?)([~+]?)(\w+)(\[\])?")


class FunctionParameter(Frozen):
    """An argument: its name and kind in the standard. `is_wider`: MPI_Count or MPI_Aint in the `_c` function;
    `is_large_only`: an argument of the `_c` function only."""

    name: str
    kind: str
    is_written: bool
    is_read: bool
    is_array: bool
    is_wider: bool
    is_large_only: bool


class Function(Frozen):
    """An MPI function in C. `is_newer`: missing in libraries of MPI 3.1, the oldest version in use. `is_large`: the
    `_c` function with MPI_Count."""

    name: str
    parameters: tuple[FunctionParameter, ...]
    returns_error: bool
    has_fortran: bool
    is_newer: bool
    is_large: bool = False

    @property
    def base(self) -> str:
        """The name without `_c`."""
        return self.name.removesuffix("_c") if self.is_large else self.name


@cache
def functions() -> tuple[Function, ...]:
    """All functions by name: those of the table, then the `_c` ones in the same order."""
    listed = [_function(line) for line in _TABLE.read_text(encoding="ascii").splitlines()]
    large = [
        replace(function, name=f"{function.name}_c", is_newer=True, is_large=True)
        for function in listed
        if any(parameter.is_wider for parameter in function.parameters)
    ]
    small = [
        replace(function, parameters=tuple(each for each in function.parameters if not each.is_large_only))
        for function in listed
    ]
    return (*small, *large)


@cache
def function_names() -> tuple[str, ...]:
    """The names of all functions; a slot of a profiler's table holds the index in this tuple plus 1."""
    return tuple(function.name for function in functions())


def _function(line: str) -> Function:
    matched = _LINE.fullmatch(line)
    if matched is None:
        raise ValueError(f"{_TABLE.name}: invalid line {line!r}")
    name, other_result, no_fortran, newer, words = matched.groups()
    parameters = tuple(
        FunctionParameter(word, kind, direction != "", direction != ">", array is not None, width == "~", width == "+")
        for word, direction, width, kind, array in (
            found.groups() for found in map(_PARAMETER.fullmatch, words.split()) if found is not None
        )
    )
    return Function(name, parameters, not other_result, not no_fortran, bool(newer))
