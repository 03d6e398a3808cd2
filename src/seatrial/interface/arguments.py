"""Arguments that are named as the options of the commands: a time or a size is a number in SI units, or text as on the
command line ("5min", "64MiB")."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar, overload

from seatrial.errors import UsageError
from seatrial.model.units import parse_bytes, parse_seconds
from seatrial.processes.working_folder import on_path

P = ParamSpec("P")
R = TypeVar("R")

Time = float | str
Size = int | str


@overload
def seconds(given: Time) -> float: ...
@overload
def seconds(given: Time | None) -> float | None: ...
def seconds(given: Time | None) -> float | None:
    """In seconds. Raises UsageError for text that is not a time with a unit."""
    return parse_seconds(given) if isinstance(given, str) else given


def size_B(given: Size) -> int:
    """In bytes. Raises UsageError for text that is not a size."""
    return parse_bytes(given) if isinstance(given, str) else given


def check_runnable(command: Sequence[str]) -> None:
    """Raises UsageError for a command that is empty, or whose program is not found."""
    if not command:
        raise UsageError("no command given", "write it after --, such as -- ./app")
    if on_path(command[0], os.environ.get("PATH")) is None:
        raise UsageError(f"{command[0]}: not found", "give a program on PATH, or its path")


def once_named(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """The function also takes arguments by these names of version 0.2, in place of the new ones."""

    def add(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def called(*args: P.args, **given: P.kwargs) -> R:
            for old, new in names.items():
                if old in given and new in given:
                    raise TypeError(f"{function.__name__}() got {new} and {old}, which was its name")
            renamed: Any = {names.get(name, name): value for name, value in given.items()}
            return function(*args, **renamed)

        return called

    return add
