"""The schemas of the documents: valid, closed, and consistent with the shapes of the documents."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    TypedDict,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import pytest
from published_schemas import check, validator

from seatrial.model.json_object import filled
from seatrial.model.json_shape import ABSENT, Finite, From, Keywords, declared, fields, is_shape
from seatrial.model.results.figure_result import ExperimentResult
from seatrial.model.results.record import Experiment
from seatrial.model.results.sample import Outcome
from seatrial.profiler.profile import PairTable
from seatrial.report.documents.results import results_document
from seatrial.report.schemas import DOCUMENTS, schema

OPEN = {
    "cache-1": set(),
    "check-1": {"check-1"},
    "cluster-1": set(),
    "compare-1": set(),
    "fabric-1": set(),
    "folders-1": set(),
    "history-1": set(),
    "image-1": set(),
    "image-facts-1": set(),
    "jobs-1": set(),
    "list-1": {"list-1", "Benchmark"},
    "machine-1": set(),
    "plan-1": {"plan-1", "Planned"},
    "power-1": set(),
    "profile-1": set(),
    "results-1": {"results-1", "Experiment", "Figure", "ReachedLimit"},
    "screen-1": set(),
    "vm-1": set(),
}
"""Document -> the objects that later versions may add keys to."""


@pytest.mark.parametrize("name", DOCUMENTS)
def test_each_schema_is_valid_and_closed_unless_declared_open(name: str) -> None:
    made = validator(name).schema
    assert made["title"] == made["properties"]["schema"]["const"] == f"seatrial.{'/'.join(name.rsplit('-', 1))}"
    objects = {name: made, **made["$defs"]}
    assert {one for one, part in objects.items() if part["additionalProperties"] is True} == OPEN[name]
    assert json.loads(json.dumps(made)) == made


def test_it_is_printed() -> None:
    command = [sys.executable, "-m", "seatrial.report.schemas"]
    printed = subprocess.run([*command, "check-1"], check=True, capture_output=True)
    assert json.loads(printed.stdout) == schema("check-1")
    refused = subprocess.run([*command, "check-9"], capture_output=True, text=True)
    assert refused.returncode != 0 and "check-1" in refused.stderr


def shapes_in(hint: Any) -> set[type]:
    """All shapes that this one consists of."""
    found: set[type] = set()
    left = [hint]
    while left:
        one = left.pop()
        if is_shape(one) and one not in found:
            found.add(one)
            left += [part.hint for part in fields(one)]
        left += get_args(one) if get_origin(one) is not Literal else ()
    return found


SHAPES = {one: declared(one).of for document in DOCUMENTS.values() for one in shapes_in(document)}

PATHS = [
    (one, source, place.source if place else name, hint)
    for one, source in ((one, of if is_typeddict(one) else one) for one, of in SHAPES.items())
    if source not in (None, tuple)
    for name, hint, _ in fields(one)
    for place in [next((note for note in getattr(hint, "__metadata__", ()) if isinstance(note, From)), None)]
    if isinstance(place.source if place else name, str) and name != "schema"
]


def test_results_may_have_a_parameter_of_several_words() -> None:
    experiment = Experiment("command", {"argv": ("sleep", "1")}, "", "", "m")
    result = ExperimentResult("0" * 16, experiment, "How long?", Outcome.skipped("asked for elsewhere"))
    document = results_document([result], {})
    assert document["experiments"][0]["parameters"] == {"argv": ["sleep", "1"]}
    check(document, "results-1")


NEVER_NONE = {"ComparedJson", "ReachedLimitJson", "WaitingJson"}
"""Shapes of what may be None elsewhere: the document has null in place of the whole object."""


def test_every_value_is_an_attribute_of_that_type() -> None:
    wrong = [f"{path[0].__name__}: {why}" for path in PATHS if (why := why_unlike(*path))]
    assert len(PATHS) > 700 and not wrong


def why_unlike(one: type, source: type, path: str, hint: Any) -> str:
    """How the attribute differs from the value in the document; "" if it does not."""
    found: Any = source
    may_be_none = False
    for name in path.split("."):
        (found,) = [kind for kind in _kinds(found) if kind is not NoneType]
        found = _attribute_type(found, name)
        may_be_none = may_be_none or NoneType in _kinds(found)
    expected = _kinds(hint)
    if may_be_none and NoneType not in expected and one.__name__ not in NEVER_NONE:
        return f"{path} may be None"
    unlike = {_plain(kind) for kind in _kinds(found)} - {NoneType} - {_plain(kind) for kind in expected}
    return f"{path} may be {unlike}" if unlike else ""


def _attribute_type(of: type, name: str) -> Any:
    hints = get_type_hints(of, localns={"array": list})  # array[float] is for type checkers alone before Python 3.12
    if name in hints:
        return hints[name]
    member = getattr(of, name)
    read = member.fget if isinstance(member, property) else member.func if isinstance(member, cached_property) else None
    return get_type_hints(read)["return"]


def _kinds(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) is Annotated:
        return _kinds(get_args(hint)[0])
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _plain(kind: Any) -> type:
    """What it is in JSON, or of what it is made."""
    origin = get_origin(kind) or kind
    if origin is Annotated:
        return _plain(get_args(kind)[0])
    if is_typeddict(origin):
        return SHAPES[origin]
    if origin is Literal:
        return _plain(type(get_args(kind)[0]))
    if issubclass(origin, Enum):
        return str
    if issubclass(origin, Mapping | dict) or (origin is tuple and get_args(get_args(kind)[0])[:1] == (str,)):
        return dict  # tuples of names and values, too
    if origin in (tuple, PairTable):
        return list
    return float if origin is int else origin


@dataclass(frozen=True)
class Reading:
    """What the shapes below show."""

    value: float
    of: tuple[str, ...] = ()
    inner: Reading | None = None


class _ReadingJson(TypedDict):
    """A reading."""

    schema: Literal["reading/1"]
    value: Annotated[float, Keywords(minimum=0)]
    best: Annotated[Finite, From("inner.value"), "of the inner one"]
    of: NotRequired[Annotated[list[str], From(lambda reading: reading.of or ABSENT)]]
    inner: _ReadingJson | None


def test_an_object_is_filled_from_its_shape() -> None:
    plain = {"schema": "reading/1", "value": 1.5, "best": None, "inner": None}
    assert filled(_ReadingJson, Reading(1.5)) == plain
    inner = filled(_ReadingJson, Reading(2.0, ("a",), Reading(math.inf)), inner=None)
    assert inner == {"schema": "reading/1", "value": 2.0, "best": None, "of": ["a"], "inner": None}
    assert filled(_ReadingJson, Reading(2.0, inner=Reading(1.5)))["inner"] == plain
    with pytest.raises(ValueError, match="not a number"):
        filled(_ReadingJson, Reading(math.nan))
