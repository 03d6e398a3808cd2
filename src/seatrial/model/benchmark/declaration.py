"""A benchmark that a user declares in a file: any program, with figures and checks read from what it prints or writes.

The declaration is data: its document is stored with the results, from which the figures can be read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import Annotated, Any, Literal

from msgspec import field

from seatrial.model.benchmark.parameter import Parameter, Value
from seatrial.model.frozen import Frozen
from seatrial.model.json_object import plain
from seatrial.model.json_shape import Json, Keywords, Later
from seatrial.model.secrets import masked_words
from seatrial.model.units import Unit

PREFIX = "local."
"""The names of declared benchmarks begin with this."""
FOLDER = "seatrial-benchmarks"
"""The folder whose declaration files are found by name, in the current one."""
STDOUT, STDERR = "stdout", "stderr"
"""In place of the name of a file: what the program prints."""
WALL = "wall"
"""The figure that every declared benchmark has: the time of the whole program, in seconds."""


class Which(StrEnum):
    """Which of several values in one output counts. ONLY: different values are an error. EACH: all are samples."""

    ONLY = "only"
    FIRST = "first"
    LAST = "last"
    EACH = "each"


class Pick(Frozen):
    """Where a number is: in the one group of `pattern`, a regular expression for one line, or at the path `json`.

    `file` is a file in the folder of the repeat, or STDOUT or STDERR.
    """

    pattern: str = ""
    json: str = ""
    file: str = STDOUT
    which: Which = Which.ONLY

    @property
    def words(self) -> str:
        """For messages."""
        return f"the pattern {self.pattern!r}" if self.pattern else f"the JSON path {self.json!r}"


class DeclaredFigure(Frozen):
    """A figure. `scale` turns the number in the output into `unit`; `is_higher_better`: its direction."""

    name: str
    unit: Unit
    is_higher_better: bool
    pick: Pick
    scale: float = 1.0

    @property
    def series(self) -> str:
        """The series of its samples: a figure with another unit or direction is another figure."""
        return f"{self.name} [{self.unit}, {'higher' if self.is_higher_better else 'lower'} is better]"


class DeclaredCheck(Frozen):
    """A condition: the number at `pick` is from `low` to `high`; or `must_match` is set, and a line that `pick.pattern`
    finds is there (true) or not (false)."""

    name: str
    pick: Pick
    low: float = float("-inf")
    high: float = float("inf")
    must_match: bool | None = None


_Name = Annotated[str, Keywords(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")]


class StoredFigure(Frozen):
    """A figure of a declaration."""

    name: _Name
    unit: Unit
    better: Literal["higher", "lower"]


class StoredDeclaration(Frozen):
    """What results need of a declaration. `argv` is its command with `{parameter}` for a value, `variables` are those
    that name a parameter; both are empty in results of earlier versions."""

    name: _Name
    question: Annotated[str, Keywords(maxLength=10_000)]
    parameters: Annotated[tuple[str, ...], Keywords(maxItems=1000)]
    figures: Annotated[tuple[StoredFigure, ...], Keywords(maxItems=1000)]
    argv: Later[Annotated[tuple[str, ...], Keywords(maxItems=1000)]] = ()
    variables: Later[Mapping[str, str]] = field(default_factory=dict)


class Declaration(Frozen):
    """One declared benchmark. `name` is without PREFIX.

    `argv` is its command; `{parameter}` stands for a value. `ranks`: it is an MPI program. `variables` are set when it
    runs. `build` are commands, run once in the folder of the declaration; `files` are copied from there into the folder
    of each repeat, in which it runs. `exit_status` is the expected one.
    """

    name: str
    question: str
    argv: tuple[str, ...]
    parameters: tuple[Parameter, ...] = ()
    figures: tuple[DeclaredFigure, ...] = ()
    checks: tuple[DeclaredCheck, ...] = ()
    ranks: bool = False
    variables: tuple[tuple[str, str], ...] = ()
    build: tuple[tuple[str, ...], ...] = ()
    files: tuple[str, ...] = ()
    exit_status: int = 0
    expected_s: float = 1.0

    @property
    def full_name(self) -> str:
        """With PREFIX."""
        return PREFIX + self.name

    def identity(self) -> dict[str, Any]:
        """What makes it another experiment if it changes, as JSON: not the question, nor how long it is expected to
        take."""
        return {
            "argv": list(self.argv),
            "variables": dict(self.variables),
            "exit_status": self.exit_status,
            "figures": [[f.series, f.scale, _pick(f.pick)] for f in self.figures],
            "checks": [[c.name, repr(c.low), repr(c.high), c.must_match, _pick(c.pick)] for c in self.checks],
        }

    def stored(self) -> Json:
        """The document that is stored with its results."""
        figures = (StoredFigure(f.name, f.unit, "higher" if f.is_higher_better else "lower") for f in self.figures)
        return plain(
            StoredDeclaration(
                self.name,
                self.question,
                tuple(p.name for p in self.parameters),
                tuple(figures),
                masked_words(self.argv),
                {name: text for name, text in self.variables if parameters_in([text])},
            )
        )


def _pick(pick: Pick) -> list[str]:
    return [pick.pattern, pick.json, pick.file, pick.which]


def parameters_in(texts: Iterable[str]) -> frozenset[str]:
    """The names of the parameters in braces, as `filled_in` reads them. A text with an open brace, which no declaration
    has, ends at it: the texts may be from a results folder."""
    found: set[str] = set()

    class Found(dict[str, Value]):
        def __missing__(self, name: str) -> Value:
            found.add(name)
            return ""

    for text in texts:
        with suppress(ValueError):
            filled_in(text, Found())
    return frozenset(found)


def filled_in(text: str, values: Mapping[str, Value]) -> str:
    """`text` with the values of the parameters in braces; `{{` and `}}` are braces. Raises KeyError for an unknown
    name, ValueError for an open brace."""
    made, at = [], 0
    while at < len(text):
        if text[at : at + 2] in ("{{", "}}"):
            made.append(text[at])
            at += 2
        elif text[at] == "{":
            end = text.find("}", at)
            if end < 0:
                raise ValueError("an open brace is never closed; write {{ for a brace")
            made.append(_spelled(values[text[at + 1 : end]]))
            at = end + 1
        elif text[at] == "}":
            raise ValueError("a closing brace without an open one; write }} for a brace")
        else:
            made.append(text[at])
            at += 1
    return "".join(made)


def _spelled(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return " ".join(value) if isinstance(value, tuple) else str(value)
