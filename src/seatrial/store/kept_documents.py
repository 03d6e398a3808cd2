"""Documents in little memory: the machines of a cluster are thousands, and most commands need few of them."""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

_PARSED = 32
"""Documents that stay parsed."""


class KeptDocuments(Mapping[str, Mapping[str, Any]]):
    """Key -> document, compressed until it is used. The documents were checked before."""

    def __init__(self) -> None:
        self._packed: dict[str, bytes] = {}
        self._parsed: OrderedDict[str, Mapping[str, Any]] = OrderedDict()

    def keep(self, key: str, document: Mapping[str, Any]) -> None:
        """Add a document, or replace it."""
        self._parsed.pop(key, None)
        self._packed[key] = zlib.compress(msgspec.json.encode(document), 1)

    def __getitem__(self, key: str) -> Mapping[str, Any]:
        found = self._parsed.get(key)
        if found is None:
            found = self._parsed[key] = msgspec.json.decode(zlib.decompress(self._packed[key]))
            if len(self._parsed) > _PARSED:
                self._parsed.popitem(last=False)
        return found

    def __contains__(self, key: object) -> bool:
        return key in self._packed

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)
