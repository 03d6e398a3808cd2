"""From a record, or what else there is, to the JSON object of the shape that is declared for it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import cache, partial
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from msgspec import Struct

from seatrial.model.json_shape import (
    ABSENT,
    NULL_IF_EMPTY,
    NULL_UNLESS_FINITE,
    As,
    Json,
    Read,
    fields,
    is_shape,
    note_of,
    reader_of,
)


def filled(of_shape: type, source: object, **given: Any) -> Json:
    """The object of that shape for `source`, as plain JSON values; `given` are values of keys in place of those of
    `source`.

    Raises ValueError for a number that is not finite, unless the shape allows it.
    """
    made = {}
    for name, find, convert, is_required in _reads(of_shape):
        value = given[name] if name in given else ABSENT if source is None and not is_required else find(source)
        if value is not ABSENT:
            made[name] = value if convert is None or value is None else convert(value)
    return made


def plain(record: Struct) -> Json:
    """The object of a record. Raises ValueError as `filled`."""
    return filled(type(record), record)


@cache
def _reads(of_shape: type) -> tuple[tuple[str, Read, Read | None, bool], ...]:
    return tuple(
        (one.key, reader_of(one.key, one.hint), _converter(one.hint), one.is_required) for one in fields(of_shape)
    )


def _converter(hint: Any) -> Read | None:
    """The function that converts a value of this type to plain JSON; None if no conversion is needed."""
    kind, of = get_origin(hint) or hint, get_args(hint)
    if kind is Annotated:
        if NULL_UNLESS_FINITE in hint.__metadata__:
            return _finite_or_null
        if NULL_IF_EMPTY in hint.__metadata__:
            return _or_null
        note = note_of(hint, As)
        return _converter(of[0]) if note is None or note.to is None else note.to
    if kind in (Union, UnionType):
        inner = [part for part in of if part is not NoneType]
        convert = _converter(inner[0]) if len(inner) == 1 else _plain
        return convert if convert in (None, _plain) else partial(_unless_none, convert)
    if kind is Literal:
        kind = type(of[0])
    if kind in (list, tuple):
        item = _converter(of[0])
        return list if item is None else partial(_items, item)
    if kind is dict:
        item = _converter(of[1])
        return dict if item is None else partial(_values, item)
    if is_shape(kind):
        return partial(_object, kind)
    if issubclass(kind, Enum):
        return _value
    return _plain if kind is float else None


def _object(of_shape: type, value: Any) -> Any:
    return value if isinstance(value, dict | str) else filled(of_shape, value)  # what is given may be JSON already


def _value(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def _items(convert: Read, items: Iterable[Any]) -> list[Any]:
    return [convert(item) for item in items]


def _values(convert: Read, values: Mapping[str, Any]) -> Json:
    return {name: convert(value) for name, value in dict(values).items()}


def _unless_none(convert: Read, value: Any) -> Any:
    return None if value is None else convert(value)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a number that JSON can represent")
    return list(value) if isinstance(value, tuple) else value


def _or_null(value: Any) -> Any:
    return value or None


def _finite_or_null(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value) if all(map(math.isfinite, value)) else None
    return value if value is not None and math.isfinite(value) else None
