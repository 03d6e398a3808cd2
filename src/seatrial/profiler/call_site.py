"""The place in a program that calls MPI."""

from __future__ import annotations

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
