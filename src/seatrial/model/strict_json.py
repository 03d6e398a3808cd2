"""JSON of files that may be damaged or hostile: one value, or ValueError with the reason.

Stricter than `json.loads`: no NaN, no infinity (1e999 is one), no duplicate keys, no text that cannot be written as
UTF-8, and a limited depth, so that nothing that works on the value can fail on one of these later.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection
from typing import Any

DEEPEST = 64
"""Levels of objects and lists."""
LARGEST = sys.float_info.max
"""An int that is larger cannot be converted to float; a float that is larger is infinite."""

_LONE_SURROGATE = (b"\\ud", b"\\uD")
_SCALARS = frozenset({str, int, float, bool, type(None)})


def parse_json(data: bytes) -> Any:
    """The value in `data`."""
    value = parse_line(data)
    require_plain(value)
    return value


def parse_line(data: bytes) -> Any:
    """The same, for a caller that checks depth and numbers itself, by `require_plain` or a shape."""
    try:
        text = data.decode("utf-8")  # json.loads accepts UTF-16 too
    except UnicodeDecodeError as error:
        raise ValueError(f"invalid UTF-8 at byte {error.start}") from error
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"invalid JSON: {error.msg} at byte {len(text[: error.pos].encode())}") from error
    except RecursionError as error:
        raise ValueError(f"nested deeper than {DEEPEST} levels") from error
    if any(mark in data for mark in _LONE_SURROGATE):
        _require_encodable(value)
    return value


def require_plain(value: Any) -> None:
    """Raises ValueError if a parsed value is too deep, or a number in it too large."""
    level = [value]
    for _ in range(DEEPEST + 1):
        below: list[Any] = []
        for item in level:
            cells = item.values() if type(item) is dict else item if type(item) is list else (item,)
            kinds = set(map(type, cells))
            if float in kinds or int in kinds:
                require_numbers(cells if kinds <= {int, float} else [c for c in cells if type(c) in (int, float)])
            if not kinds <= _SCALARS:
                below += [cell for cell in cells if type(cell) in (dict, list)]
        if not below:
            return
        level = below
    raise ValueError(f"nested deeper than {DEEPEST} levels")


def require_numbers(cells: Collection[int | float]) -> None:
    """Raises ValueError if one of these numbers (at least one) is infinite, or an int that no float can represent."""
    if max(cells) > LARGEST or min(cells) < -LARGEST:
        raise ValueError(f"a number is larger than {LARGEST:.0e}")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice[:80]!r} is in one object twice")
    return found


def no_constant(name: str) -> float:
    """Refuses NaN and Infinity: they are not valid JSON, and programs write null."""
    raise ValueError(f"{name} is not valid JSON")


def _require_encodable(value: Any) -> None:
    """Raises ValueError for half a surrogate pair in a text."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            try:
                item.encode()
            except UnicodeEncodeError as error:
                raise ValueError(f"half a surrogate pair in {item[:40]!a}") from error
        elif isinstance(item, dict):
            waiting += item
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=no_constant)
