"""Several runs in one text, such as those of a loop in a job script: each begins at a line that its program prints
first. What is above that line, from the last command on (a prompt, the trace of a shell), belongs to the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from seatrial.applications.reading.commands import command_of
from seatrial.applications.reading.text import Pattern
from seatrial.model.frozen import Frozen

JSON_BEGIN = r"(?<!\s)\{(?!.*\}$).*"
"""The line that begins a JSON object, at the left margin; not an object of one line, as a structured log has them."""
_LONGEST_BANNER = 1000


Starts = Callable[[Sequence[str]], Sequence[int]]
"""The lines, as indices, at which runs begin: for logs in which several lines together decide that."""


class Part(Frozen):
    """The lines of one run, as indices: those from `above` to `begin` may be of the shell, those to `end` are of the
    program, and of what was printed after it."""

    above: int
    begin: int
    end: int


def parts_of(lines: Sequence[str], begins: Sequence[str], starts_of: Starts | None = None) -> list[Part]:
    """The runs in these lines, in order; one part with all lines if at most one line begins a run. `starts_of` replaces
    `begins`.

    `begins` are patterns of lines with which a run begins, in the order in which the program prints them: a line of the
    same pattern as the last one, or of an earlier one, begins another run.
    """
    starts = _starts(lines, begins) if starts_of is None else starts_of(lines)
    if len(starts) < 2:
        return [Part(0, starts[0] if starts else len(lines), len(lines))]
    above = [0, *(_first_above(lines, before + 1, start) for before, start in pairwise(starts))]
    return [Part(*one) for one in zip(above, starts, [*above[1:], len(lines)], strict=True)]


def _starts(lines: Sequence[str], begins: Sequence[str]) -> list[int]:
    patterns = [Pattern(rf"\s{{0,200}}(?:{begin})").compiled for begin in begins]
    found: list[int] = []
    last = len(patterns)
    for index, line in enumerate(lines if patterns else ()):
        if not line or len(line) > _LONGEST_BANNER:
            continue
        text = line.replace("\N{NO-BREAK SPACE}", " ").expandtabs(8).rstrip()
        order = next((k for k, pattern in enumerate(patterns) if pattern.fullmatch(text)), None)
        if order is not None:
            if order <= last:
                found.append(index)
            last = order
    return found


def _first_above(lines: Sequence[str], begin: int, end: int) -> int:
    """The first of the lines from `begin` to `end` that belong to the run which begins at `end`: its command, with the
    commands directly above it."""
    first = next((k for k in range(end - 1, begin - 1, -1) if command_of(lines[k])), end)
    while begin < first < end and command_of(lines[first - 1]):
        first -= 1
    return first
