"""Millions of rows of integers as JSON, formatted by arithmetic on whole columns, not row by row.

Numbers are right-aligned in fields of equal width: JSON ignores blanks between tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_ROWS_AT_ONCE = 1 << 16


def number_rows(columns: Mapping[str, npt.NDArray[np.uint64]]) -> Iterator[str]:
    """The objects of an array, `{"name": 1, ...}, {...}`, without its brackets, in pieces. Names need no escapes."""
    length = len(next(iter(columns.values())))
    for begin in range(0, length, _ROWS_AT_ONCE):
        piece = {name: column[begin : begin + _ROWS_AT_ONCE] for name, column in columns.items()}
        yield (",\n" if begin else "") + _piece(piece)


def _piece(columns: Mapping[str, npt.NDArray[np.uint64]]) -> str:
    import numpy as np

    rows = len(next(iter(columns.values())))
    parts = []
    for place, (name, column) in enumerate(columns.items()):
        parts.append(_constant(f'{"," if place else "{"}"{name}":', rows))
        parts.append(_digits(column))
    parts.append(_constant("},\n", rows))
    return np.concatenate(parts, axis=1).tobytes()[:-2].decode("ascii")


def _constant(text: str, rows: int) -> npt.NDArray[np.uint8]:
    import numpy as np

    return np.broadcast_to(np.frombuffer(text.encode("ascii"), np.uint8), (rows, len(text)))


def _digits(column: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
    """Shape (rows, digits of the largest number): each number in ASCII, padded with blanks on the left."""
    import numpy as np

    largest = int(column.max())
    left: npt.NDArray[np.uint32] | npt.NDArray[np.uint64]
    left = column.astype(np.uint32) if largest < 1 << 32 else column
    width = len(str(largest))
    characters = np.empty((len(column), width), np.uint8)
    for place in range(width - 1, -1, -1):
        rest = left // 10
        digit = (left - rest * 10).astype(np.uint8) + 48
        characters[:, place] = digit if place == width - 1 else np.where(left > 0, digit, 32)
        left = rest
    return characters
