"""A cache for values that take time to compute."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from seatrial.errors import BuildError

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Once(Generic[K, V]):
    """The value for each key. A BuildError is cached too, and raised again."""

    def __init__(self) -> None:
        self._found: dict[K, V | BuildError] = {}

    def get(self, key: K, find: Callable[[], V]) -> V:
        """The value for this key, computed by `find` at the first call. Raises BuildError."""
        if key not in self._found:
            try:
                self._found[key] = find()
            except BuildError as problem:
                self._found[key] = problem
        found = self._found[key]
        if isinstance(found, BuildError):
            raise found
        return found
