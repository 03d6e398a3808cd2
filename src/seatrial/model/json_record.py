"""From a JSON object that was parsed to the record that declares its shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cache, partial
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, TypeVar, Union, get_args, get_origin, get_type_hints

from msgspec import Struct

from seatrial.model.json_check import check_shape
from seatrial.model.json_shape import FLAT, HIDDEN, NULL_IF_EMPTY, As, key_of, note_of, notes_of

_Record = TypeVar("_Record", bound=Struct)
_Make = Callable[[Any], Any]


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
def _makers(kind: type[Struct]) -> tuple[tuple[str, str | None, _Make], ...]:
    """Field, key (None: its keys are among those of the record), and what makes its value."""
    return tuple(
        (name, None if FLAT in notes_of(hint) else key_of(name, hint), _maker(hint))
        for name, hint in get_type_hints(kind, include_extras=True).items()
        if get_origin(hint) is not ClassVar and HIDDEN not in notes_of(hint)
    )


def _maker(hint: Any) -> _Make:
    kind, of = get_origin(hint) or hint, get_args(hint)
    if kind is Annotated:
        if NULL_IF_EMPTY in notes_of(hint):
            return partial(_or_empty, of[0])
        note = note_of(hint, As)
        if note is None or note.back is None:
            return _maker(of[0])
        return partial(_both, _maker(note.hint), note.back)
    if kind in (Union, UnionType):
        inner = [part for part in of if part is not NoneType]
        return partial(_unless_none, _maker(inner[0]) if len(inner) == 1 else _value)
    if kind in (tuple, list, Sequence):
        return partial(_items, _maker(of[0]))
    if kind in (dict, Mapping):
        return partial(_values, _maker(of[1]))
    if isinstance(kind, type) and issubclass(kind, Struct):
        return partial(_record, kind)
    return kind if isinstance(kind, type) and issubclass(kind, Enum) else _value


def _value(value: Any) -> Any:
    return tuple(value) if type(value) is list else value


def _both(first: _Make, then: _Make, value: Any) -> Any:
    return then(first(value))


def _or_empty(kind: type, value: Any) -> Any:
    return kind() if value is None else value


def _unless_none(make: _Make, value: Any) -> Any:
    return None if value is None else make(value)


def _items(make: _Make, values: Any) -> tuple[Any, ...]:
    return tuple(map(make, values))


def _values(make: _Make, values: Any) -> dict[str, Any]:
    return {name: make(value) for name, value in values.items()}
