"""From a record, or what else there is, to the JSON object of the shape that is declared for it, and the way back."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache, partial
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from msgspec import Struct

from seatrial.model.json_check import check_shape
from seatrial.model.json_shape import (
    ABSENT,
    FLAT,
    HIDDEN,
    NULL_IF_EMPTY,
    NULL_UNLESS_FINITE,
    As,
    Json,
    Read,
    fields,
    is_shape,
    key_of,
    note_of,
    notes_of,
    reader_of,
)

_SURROGATE = re.compile("[\ud800-\udfff]")


def as_utf8(text: str) -> str:
    r"""Text that every file and reader accepts. A path or an argument need not be UTF-8: Python has each byte that is
    not as half a surrogate pair, and it becomes `\xNN` here."""
    return _SURROGATE.sub(lambda found: f"\\x{ord(found[0]) & 0xFF:02x}", text)


def all_utf8(value: Any) -> Any:
    """The same in all texts of a value."""
    if isinstance(value, str):
        return as_utf8(value)
    if isinstance(value, Mapping):
        return {all_utf8(name): all_utf8(item) for name, item in value.items()}
    return [all_utf8(item) for item in value] if isinstance(value, list | tuple) else value


def json_of(document: Any, **layout: Any) -> str:
    """The JSON of plain values, in UTF-8 and without NaN; `layout` as in `json.dumps`. What is written for others to
    read is made here."""
    text = json.dumps(document, allow_nan=False, **layout)
    if "\\ud" in text or (not text.isascii() and _SURROGATE.search(text)):
        return json.dumps(all_utf8(document), allow_nan=False, **layout)
    return text


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
            return lambda value: value or None
        note = note_of(hint, As)
        return _converter(of[0]) if note is None or note.to is None else note.to
    if kind in (Union, UnionType):
        inner = [part for part in of if part is not NoneType]
        convert = _converter(inner[0]) if len(inner) == 1 else _plain
        return convert if convert is None or convert is _plain else _unless_none(convert)
    if kind is Literal:
        kind = type(of[0])
    if kind in (list, tuple):
        item = _converter(of[0])
        return list if item is None else lambda values: [item(one) for one in values]
    if kind is dict:
        entry = _converter(of[1])
        return dict if entry is None else lambda values: {name: entry(one) for name, one in dict(values).items()}
    if is_shape(kind):
        return lambda value: value if isinstance(value, dict | str) else filled(kind, value)  # it may be JSON already
    if issubclass(kind, Enum):
        return lambda value: value.value if isinstance(value, Enum) else value
    return _plain if kind is float else None


def _unless_none(convert: Read) -> Read:
    return lambda value: None if value is None else convert(value)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a number that JSON can represent")
    return list(value) if isinstance(value, tuple) else value


def _finite_or_null(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value) if all(map(math.isfinite, value)) else None
    return value if value is not None and math.isfinite(value) else None


_Record = TypeVar("_Record", bound=Struct)


def record_of(kind: type[_Record], document: object) -> _Record:
    """The record that `plain` made this object of, with the default where a key is missing. Raises ShapeError for an
    object of another shape. Numbers stay as they are written: 1 and 1.0 have different content keys."""
    check_shape(kind, document)
    return _record(kind, document)


def _record(kind: type[_Record], document: Any) -> _Record:
    made = {}
    for name, key, make in _makers(kind):
        if key is None:
            made[name] = make(document)
        elif key in document:
            made[name] = make(document[key])
    return kind(**made)


@cache
def _makers(kind: type[Struct]) -> tuple[tuple[str, str | None, Read], ...]:
    """Field, key (None: its keys are among those of the record), and what makes its value."""
    return tuple(
        (name, None if FLAT in notes_of(hint) else key_of(name, hint), _maker(hint))
        for name, hint in get_type_hints(kind, include_extras=True).items()
        if get_origin(hint) is not ClassVar and HIDDEN not in notes_of(hint)
    )


def _maker(hint: Any) -> Read:
    kind, of = get_origin(hint) or hint, get_args(hint)
    if kind is Annotated:
        if NULL_IF_EMPTY in notes_of(hint):
            return lambda value: of[0]() if value is None else value
        note = note_of(hint, As)
        if note is None or note.back is None:
            return _maker(of[0])
        made, back = _maker(note.hint), note.back
        return lambda value: back(made(value))
    if kind in (Union, UnionType):
        inner = [part for part in of if part is not NoneType]
        return _unless_none(_maker(inner[0]) if len(inner) == 1 else _tupled)
    if kind in (tuple, list, Sequence):
        item = _maker(of[0])
        return lambda values: tuple(map(item, values))
    if kind in (dict, Mapping):
        entry = _maker(of[1])
        return lambda values: {name: entry(value) for name, value in values.items()}
    if isinstance(kind, type) and issubclass(kind, Struct):
        return partial(_record, kind)
    return kind if isinstance(kind, type) and issubclass(kind, Enum) else _tupled


def _tupled(value: Any) -> Any:
    return tuple(value) if type(value) is list else value
