"""Shapes of JSON objects: one declaration for a record, its JSON object, the schema of that, and the way back.

A record (`Frozen`) is the shape of its own object: the annotations of its fields declare the keys. Where the object
differs from the record, a `view` of it declares the difference. A TypedDict is the shape of all else.

An annotation contains the type, further schema keywords (`Keywords`), a description (a string), and what is special:
another key (`Key`), type (`As`) or source of the value (`From`). `seatrial.report.schemas` makes the
schema, in which the first paragraph of the docstring is the description; `json_object` makes the object of a record,
and the record from one that was parsed, which `json_check` checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial, reduce
from operator import attrgetter, or_
from types import GenericAlias, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    NotRequired,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from msgspec import Struct

_T = TypeVar("_T")
_Class = TypeVar("_Class", bound=type)
_Function = TypeVar("_Function", bound=Callable[..., Any])
Read = Callable[[Any], Any]

Json = dict[str, Any]
"""A JSON object."""


class Keywords:
    """Keywords of JSON Schema in addition to those of the type, such as `Keywords(minimum=0)`."""

    def __init__(self, **keywords: object) -> None:
        self.keywords = keywords


class From(NamedTuple):
    """The source of a value: the path of an attribute ("baseline.median"; None if a part of it is), or a function of
    the source object."""

    source: str | Read

    def read(self, of: object) -> Any:
        """The value in the source object."""
        if not isinstance(self.source, str):
            return self.source(of)
        for name in self.source.split("."):
            of = None if of is None else getattr(of, name)
        return of


class Key(NamedTuple):
    """The key of a field of a record, if it is not the field's name."""

    name: str


class As(NamedTuple):
    """The type in JSON of a field of a record, if it is not that of the field. `to` makes a value of that type, `back`
    the field's value from one; None: what the types say does."""

    hint: Any
    to: Read | None = None
    back: Read | None = None


ABSENT = object()
"""The value of a key that is left out of the object."""

GIVEN = From(lambda _: ABSENT)
"""The value is an argument of `filled`; without it the key is left out."""

NULL_UNLESS_FINITE = object()
"""NaN and infinities become null. Without this they are errors."""

HIDDEN, FLAT, LATER, SPARSE, NULL_IF_EMPTY = object(), object(), object(), object(), object()

Hidden = Annotated[_T, HIDDEN]
"""A field of a record that is not in its object."""
Flat = Annotated[_T, FLAT]
"""A field that is a record itself, whose keys are among those of this one."""
Later = Annotated[_T, LATER]
"""A field whose key older documents do not have."""
Sparse = Annotated[_T, SPARSE]
"""A field whose key is left out where the value is the default."""


OrNull = Annotated[_T, NULL_IF_EMPTY]
"""A field whose value is null in JSON where it is "" or 0."""

Count = Annotated[int, Keywords(minimum=0)]
OneOrMore = Annotated[int, Keywords(minimum=1)]
NonNegative = Annotated[float, Keywords(minimum=0)]
Positive = Annotated[float, Keywords(exclusiveMinimum=0)]
Text = Annotated[str, Keywords(minLength=1)]
Finite = Annotated[float | None, NULL_UNLESS_FINITE]
Number = Annotated[float, NULL_UNLESS_FINITE]
"""Like `Finite`, of a value that is never None."""
Probability = Annotated[float | None, NULL_UNLESS_FINITE, Keywords(minimum=0, maximum=1)]
Share = Annotated[float, Keywords(minimum=0, maximum=1)]
ShareOrNaN = Annotated[float, NULL_UNLESS_FINITE, Keywords(minimum=0, maximum=1)]
"""Like `Probability`, of a value that is never None."""
Interval = Annotated[tuple[float, float] | None, NULL_UNLESS_FINITE]
Setting = str | float | bool | list[str]
Settings = dict[str, Setting]


class _Shape(NamedTuple):
    """What is declared of a shape besides its keys."""

    of: type | None = None
    keywords: Mapping[str, Any] = {}
    name: str = ""
    without: tuple[str, ...] | None = None


_SHAPES: dict[type, _Shape] = {}


def shape(of: type | None = None, keywords: Mapping[str, Any] | None = None) -> Callable[[_Class], _Class]:
    """Marks a TypedDict as the JSON shape of the class `of`; None: its values are given one by one. `keywords` are
    added to its schema, which allows no other keys than those of the shape unless they say so."""
    return _marked(_Shape(of, keywords or {}))


def view(
    of: type, keywords: Mapping[str, Any] | None = None, without: tuple[str, ...] = ()
) -> Callable[[_Class], _Class]:
    """Marks a TypedDict as the shape of a record `of`, whose keys it has but those of `without`; it declares only what
    differs and what it adds."""
    return _marked(_Shape(of, keywords or {}, without=without))


def published(name: str = "", keywords: Mapping[str, Any] | None = None) -> Callable[[_Class], _Class]:
    """Declares of a record its name in schemas, if that is not the name of the class, and further keywords."""
    return _marked(_Shape(None, keywords or {}, name))


def _marked(declared: _Shape) -> Callable[[_Class], _Class]:
    def mark(made: _Class) -> _Class:
        _SHAPES[made] = declared
        return made

    return mark


def key(function: _Function) -> _Function:
    """Marks the function of a property, or a method without arguments: its value is in the object of the record."""
    _DERIVED.add(function)
    return function


_DERIVED: set[Callable[..., Any]] = set()


def is_shape(kind: Any) -> bool:
    """Whether this is the type of an object with declared keys."""
    return is_typeddict(kind) or (isinstance(kind, type) and issubclass(kind, Struct))


def declared(of_shape: type) -> _Shape:
    """What is declared of a shape besides its keys."""
    return _SHAPES.get(of_shape, _Shape())


def name_of(of_shape: type) -> str:
    """The name of a shape in schemas."""
    return declared(of_shape).name or of_shape.__name__.removesuffix("Json")


OPEN = {"additionalProperties": True}
"""A later version may add keys."""


def when(
    name: str, value: object, then: Mapping[str, Any], otherwise: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Keywords for a condition: if `name` is `value`, other keys must match the schemas `then`, else `otherwise`."""
    rule = {"if": {"properties": {name: {"const": value}}}, "then": {"properties": then}}
    return rule if otherwise is None else {**rule, "else": {"properties": otherwise}}


class Field(NamedTuple):
    """A key of an object: its type in JSON with what is noted, and whether it is required."""

    key: str
    hint: Any
    is_required: bool


@cache
def fields(of_shape: type) -> tuple[Field, ...]:
    """The keys of a shape, in their order."""
    if not is_typeddict(of_shape):
        return tuple(_of_record(of_shape))
    own = {one.key: one for one in _of_typed_dict(of_shape)}
    of, without = declared(of_shape).of, declared(of_shape).without
    if of is None or without is None:
        return tuple(own.values())
    return tuple(({one.key: one for one in fields(of) if one.key not in without} | own).values())


def _of_typed_dict(of_shape: type) -> Iterator[Field]:
    for name, hint in get_type_hints(of_shape, include_extras=True).items():
        is_required = get_origin(hint) is not NotRequired
        if FLAT in notes_of(hint):
            yield from _flat(name, get_args(hint)[0])
            continue
        yield Field(name, hint if is_required else get_args(hint)[0], is_required)


def _of_record(kind: type[Struct]) -> Iterator[Field]:
    default_of = dict(zip(reversed(kind.__struct_fields__), reversed(kind.__struct_defaults__), strict=False))
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if get_origin(hint) is not ClassVar:
            yield from _of_field(name, hint, default_of.get(name))
        elif is_constant(*get_args(hint)):
            yield Field(name, get_args(hint)[0], True)
    for name, member in vars(kind).items():
        function = member.fget if isinstance(member, property) else getattr(member, "func", member)
        if callable(function) and function in _DERIVED:
            hint = json_hint(get_type_hints(function, include_extras=True)["return"])
            source = From(member if function is member else name)
            yield Field(key_of(name, hint), Annotated[hint, source], LATER not in notes_of(hint))


def _of_field(name: str, hint: Any, default: object) -> Iterator[Field]:
    notes = notes_of(hint)
    if HIDDEN in notes:
        return
    if FLAT in notes:
        yield from _flat(name, get_args(hint)[0])
        return
    made = json_hint(hint)
    if SPARSE in notes:
        made = Annotated[(_without_null(made) if default is None else made, From(partial(_unless, name, default)))]
    elif key_of(name, hint) != name:
        made = Annotated[made, From(name)]
    yield Field(key_of(name, hint), made, LATER not in notes and SPARSE not in notes)


def _flat(name: str, of_shape: type) -> Iterator[Field]:
    for one in fields(of_shape):
        kept = [note for note in notes_of(one.hint) if not isinstance(note, str | From)]
        kind = get_args(one.hint)[0] if notes_of(one.hint) else one.hint
        source = From(partial(_in_part, name, reader_of(one.key, one.hint)))
        yield Field(one.key, Annotated[(kind, *kept, source)], one.is_required)


def notes_of(hint: Any) -> tuple[Any, ...]:
    """What an annotation contains besides the type."""
    return getattr(hint, "__metadata__", ())


def note_of(hint: Any, kind: type[_T]) -> _T | None:
    """The note of that kind in an annotation, or None."""
    return next((note for note in notes_of(hint) if isinstance(note, kind)), None)


def key_of(name: str, hint: Any) -> str:
    """The key of a field of a record."""
    note = note_of(hint, Key)
    return name if note is None else note.name


def json_hint(hint: Any) -> Any:
    """The annotation of a record's field as that of its value in JSON: lists, dicts, null for what is not finite."""
    kind, of = get_origin(hint), get_args(hint)
    if kind is Annotated:
        note = note_of(hint, As)
        inner = json_hint(of[0] if note is None else note.hint)
        if NULL_UNLESS_FINITE in hint.__metadata__ or NULL_IF_EMPTY in hint.__metadata__:
            inner = inner | None
        kept = [one for one in hint.__metadata__ if one is not note or note.to is not None]
        return Annotated[(inner, *kept)] if kept else inner
    if kind in (Union, UnionType):
        return reduce(or_, map(json_hint, of))
    if kind is tuple and of[1:] != (Ellipsis,):
        return GenericAlias(tuple, tuple(map(json_hint, of)))
    if kind in (tuple, list, Sequence):
        return GenericAlias(list, (json_hint(of[0]),))
    if kind in (dict, Mapping):
        return GenericAlias(dict, (of[0], json_hint(of[1])))
    return hint


def is_constant(hint: Any) -> bool:
    """Whether the value is always the same: a Literal of one."""
    return get_origin(hint) is Literal and len(get_args(hint)) == 1


def _without_null(hint: Any) -> Any:
    kind, of = get_origin(hint), get_args(hint)
    if kind is Annotated:
        return Annotated[(_without_null(of[0]), *hint.__metadata__)]
    return reduce(or_, (part for part in of if part is not NoneType)) if kind in (Union, UnionType) else hint


def _in_part(name: str, find: Read, of: object) -> Any:
    return find(getattr(of, name))


def _unless(name: str, default: object, of: object) -> Any:
    value = getattr(of, name)
    return ABSENT if value == default else value


def reader_of(name: str, hint: Any) -> Read:
    """The function that finds the value of a key in the source object."""
    if is_constant(hint):
        (constant,) = get_args(hint)
        return lambda _: constant
    place = note_of(hint, From)
    return attrgetter(name) if place is None else place.read
