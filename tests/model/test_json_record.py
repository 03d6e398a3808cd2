"""Records as the shapes of their JSON: the object, its keys, and the way back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypedDict

import pytest

from seatrial.model.frozen import Frozen
from seatrial.model.json_check import ShapeError
from seatrial.model.json_object import filled, plain, record_of
from seatrial.model.json_shape import (
    FLAT,
    GIVEN,
    As,
    Count,
    Finite,
    Flat,
    Hidden,
    Key,
    Later,
    Number,
    OrNull,
    Sparse,
    Text,
    fields,
    key,
    view,
)


class Colour(StrEnum):
    """What lamps have."""

    RED = "red"


class Size(Frozen):
    """A size."""

    length: Annotated[Number, "of the longest side"]
    unit: str = "m"


class Lamp(Frozen):
    """A lamp.

    With a switch.
    """

    schema: ClassVar[Literal["lamp/1"]] = "lamp/1"
    name: Text
    colour: Colour
    path: Annotated[Path, As(str, to=str, back=Path)]
    size: Flat[Size]
    on: Annotated[bool, Key("is_on")] = False
    watts: Finite = None
    counts: tuple[Count, ...] = ()
    labels: Annotated[tuple[tuple[str, str], ...], As(dict[str, str], back=lambda of: tuple(of.items()))] = ()
    parts: Mapping[str, Size] = {}
    words: tuple[str, ...] | int | None = None
    remark: OrNull[str] = ""
    spare: Sparse[int | None] = None
    maker: Later[str] = "unknown"
    secret: Hidden[int] = 0

    @property
    @key
    def bright(self) -> bool:
        """Whether it is bright."""
        return (self.watts or 0) > 10

    @key
    def twice(self) -> Annotated[list[str], "its name, two times"]:
        """For fun."""
        return [self.name, self.name]


@view(Lamp, without=("bright", "length", "unit", "twice"))
class _LampJson(TypedDict):
    """A lamp in a room."""

    room: Annotated[str, GIVEN]
    colour: Literal["blue"]


class _SizedJson(TypedDict):
    """What has a size."""

    size: Annotated[Size, FLAT]


LAMP = Lamp("a", Colour.RED, Path("/x"), Size(2.0), labels=(("b", "c"),), parts={"d": Size(3.0, "s")}, words=("e",))
DOCUMENT: dict[str, Any] = {
    "schema": "lamp/1",
    "name": "a",
    "colour": "red",
    "path": "/x",
    "length": 2.0,
    "unit": "m",
    "is_on": False,
    "watts": None,
    "counts": [],
    "labels": {"b": "c"},
    "parts": {"d": {"length": 3.0, "unit": "s"}},
    "words": ["e"],
    "remark": None,
    "maker": "unknown",
    "bright": False,
    "twice": ["a", "a"],
}


def test_a_record_is_the_shape_of_its_object() -> None:
    assert plain(LAMP) == DOCUMENT
    assert list(plain(LAMP)) == list(DOCUMENT)
    required = {one.key for one in fields(Lamp) if one.is_required}
    assert required == DOCUMENT.keys() - {"maker"}


def test_a_value_that_is_not_the_default_is_not_left_out() -> None:
    assert plain(Lamp("a", Colour.RED, Path(), Size(1.0), spare=0, remark="old"))["spare"] == 0
    assert plain(Lamp("a", Colour.RED, Path(), Size(1.0), remark="old"))["remark"] == "old"


def test_what_is_not_finite_is_null_where_that_is_declared() -> None:
    assert plain(Size(math.nan)) == {"length": None, "unit": "m"}
    assert plain(Lamp("a", Colour.RED, Path(), Size(1.0), watts=math.inf))["watts"] is None


def test_a_view_has_the_keys_of_the_record_but_for_those_that_differ() -> None:
    made = filled(_LampJson, LAMP, room="kitchen")
    left_out = {"bright", "length", "unit", "twice"}
    assert made == {name: one for name, one in DOCUMENT.items() if name not in left_out} | {
        "colour": "blue",
        "room": "kitchen",
    }
    assert filled(_SizedJson, LAMP) == {"length": 2.0, "unit": "m"}


def test_the_way_back() -> None:
    read = record_of(Lamp, {**DOCUMENT, "later": 1})
    assert read == LAMP and type(read.colour) is Colour and type(read.words) is tuple
    assert record_of(Lamp, {name: one for name, one in DOCUMENT.items() if name != "maker"}) == LAMP
    assert repr(record_of(Size, {"length": 1, "unit": "s"}).length) == "1"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"schema": "lamp/2"}, "schema is 'lamp/2', not one of 'lamp/1'"),
        ({"colour": "green"}, "colour is 'green', not one of 'red'"),
        ({"counts": [1, -1]}, r"counts\[1\] is -1, not at least 0"),
        ({"parts": {"d": {"length": "x", "unit": "s"}}}, "parts.d.length is 'x', not a number"),
        ({"spare": None}, "spare is None, not an integer"),
    ],
)
def test_what_is_not_of_the_shape_is_refused_with_its_place(change: dict[str, Any], why: str) -> None:
    with pytest.raises(ShapeError, match=why):
        record_of(Lamp, {**DOCUMENT, **change})


def test_a_key_that_is_missing_is_named() -> None:
    with pytest.raises(ShapeError, match="has no 'unit'"):
        record_of(Size, {"length": 1.0})
