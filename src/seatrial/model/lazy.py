"""Values that are made when they are used, since all of them together take too much memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sized
from typing import TypeVar

_MOST = 2000

Value = TypeVar("Value", bound=Sized)


class Lazy(Mapping[str, Value]):
    """Key -> value, made by a function of the key. The values that were used last stay: at least one, more if they have
    at most `most` items together."""

    __slots__ = ("_items", "_kept", "_keys", "_make", "_most")

    def __init__(self, keys: Collection[str], make: Callable[[str], Value], most: int = _MOST) -> None:
        self._keys, self._make, self._most = keys, make, most
        self._kept: OrderedDict[str, Value] = OrderedDict()
        self._items = 0

    def __getitem__(self, key: str) -> Value:
        found = self._kept.get(key)
        if found is None:
            if key not in self._keys:
                raise KeyError(key)
            found = self._make(key)
            self._items += len(found)
            while self._kept and self._items > self._most:
                self._items -= len(self._kept.popitem(last=False)[1])
            self._kept[key] = found
        return found

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)
