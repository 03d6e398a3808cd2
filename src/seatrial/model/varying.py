"""Which settings distinguish experiments or points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seatrial.model.parameter import Value

_Settings = Mapping[str, Value]
_Distinct = tuple[bool, Value | None]


def varying(everything: Sequence[_Settings]) -> list[str]:
    """The settings that vary."""
    names = dict.fromkeys(name for settings in everything for name in settings)
    return [name for name in names if any(settings.get(name) != everything[0].get(name) for settings in everything)]


def distinguishing(everything: Sequence[_Settings]) -> list[str]:
    """The settings that vary; of those that change together, value by value (a size, and the largest size of the run),
    only the first one."""
    names = varying(everything)
    values = {name: [distinct(settings.get(name)) for settings in everything] for name in names}
    kept = list(names)
    for name in reversed(names):
        if any(other != name and _are_one_to_one(values[other], values[name]) for other in kept):
            kept.remove(name)
    return kept


def distinct(value: Value | None) -> _Distinct:
    """The value, with true distinguished from 1."""
    return isinstance(value, bool), value


def is_number(value: Value | None) -> bool:
    """Whether a value is a number, and not true or false."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_one_to_one(first: Sequence[_Distinct], second: Sequence[_Distinct]) -> bool:
    """Whether each value of one setting has only one value of the other."""
    there: dict[_Distinct, _Distinct] = {}
    back: dict[_Distinct, _Distinct] = {}
    return all(there.setdefault(a, b) == b and back.setdefault(b, a) == a for a, b in zip(first, second, strict=True))
