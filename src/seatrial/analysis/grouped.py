"""Items in groups of equal keys, and numbered values."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Item = TypeVar("_Item")


def grouped(pairs: Iterable[tuple[_Key, _Item]]) -> dict[_Key, list[_Item]]:
    """Key -> its items; both in the order in which they come."""
    found: dict[_Key, list[_Item]] = {}
    for key, item in pairs:
        found.setdefault(key, []).append(item)
    return found


class Numbering(dict[_Key, int]):
    """Value -> its number: a value that is asked for first gets the next one."""

    def __missing__(self, value: _Key) -> int:
        number = self[value] = len(self)
        return number
