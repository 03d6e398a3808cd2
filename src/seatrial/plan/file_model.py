"""What the files of users may contain: a class for each mapping, in which each key is declared once.

    class GuestModel(Model):
        \"\"\"A virtual machine that programs can run in.\"\"\"

        ssh = optional("the host, as ssh takes it", text(pattern=_SSH))
        kernel = optional("the kernel of the guest: begins with / or ~/", PATH)

A declaration holds what the key accepts (words for messages and for editors), the type and the limits of its value, and
what the value becomes: `kernel` of the model is a path, or None. A model reads its mapping when it is made, and reports
all faults at once, each with file, line, key and accepted values. `schema_of` is the JSON schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from enum import Enum
from functools import partial
from types import NoneType
from typing import Any, ClassVar, Generic, Self, TypeVar, overload

from seatrial.errors import PlaceError, UsageError, did_you_mean, nearest_names
from seatrial.model.frozen import Frozen
from seatrial.plan.files import Document, KeyPath, YamlNode

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")
W = TypeVar("W", bound=str)
E = TypeVar("E", bound=Enum)

_JSON_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", NoneType: "null"}


class Spot(Frozen):
    """A value in a file, and what is accepted there."""

    document: Document
    path: KeyPath
    node: YamlNode
    accepts: str

    def refuse(self, seen: str, todo: str = "", line: int | None = None) -> PlaceError:
        """An error about the value."""
        return self.document.refuse(self.path, seen, todo, line)

    def cannot_be(self, todo: str = "") -> PlaceError:
        """The value is not accepted."""
        is_empty = self.node.value in (None, "", [], {})
        seen = "it is empty" if is_empty else f"it cannot be {self.node.shown()}"
        return self.refuse(seen, todo or f"it takes {self.accepts}")

    def inner(self, step: str | int, accepts: str = "") -> Spot:
        """An entry of a mapping or an item of a list; without its own words, it accepts what this one does."""
        node = self.node.entries[step] if isinstance(step, str) else self.node.items[step]
        return Spot(self.document, (*self.path, step), node, accepts or self.accepts)

    @contextmanager
    def placed(self) -> Iterator[None]:
        """Errors within the context get the line of the value."""
        try:
            yield
        except PlaceError:
            raise
        except UsageError as error:
            raise self.refuse(error.message, error.todo) from None


class Kind(Generic[T_co]):
    """A kind of value: how it is read, its JSON schema, and the models in it. `accepts` is for an entry of a list or
    mapping; a key has its own words."""

    def __init__(
        self,
        read: Callable[[Spot], T_co],
        schema: Mapping[str, Any],
        models: Iterable[type[Model]] = (),
        accepts: str = "",
    ) -> None:
        self.read = read
        self.schema = schema
        self.models = tuple(models)
        self.accepts = accepts

    def accepting(self, accepts: str) -> Kind[T_co]:
        """The same with words for what it accepts."""
        return Kind(self.read, self.schema, self.models, accepts)

    def then(self, make: Callable[[Spot, T_co], U]) -> Kind[U]:
        """What `make` makes of the value; it raises PlaceError for a value that is none."""
        return Kind(lambda spot: make(spot, self.read(spot)), self.schema, self.models, self.accepts)

    def only(self, holds: Callable[[T_co], object], seen: str = "", todo: str = "") -> Kind[T_co]:
        """The same without values for which this does not hold; `seen` is what is said of these, {} is the value."""

        def read(spot: Spot) -> T_co:
            value = self.read(spot)
            if not holds(value):
                raise spot.refuse(seen.format(repr(str(value)[:60])), todo) if seen else spot.cannot_be(todo)
            return value

        return Kind(read, self.schema, self.models, self.accepts)

    def parsed(self, parse: Callable[[T_co], U]) -> Kind[U]:
        """The same with a function that knows no files, and raises UsageError."""

        def read(spot: Spot) -> U:
            with spot.placed():
                return parse(self.read(spot))

        return Kind(read, self.schema, self.models, self.accepts)

    def or_null(self) -> Kind[T_co | None]:
        """The same, where nothing is accepted as well."""
        return Kind(
            lambda spot: None if spot.node.value is None else self.read(spot),
            any_of(self.schema, {"type": "null"}),
            self.models,
            self.accepts,
        )


def any_of(*schemas: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of what one of these accepts."""
    flat: list[Any] = []
    for schema in schemas:
        parts = schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]
        flat += [part for part in parts if part not in flat]
    return {"anyOf": flat}


def scalar(*types: type[T], **schema: Any) -> Kind[T]:
    """A value of one of these types; an integer is a number as well."""
    accepted = {*types, int} if float in types else set(types)

    def read(spot: Spot) -> T:
        value: Any = spot.node.value
        if type(value) not in accepted:
            raise spot.cannot_be()
        return value  # type: ignore[no-any-return]

    kinds = [{"type": _JSON_TYPES[one], **schema} for one in types]
    return Kind(read, kinds[0] if len(kinds) == 1 else any_of(*kinds))


def whole(least: int | None = None, most: int | None = None) -> Kind[int]:
    """An integer."""
    integer = scalar(int, **_given(minimum=least, maximum=most))
    return integer.only(lambda value: (least is None or least <= value) and (most is None or value <= most))


def text(pattern: str = "", least: int = 1, most: int | None = 4096, **schema: Any) -> Kind[str]:
    """Text that matches the whole pattern. `schema` are further keywords."""
    whole_pattern = re.compile(pattern or r"(?s:.*)")
    limits = _given(minLength=least or None, maxLength=most, pattern=f"^{pattern}$" if pattern else None)
    kind = scalar(str, **limits, **schema).only(lambda value: _has_size(value, least, most))
    return kind.only(whole_pattern.fullmatch)


def prose(most: int) -> Kind[str]:
    """Text that is not blank, without the blanks round it."""
    kind = scalar(str, pattern=r"\S", maxLength=most)
    return kind.only(lambda value: value.strip() and len(value) <= most).parsed(str.strip)


def one_of(*words: W, suggests: bool = True) -> Kind[W]:
    """One of these words; `suggests`: the nearest is suggested for another one."""

    def read(spot: Spot) -> W:
        value = spot.node.value
        if isinstance(value, str) and value in words:
            return words[words.index(value)]
        near = nearest_names(value, words) if suggests and isinstance(value, str) else []
        raise spot.cannot_be(did_you_mean(near) if near else "")

    return Kind(read, {"type": "string", **({"enum": list(words)} if len(words) > 1 else {"const": words[0]})})


def member(of: type[E]) -> Kind[E]:
    """One of the values of an enumeration."""
    return one_of(*(one.value for one in of)).parsed(of)


def either(plain: Kind[T], inner: Kind[U]) -> Kind[T | U]:
    """A list or mapping, or another value."""

    def read(spot: Spot) -> T | U:
        return plain.read(spot) if spot.node.is_scalar else inner.read(spot)

    return Kind(read, any_of(plain.schema, inner.schema), (*plain.models, *inner.models), inner.accepts)


def listed(item: Kind[T], least: int = 0, most: int | None = None, *, unique: bool = False) -> Kind[tuple[T, ...]]:
    """A list."""

    def read(spot: Spot) -> tuple[T, ...]:
        if not isinstance(spot.node.value, list) or not _has_size(spot.node.items, least, most):
            raise spot.cannot_be()
        inner = [spot.inner(position, item.accepts) for position in range(len(spot.node.items))]
        first = {str(one.node.value): position for position, one in reversed([*enumerate(inner)])}
        twice = [one for position, one in enumerate(inner) if unique and first[str(one.node.value)] != position]
        faults = [one.refuse(f"{one.node.shown()} is listed twice", "keep one of them") for one in twice]
        return tuple(_all(((one, item) for one in inner), faults))

    limits = _given(minItems=least or None, maxItems=most, uniqueItems=unique or None)
    return Kind(read, {"type": "array", "items": item.schema, **limits}, item.models)


def named(
    value: Kind[T],
    check: Callable[[Spot, str], None] | None = None,
    least: int = 0,
    most: int | None = None,
    **schema: Any,
) -> Kind[dict[str, T]]:
    """A mapping of names that the user chooses. `check` raises PlaceError for a wrong name; `schema` are its keywords
    for that."""

    def read(spot: Spot) -> dict[str, T]:
        entries = spot.node.entries
        if not isinstance(spot.node.value, dict) or not _has_size(entries, least, most):
            raise spot.cannot_be()
        faults = []
        for name in entries:
            try:
                if check is not None:
                    check(spot, name)
            except PlaceError as error:
                faults.append(error)
        inner = ((spot.inner(name, value.accepts), value) for name in entries)
        return dict(zip(entries, _all(inner, faults), strict=True))

    limits = _given(minProperties=least or None, maxProperties=most)
    return Kind(read, {"type": "object", "additionalProperties": value.schema, **limits, **schema}, value.models)


def model(of: type[M], accepts: str = "") -> Kind[M]:
    """A mapping with the keys of a model."""
    return Kind(of, {"$ref": f"#/$defs/{of.__name__}"}, [of], accepts or of.accepts)


class FileKey(Generic[T]):
    """A key of a model; its value in a model is that of the file, or `absent` without one."""

    def __init__(
        self, accepts: str, kind: Kind[Any], *, is_required: bool, absent: Any, published: Mapping[str, Any]
    ) -> None:
        self.accepts = accepts
        self.kind = kind
        self.is_required = is_required
        self.absent = absent
        self.schema = {"description": accepts, **kind.schema, **published}

    def __set_name__(self, owner: type[Model], name: str) -> None:
        self._name = name.rstrip("_")

    @overload
    def __get__(self, of: None, owner: type[Model]) -> FileKey[T]: ...
    @overload
    def __get__(self, of: Model, owner: type[Model]) -> T: ...
    def __get__(self, of: Model | None, owner: type[Model]) -> FileKey[T] | T:
        return self if of is None else of.values.get(self._name, self.absent)


def required(accepts: str, kind: Kind[T]) -> FileKey[T]:
    """A key that must be there."""
    return FileKey(accepts, kind, is_required=True, absent=None, published={})


@overload
def optional(accepts: str, kind: Kind[T]) -> FileKey[T | None]: ...
@overload
def optional(accepts: str, kind: Kind[T], absent: U) -> FileKey[T | U]: ...
def optional(accepts: str, kind: Kind[Any], absent: Any = None) -> FileKey[Any]:
    """A key that may be missing or null; it is `absent` then."""
    read = kind.or_null().then(lambda _, value: absent if value is None else value)
    return FileKey(accepts, read, is_required=False, absent=absent, published={"default": None})


def default(accepts: str, kind: Kind[T], absent: T, published: object) -> FileKey[T]:
    """A key that may be missing, and is `absent` then: `published` in the file."""
    return FileKey(accepts, kind, is_required=False, absent=absent, published={"default": published})


class Model:
    """A mapping whose keys are all known. `accepts`: what it is, for messages."""

    accepts: ClassVar[str]
    keys: ClassVar[Mapping[str, FileKey[Any]]]

    def __init_subclass__(cls) -> None:
        all_names = {name: value for base in reversed(cls.__mro__) for name, value in vars(base).items()}
        cls.keys = {name.rstrip("_"): key for name, key in all_names.items() if isinstance(key, FileKey)}
        needed = " and ".join(name for name, key in cls.keys.items() if key.is_required)
        others = ", ".join(name for name, key in cls.keys.items() if not key.is_required)
        if "accepts" not in vars(cls):
            cls.accepts = f"a mapping with {', and '.join(filter(None, (needed, others and f'any of {others}')))}"

    def __init__(self, spot: Spot) -> None:
        """Read the mapping. Raises PlaceError."""
        entries = spot.node.entries
        if not isinstance(spot.node.value, dict):
            raise spot.cannot_be()
        faults = []
        meant: set[str] = set()
        for name in (name for name in entries if name not in self.keys):
            near = nearest_names(name, self.keys)
            meant.update(near)
            todo = did_you_mean(near) if near else f"keys: {', '.join(self.keys)}"
            faults.append(spot.inner(name).refuse("unknown key", todo, spot.node.key_lines[name]))
        for name, key in self.keys.items():
            if key.is_required and name not in entries and name not in meant:
                faults.append(spot.refuse(f"the key {name} is missing", f"{name} takes {key.accepts}"))
        known = [name for name in entries if name in self.keys]
        inner = ((spot.inner(name, self.keys[name].accepts), self.keys[name].kind) for name in known)
        self.spot = spot
        self.values: dict[str, Any] = dict(zip(known, _all(inner, faults), strict=True))

    @classmethod
    def of(cls, document: Document) -> Self:
        """The model of a whole file. Raises PlaceError."""
        return cls(Spot(document, (), document.root, cls.accepts))

    def at(self, name: str) -> Spot:
        """The value of a key that is there."""
        return self.spot.inner(name, self.keys[name].accepts)

    def refuse(self, path: KeyPath, seen: str, todo: str = "", line: int | None = None) -> PlaceError:
        """An error about a value in the mapping."""
        return self.spot.document.refuse((*self.spot.path, *path), seen, todo, line)

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Its JSON schema, which refers to those of the models in it."""
        needed = [name for name, key in cls.keys.items() if key.is_required]
        return {
            "additionalProperties": False,
            "description": cls.__doc__,
            "properties": {name: key.schema for name, key in cls.keys.items()},
            **({"required": needed} if needed else {}),
            "type": "object",
        }


M = TypeVar("M", bound=Model)


def schema_of(root: type[Model], title: str) -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of a file."""
    inner: dict[str, Any] = {}
    waiting = [root]
    while waiting:
        for key in waiting.pop().keys.values():
            new = [one for one in key.kind.models if one.__name__ not in inner]
            inner |= {one.__name__: one.schema() for one in new}
            waiting += new
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    return deepcopy(head | ({"$defs": inner} if inner else {}) | root.schema())


class Faults:
    """The faults of a file, collected so that all are reported at once."""

    def __init__(self, faults: Iterable[PlaceError] = ()) -> None:
        self.found = list(faults)

    @contextmanager
    def part(self) -> Iterator[None]:
        """Collect the fault of a part; the next part is read all the same."""
        try:
            yield
        except PlaceError as fault:
            self.found += fault.faults

    def each(self, makes: Iterable[Callable[[], T]]) -> list[T]:
        """What these make, without those that are faulty."""
        made = []
        for make in makes:
            with self.part():
                made.append(make())
        return made

    def raise_all(self) -> None:
        """Raise all faults as one error, if there are any."""
        if self.found:
            raise PlaceError.of(self.found)


def _all(parts: Iterable[tuple[Spot, Kind[T]]], faults: Iterable[PlaceError] = ()) -> list[T]:
    """What is read of all these values. Raises all faults as one error."""
    collected = Faults(faults)
    made = collected.each(partial(kind.read, spot) for spot, kind in parts)
    collected.raise_all()
    return made


def _has_size(value: str | list[Any] | dict[str, Any], least: int, most: int | None) -> bool:
    return least <= len(value) <= (len(value) if most is None else most)


def _given(**keywords: Any) -> dict[str, Any]:
    return {name: value for name, value in keywords.items() if value is not None}
