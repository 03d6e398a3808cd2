"""The registry of readers: every module of this package that has a `READER`. There is no other list."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

import seatrial.applications
from seatrial.applications.reading.figures import Reader
from seatrial.errors import UnknownNameError


@cache
def readers() -> dict[str, Reader]:
    """Kind -> reader, sorted by kind."""
    found: dict[str, Reader] = {}
    for module_info in pkgutil.iter_modules(seatrial.applications.__path__, prefix="seatrial.applications."):
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
