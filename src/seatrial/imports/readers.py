"""The registry of readers: every module of this package that has a `READER`. There is no other list."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

import seatrial.imports
from seatrial.errors import UnknownNameError
from seatrial.imports.reader import Reader


@cache
def readers() -> dict[str, Reader]:
    """Kind -> reader, sorted by kind."""
    found: dict[str, Reader] = {}
    for module_info in pkgutil.iter_modules(seatrial.imports.__path__, prefix="seatrial.imports."):
        reader = getattr(importlib.import_module(module_info.name), "READER", None)
        if isinstance(reader, Reader):
            found[reader.kind] = reader
    return dict(sorted(found.items()))


def reader_of(kind: str) -> Reader:
    """The reader of a kind. Raises UnknownNameError, which names the nearest."""
    known = readers()
    if kind not in known:
        raise UnknownNameError("kind of result file", kind, known)
    return known[kind]
