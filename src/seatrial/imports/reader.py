"""What a reader of another tool's result files is.

A reader stands in `seatrial.imports` as one module with a `READER`; the registry (readers.py) finds it there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from seatrial.model.imported import ImportedFile


@dataclass(frozen=True, slots=True)
class Reader:
    """`kind` names it on the command line. `read` is pure; it raises ParseError (tool, line, text, why) for a file that
    is not whole, not of its tool, or holds a number that cannot be."""

    kind: str
    read: Callable[[bytes], ImportedFile]
