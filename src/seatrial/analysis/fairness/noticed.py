"""Something that is not the same on both sides, before it is asked whether anybody wanted it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

LONGEST = 100
"""Characters of a value that are shown."""
_MANY_WORDS = 60
"""Characters from which on only the words are shown that the other side does not have."""


class Kind(StrEnum):
    """What it is a difference of, the most telling first."""

    OUTCOME = "outcome"
    POINT = "experiment"
    PARAMETER = "parameter"
    LIBRARY = "library"
    PROGRAM = "program"
    INPUT = "input file"
    ENVIRONMENT = "environment"
    OWN_LIBRARY = "library of the measuring program"
    AFFINITY = "affinity"
    NOTE = "note"
    VARIABLE = "variable"
    HOST = "host"
    FACT = "fact"
    LOAD = "load"
    STEAL = "steal"
    COMMAND = "command line"
    BUDGET = "budget"
    TIME = "time of measurement"


RANK: Mapping[Kind, int] = {kind: place for place, kind in enumerate(Kind)}


@dataclass(frozen=True, slots=True)
class Noticed:
    """`name` says which of its kind ("threads", "libm.so.6"), "" where there is one only. Sides as in Difference."""

    kind: Kind
    name: str
    baseline: str | None
    candidate: str | None

    @property
    def what(self) -> str:
        """As a difference names it."""
        return f"{self.kind} {self.name}".rstrip()


def contrast(kind: Kind, name: str, baseline: str | None, candidate: str | None) -> Noticed:
    """The two values for people: short, and shortened so that they still look different."""
    if baseline is None or candidate is None:
        return Noticed(kind, name, _short(baseline), _short(candidate))
    if max(len(baseline), len(candidate)) > _MANY_WORDS:
        baseline, candidate = _only_here(baseline, candidate), _only_here(candidate, baseline, first=baseline)
    return Noticed(kind, name, *_short_pair(baseline, candidate))


def _only_here(text: str, other: str, first: str | None = None) -> str:
    """The parts of a long list that the other list does not have; the text itself where that says nothing."""
    separator = "; " if "; " in (first or text) else " "
    parts, others = text.split(separator), other.split(separator)
    if len(parts) + len(others) < 6 or Counter(parts) == Counter(others):
        return text
    rest = Counter(parts) - Counter(others)
    return f"… {separator.join(part for part in dict.fromkeys(parts) if part in rest)}" if rest else "… without these"


def _short(text: str | None) -> str | None:
    return text if text is None or len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _short_pair(first: str, second: str) -> tuple[str, str]:
    """Both from a little before the place where they part."""
    if max(len(first), len(second)) <= LONGEST:
        return first, second
    shorter = min(len(first), len(second))
    same = next((at for at in range(shorter) if first[at] != second[at]), shorter)
    start = max(0, same - LONGEST // 4)
    if max(len(first), len(second)) - start < LONGEST:
        start = max(0, max(len(first), len(second)) - LONGEST + 2)
    return _from(first, start), _from(second, start)


def _from(text: str, start: int) -> str:
    shown = f"…{text[start:]}" if start else text
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"


def counted(values: Counter[str]) -> str:
    """Values with how many repeats have each: "granted", or "granted in 5 of 6, refused in 1 of 6"."""
    if len(values) == 1:
        return next(iter(values))
    total = values.total()
    return ", ".join(f"{value} in {number} of {total}" for value, number in values.most_common(4))


def clearly_unlike(first: Counter[str], second: Counter[str]) -> bool:
    """Whether repeats of the two sides have different values by more than chance.

    Some value has a share on one side that is larger by more than a half than on the other. What differs from repeat
    to repeat (a seed) has no such value; what all repeats of each side agree on always has.
    """
    if not first or not second:
        return False
    return any(
        abs(first[value] / first.total() - second[value] / second.total()) > 0.5
        for value in first.keys() | second.keys()
    )


_LEAST_REPEATS = 6
_APART = 0.95


def clearly_apart(first: Sequence[float], second: Sequence[float], least: float) -> bool:
    """Whether the numbers of one side lie above those of the other: their medians by `least` or more, and of all pairs
    (one of each side) at least 95 % the same way. From 6 repeats on: of 3 on each side all pairs go
    the same way by chance in one case of ten."""
    if min(len(first), len(second)) < _LEAST_REPEATS or abs(median(first) - median(second)) < least:
        return False
    return not 1 - _APART < share_below(first, second) < _APART


def share_below(first: Iterable[float], second: Sequence[float]) -> float:
    """The share of pairs (a, b) with a < b, ties counted half, without a list of the pairs."""
    ordered, values = sorted(second), list(first)
    doubled = sum(2 * len(ordered) - bisect_left(ordered, a) - bisect_right(ordered, a) for a in values)
    return doubled / (2 * len(values) * len(ordered))


def together(texts: Iterable[str | None]) -> str | None:
    """What several groups of experiments tell of the same thing, in one value."""
    told = list(dict.fromkeys(texts))
    if len(told) == 1:
        return told[0]
    return _short(" | ".join("none" if text is None else text for text in told))
