"""The interface of a reader of another tool's result files.

A reader is the `READER` of a module of `seatrial.applications`; the registry (readers.py) finds it there.
"""

from __future__ import annotations

from collections.abc import Callable

from seatrial.model.frozen import Frozen
from seatrial.model.results.imported import ImportedFile


class Reader(Frozen):
    """`kind` is its name on the command line. `read` is pure; it raises ParseError (tool, line, text, why) for a file
    that is incomplete, from another tool, or has an impossible number."""

    kind: str
    read: Callable[[bytes], ImportedFile]
