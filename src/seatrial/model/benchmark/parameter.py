"""The parameters of a benchmark: their accepted values, and how text is converted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, TypedDict, Unpack

from msgspec import field

from seatrial.errors import UsageError, did_you_mean, nearest_names
from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import As, Setting, Settings
from seatrial.model.machine.machine import Machine
from seatrial.model.units import LARGEST_COUNT, parse_bytes

Value = bool | int | float | str | tuple[str, ...]
Params = Mapping[str, Value]
JsonValue = Annotated[Value, As(Setting)]
JsonParams = Annotated[Params, As(Settings)]
"""As in documents, where a list is an argument list, and every number is one kind of value."""


UNKNOWN = "unknown"
"""The value of a parameter that an imported file does not state. No run has it: a default is not stated by a file."""

_LONGEST_TEXT = 4096  # the limit of Linux for a path
_LONGEST_WORD = 131072  # the limit of Linux for one argument (MAX_ARG_STRLEN)
_BOOLEANS = {**dict.fromkeys(("yes", "on", "y", "true"), "true"), **dict.fromkeys(("no", "off", "n", "false"), "false")}
"""What people write for true and false, in lower case."""
_WHOLE = re.compile(r"[0-9]{1,16}")


class ParameterKind(StrEnum):
    """The type of a parameter's values."""

    FLAG = "flag"  # true or false
    INTEGER = "integer"
    BYTES = "bytes"
    CHOICE = "choice"
    TEXT = "text"  # a name or a path
    WORDS = "words"  # an argument list: words of text, never split or joined by a shell


class _More(TypedDict, total=False):
    """What most parameters leave at its default."""

    minimum: float
    option: str
    spelled: Mapping[str, str | None]


class Parameter(Frozen):
    """One setting. `words` are accepted in place of a number ("all", "auto"); the benchmark's `prepare` resolves them.

    Numbers are at least `minimum`. `option` is the option of a program of seatrial that takes the value; "": none does
    by itself. `spelled` has the words that this program takes in place of some values; it does not get the option at
    all in place of None.
    """

    name: str
    kind: ParameterKind
    default: Value
    help: str
    words: tuple[str, ...] = ()
    minimum: float = 0
    option: str = ""
    spelled: Mapping[str, str | None] = field(default_factory=dict)

    @classmethod
    def integer(
        cls, name: str, default: int | str, meaning: str, words: tuple[str, ...] = (), **more: Unpack[_More]
    ) -> Parameter:
        """A whole number; a default that is a word is accepted too."""
        return cls(name, ParameterKind.INTEGER, default, meaning, words or _word(default), **more)

    @classmethod
    def size(
        cls, name: str, default: int | str, meaning: str, words: tuple[str, ...] = (), **more: Unpack[_More]
    ) -> Parameter:
        """A size in bytes; a default that is a word is accepted too."""
        return cls(name, ParameterKind.BYTES, default, meaning, words or _word(default), **more)

    @classmethod
    def choice(cls, name: str, default: str, meaning: str, words: tuple[str, ...], **more: Unpack[_More]) -> Parameter:
        """One of these words."""
        return cls(name, ParameterKind.CHOICE, default, meaning, words, **more)

    @classmethod
    def switch(cls, name: str, default: bool, meaning: str, **more: Unpack[_More]) -> Parameter:
        """True or false."""
        return cls(name, ParameterKind.FLAG, default, meaning, **more)

    @classmethod
    def text(
        cls, name: str, default: str, meaning: str, words: tuple[str, ...] = (), **more: Unpack[_More]
    ) -> Parameter:
        """A name or a path."""
        return cls(name, ParameterKind.TEXT, default, meaning, words, **more)

    @classmethod
    def word_list(cls, name: str, default: str | tuple[str, ...], meaning: str) -> Parameter:
        """An argument list; a default that is a word is accepted too."""
        return cls(name, ParameterKind.WORDS, default, meaning, _word(default))

    def arguments(self, params: Params) -> list[str]:
        """The option and its value, of the resolved parameters; none if no program takes it."""
        value = params.get(self.name, self.default)
        word = self.spelled.get(str(value), str(int(value)) if isinstance(value, bool) else str(value))
        return [] if word is None or not self.option else [self.option, word]

    def accepts(self) -> str:
        """The accepted values, for messages and help."""
        spelled = {
            ParameterKind.FLAG: "true or false",
            ParameterKind.INTEGER: f"an integer >= {self.minimum:g}",
            ParameterKind.BYTES: "a size such as 64MiB",
            ParameterKind.CHOICE: "",
            ParameterKind.TEXT: "a name or a path",
            ParameterKind.WORDS: "a list of arguments, in study files only",
        }[self.kind]
        return ", ".join(filter(None, (*self.words, spelled)))

    def value_of(self, given: object) -> Value:
        """The value of `given` (text from a command line, or a typed value from a file). Raises UsageError."""
        if isinstance(given, str) and given in self.words:
            return given
        suggestion = ""
        try:
            value = self._convert(given)
        except UsageError as error:
            value = None
            suggestion = error.todo if error.todo.endswith("?") else ""
        if value is None or (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and not self.minimum <= value <= LARGEST_COUNT
        ):
            todo = suggestion or self._nearest(given) or f"it takes {self.accepts()}"
            raise UsageError(f"{self.name} cannot be {given!r}", todo)
        return value

    def _nearest(self, given: object) -> str:
        """The question that suggests the word that is probably meant; "" if none is near."""
        if not isinstance(given, str):
            return ""
        if self.kind is ParameterKind.FLAG and (meant := _BOOLEANS.get(given.strip().lower())) is not None:
            return did_you_mean([meant])
        near = nearest_names(given, self.words) if any(letter.isalpha() for letter in given) else []
        return did_you_mean(near) if near else ""

    def _convert(self, given: object) -> Value | None:
        """`given` as a value of this kind; None if it is not one."""
        text = given.strip() if isinstance(given, str) else None
        match self.kind:
            case ParameterKind.FLAG:
                if isinstance(given, bool):
                    return given
                return {"true": True, "false": False}.get(text) if text is not None else None
            case ParameterKind.INTEGER:
                if isinstance(given, int) and not isinstance(given, bool):
                    return given
                return int(text) if text is not None and _WHOLE.fullmatch(text) else None
            case ParameterKind.BYTES:
                if isinstance(given, int) and not isinstance(given, bool):
                    return given
                return parse_bytes(text) if text is not None else None
            case ParameterKind.CHOICE:
                return None
            case ParameterKind.TEXT:
                return text if text and text.isprintable() and len(text) <= _LONGEST_TEXT else None
            case ParameterKind.WORDS:
                return _words(given)


def _word(default: Value) -> tuple[str, ...]:
    return (default,) if isinstance(default, str) else ()


def whole(value: Value | None) -> int:
    """The value of an integer parameter as int. Raises TypeError for an argument list."""
    if value is None or isinstance(value, tuple):
        raise TypeError(f"{value!r} is not a number")
    return int(value)


def value_from_json(value: object) -> Value:
    """A parameter value from JSON, where a list is an argument list. Raises TypeError for other types."""
    if isinstance(value, list):
        return tuple(str(word) for word in value)
    if not isinstance(value, bool | int | float | str):
        raise TypeError(f"{value!r} is not a parameter value")
    return value


def _words(given: object) -> tuple[str, ...] | None:
    """A non-empty list of valid program arguments (no NUL), or None."""
    if not isinstance(given, list | tuple) or not given:
        return None
    if not all(isinstance(word, str) and "\0" not in word and len(word) <= _LONGEST_WORD for word in given):
        return None
    return tuple(given) if given[0] else None


CACHES_TIMES = 4
"""Data of this multiple of the last-level cache size count as beyond the caches: STREAM's rule for each of its arrays
(J. D. McCalpin). A cache with random replacement still holds a fifth of a ring of twice its size, and 2 % of one of
four times its size."""


def beyond_caches_B(machine: Machine, cpus: Iterable[int]) -> int | None:
    """The smallest size in bytes beyond the last-level caches of these CPUs; None if the caches are unknown."""
    caches_B = machine.last_level_cache_bytes(cpus)
    return None if caches_B is None else CACHES_TIMES * caches_B
