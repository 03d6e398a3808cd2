"""Shapes of JSON objects: one definition for both the object and its JSON schema.

A shape is a TypedDict. An annotation contains the type, further schema keywords (`Keywords`), a description (a string),
and the source of the value if it is not the attribute of that name (`From`).
`filled` makes the object; `seatrial.report.schemas` makes the schema, in which the docstring is the description.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from functools import cache, partial
from operator import attrgetter
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

_Class = TypeVar("_Class", bound=type)
_Shape = TypeVar("_Shape", bound=Mapping[str, Any])
_Read = Callable[[Any], Any]


class Keywords:
    """Keywords of JSON Schema in addition to those of the type, such as `Keywords(minimum=0)`."""

    def __init__(self, **keywords: object) -> None:
        self.keywords = keywords


class From:
    """The source of a value: the path of an attribute ("baseline.median"; None if a part of it is), or a function of
    the source object."""

    def __init__(self, source: str | _Read) -> None:
        self.source = source

    def read(self, of: object) -> Any:
        """The value in the source object."""
        if not isinstance(self.source, str):
            return self.source(of)
        for name in self.source.split("."):
            of = None if of is None else getattr(of, name)
        return of


ABSENT = object()
"""The value of a key that is left out of the object."""

GIVEN = From(lambda _: ABSENT)
"""The value is an argument of `filled`; without it the key is left out."""

NULL_UNLESS_FINITE = object()
"""NaN and infinities become null. Without this they are errors."""

Count = Annotated[int, Keywords(minimum=0)]
NonNegative = Annotated[float, Keywords(minimum=0)]
Positive = Annotated[float, Keywords(exclusiveMinimum=0)]
Text = Annotated[str, Keywords(minLength=1)]
Finite = Annotated[float | None, NULL_UNLESS_FINITE]
Probability = Annotated[float | None, NULL_UNLESS_FINITE, Keywords(minimum=0, maximum=1)]
Interval = Annotated[tuple[float, float] | None, NULL_UNLESS_FINITE]
Setting = str | float | bool | list[str]
Settings = dict[str, Setting]


def shape(of: type | None = None, keywords: Mapping[str, Any] | None = None) -> Callable[[_Class], _Class]:
    """Marks a TypedDict as the JSON shape of the class `of`; None: its values are given one by one. `keywords` are
    added to its schema, which allows no other keys than those of the shape unless they say so."""

    def mark(made: _Class) -> _Class:
        SHAPES[made] = (of, keywords or {})
        return made

    return mark


SHAPES: dict[type, tuple[type | None, Mapping[str, Any]]] = {}
"""Shape -> the class that it represents, and keywords of its schema."""

OPEN = {"additionalProperties": True}
"""A later version may add keys."""


def when(
    name: str, value: object, then: Mapping[str, Any], otherwise: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Keywords for a condition: if `name` is `value`, other keys must match the schemas `then`, else `otherwise`."""
    rule = {"if": {"properties": {name: {"const": value}}}, "then": {"properties": then}}
    return rule if otherwise is None else {**rule, "else": {"properties": otherwise}}


def filled(of_shape: type[_Shape], source: object, **given: Any) -> _Shape:
    """The object of that shape for `source`, as plain JSON values; `given` are values of keys as they are.

    Raises ValueError for a number that is not finite, unless the shape allows it.
    """
    made = {}
    for name, find, convert in _reads(of_shape):
        value = given[name] if name in given else find(source)
        if value is ABSENT:
            continue
        made[name] = value if convert is None or value is None or name in given else convert(value)
    return cast(_Shape, made)


def fields(of_shape: type) -> Iterator[tuple[str, Any, bool]]:
    """Key, annotation, and whether the key is required."""
    for name, hint in get_type_hints(of_shape, include_extras=True).items():
        is_required = get_origin(hint) is not NotRequired
        yield name, hint if is_required else get_args(hint)[0], is_required


@cache
def _reads(of_shape: type) -> tuple[tuple[str, _Read, _Read | None], ...]:
    return tuple((name, _find(name, hint), _converter(hint)) for name, hint, _ in fields(of_shape))


def _find(name: str, hint: Any) -> _Read:
    if get_origin(hint) is Literal and len(get_args(hint)) == 1:
        (constant,) = get_args(hint)
        return lambda _: constant
    place = next((note for note in getattr(hint, "__metadata__", ()) if isinstance(note, From)), None)
    return attrgetter(name) if place is None else place.read


def _converter(hint: Any) -> _Read | None:
    """The function that converts a value of this type to plain JSON; None if no conversion is needed."""
    kind, of = get_origin(hint) or hint, get_args(hint)
    if kind is Annotated:
        return _finite_or_null if NULL_UNLESS_FINITE in hint.__metadata__ else _converter(of[0])
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
    if is_typeddict(kind):
        return partial(filled, kind)
    if issubclass(kind, Enum):
        return attrgetter("value")
    return _plain if kind is float else None


def _items(convert: _Read, items: Iterable[Any]) -> list[Any]:
    return [convert(item) for item in items]


def _values(convert: _Read, values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: convert(value) for name, value in values.items()}


def _unless_none(convert: _Read, value: Any) -> Any:
    return None if value is None else convert(value)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a number that JSON can represent")
    return list(value) if isinstance(value, tuple) else value


def _finite_or_null(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value) if all(map(math.isfinite, value)) else None
    return value if value is not None and math.isfinite(value) else None
