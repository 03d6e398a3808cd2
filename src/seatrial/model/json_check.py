"""Check parsed JSON against a shape (`json_shape`): types, required keys, and the keywords of the schema.

Files may be damaged or hostile, even if their checksum is right. What passes has the types that the shape declares, so
the code that uses it needs no further checks. Keys that the shape does not have are ignored: a later version may add
some.

JSON of files that may be damaged or hostile: one value, or ValueError with the reason.

Stricter than `json.loads`: no NaN, no infinity (1e999 is one), no duplicate keys, no text that cannot be written as
UTF-8, and a limited depth, so that nothing that works on the value can fail on one of these later.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum
from functools import cache
from types import FunctionType, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from seatrial.model.json_shape import Keywords, fields, is_shape

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


Check = Callable[[Any], None]
"""Raises ShapeError for a value that is not as it should be."""

_NAMES: Mapping[type, str] = {str: "text", bool: "true or false", int: "an integer", float: "a number"}
_ANY = (Any, object)
_LONGEST_SHOWN = 60


class ShapeError(ValueError):
    """A value has not the declared type; the message has its path, such as `devices[3].numa`."""

    def __init__(self, why: str) -> None:
        self.why = why
        self.place = ""
        super().__init__(why)

    def within(self, place: str) -> ShapeError:
        """The same error, from one level up."""
        dot = "." if self.place and not self.place.startswith("[") else ""
        self.place = f"{place}{dot}{self.place}"
        return self

    def __str__(self) -> str:
        return f"{self.place or 'it'} {self.why}"


def check_shape(of_shape: type, value: object) -> None:
    """Raises ShapeError for the first part of `value` that is not as the shape declares."""
    _object(of_shape)(value)


def check_of_keys(required: Mapping[str, Any], optional: Mapping[str, Any] = {}) -> Check:
    """The check of an object that has these keys, with values of these types; a check may replace a type."""
    keys = [(name, hint, True) for name, hint in required.items()]
    return _of_keys([*keys, *((name, hint, False) for name, hint in optional.items())])


def list_of(item: Any) -> Check:
    """The check of a list whose items have this type, or pass this check."""
    return _items(check_of(item), None)


def or_null(of: Any) -> Check:
    """The check of null, or a value of this type, or that passes this check."""
    return _either([of], may_be_null=True)


@cache
def _object(of_shape: type) -> Check:
    """The check of an object; it is made once for each shape."""
    return _of_keys(fields(of_shape))


def _of_keys(keys: Iterable[tuple[str, Any, bool]]) -> Check:
    """`keys`: name, type, and whether it is required."""
    parts = [(name, check_of(hint), is_required) for name, hint, is_required in keys]

    def check(value: Any) -> None:
        if type(value) is not dict:
            raise _wrong(value, "an object")
        for name, check_part, is_required in parts:
            if name in value:
                try:
                    check_part(value[name])
                except ShapeError as error:
                    raise error.within(name) from None
            elif is_required:
                raise ShapeError(f"has no {name!r}")

    return check


def check_of(hint: Any) -> Check:
    """The check of a value of this type; the type may be a check itself."""
    kind, of = get_origin(hint) or hint, get_args(hint)
    if isinstance(kind, FunctionType):
        return kind
    if kind is Annotated:
        return _with_keywords(check_of(of[0]), hint)
    if kind in _ANY:
        return lambda value: None
    if kind in (Union, UnionType):
        return _either([part for part in of if part is not NoneType], may_be_null=NoneType in of)
    if kind is Literal:
        return _one_of(tuple(value.value if isinstance(value, Enum) else value for value in of))
    if kind in (list, tuple):
        return _items(check_of(of[0]), len(of) if kind is tuple else None)
    if kind is dict:
        return _values(check_of(of[1]))
    if is_shape(kind):
        return lambda value: _object(kind)(value)  # made when it is used: a shape may contain itself
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _one_of(tuple(one.value for one in kind))
    return _number(kind) if kind in (int, float) else _exactly(kind)


def _exactly(kind: type) -> Check:
    def check(value: Any) -> None:
        if type(value) is not kind:
            raise _wrong(value, _NAMES[kind])

    return check


def _number(kind: type) -> Check:
    kinds = (int,) if kind is int else (int, float)

    def check(value: Any) -> None:
        if type(value) not in kinds or not -LARGEST <= value <= LARGEST:
            raise _wrong(value, _NAMES[kind])

    return check


def _one_of(values: tuple[Any, ...]) -> Check:
    allowed = {(type(one), one) for one in values}
    kinds = {type(one) for one in values}

    def check(value: Any) -> None:
        if type(value) not in kinds or (type(value), value) not in allowed:
            raise _wrong(value, "one of " + ", ".join(map(repr, values)))

    return check


def _either(kinds: list[Any], *, may_be_null: bool) -> Check:
    checks = [check_of(kind) for kind in kinds]
    if len(checks) == 1 and may_be_null:
        only = checks[0]
        return lambda value: None if value is None else only(value)
    by_type: dict[type, list[Check]] = {}
    others: list[Check] = []
    for kind, check_kind in zip(kinds, checks, strict=True):
        if kind not in _NAMES:
            others.append(check_kind)
            continue
        for json_type in (int, float) if kind is float else (kind,):
            by_type.setdefault(json_type, []).append(check_kind)

    def check(value: Any) -> None:
        if value is None and may_be_null:
            return
        failed = None
        for one in (*by_type.get(type(value), ()), *others):
            try:
                one(value)
            except ShapeError as error:
                failed = error if error.place else failed
            else:
                return
        if failed is not None:
            raise failed
        raise _wrong(value, " or ".join(_NAMES.get(get_origin(kind) or kind, "an allowed value") for kind in kinds))

    return check


def _items(item: Check, length: int | None) -> Check:
    def check(value: Any) -> None:
        if type(value) is not list or length not in (None, len(value)):
            raise _wrong(value, "a list" if length is None else f"a list of {length}")
        for position, one in enumerate(value):
            try:
                item(one)
            except ShapeError as error:
                raise error.within(f"[{position}]") from None

    return check


def _values(item: Check) -> Check:
    def check(value: Any) -> None:
        if type(value) is not dict:
            raise _wrong(value, "an object")
        for name, one in value.items():
            try:
                item(one)
            except ShapeError as error:
                raise error.within(name if name.isidentifier() and name.isascii() else _short(name)) from None

    return check


_LIMITS: Mapping[str, tuple[Callable[[Any, Any], bool], str]] = {
    "minimum": (lambda value, limit: value >= limit, "at least {}"),
    "exclusiveMinimum": (lambda value, limit: value > limit, "above {}"),
    "maximum": (lambda value, limit: value <= limit, "at most {}"),
    "minLength": (lambda value, limit: len(value) >= limit, "text of {} characters or more"),
    "minItems": (lambda value, limit: len(value) >= limit, "a list of {} or more"),
}


def _with_keywords(inner: Check, hint: Any) -> Check:
    keywords = {k: v for note in hint.__metadata__ if isinstance(note, Keywords) for k, v in note.keywords.items()}
    rules = [(*_LIMITS[name], limit) for name, limit in keywords.items() if name in _LIMITS]
    if not rules:
        return inner

    def check(value: Any) -> None:
        inner(value)
        for holds, meaning, limit in rules:
            if value is not None and not holds(value, limit):
                raise _wrong(value, meaning.format(limit))

    return check


def _wrong(value: Any, expected: str) -> ShapeError:
    return ShapeError(f"is {_short(value)}, not {expected}")


def _short(value: Any) -> str:
    """A value for a message: short, and printable. A large one is described by its type."""
    if isinstance(value, list | dict):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value)}"
    if isinstance(value, int) and abs(value) >= 10**20:
        return "a very large number"
    shown = ascii(value) if isinstance(value, str) else str(value)
    return shown if len(shown) <= _LONGEST_SHOWN else shown[:_LONGEST_SHOWN] + "..."
