"""Models of files: what their declarations accept, and which of several faults is reported."""

from __future__ import annotations

import pytest

from seatrial.errors import PlaceError
from seatrial.plan.file_model import Model, either, listed, model, named, optional, required, schema_of, text, whole
from seatrial.plan.files import read_yaml


class InnerModel(Model):
    """An inner mapping."""

    size = required("a size", whole(1, 9))
    from_ = optional("a source", text(), "here")


class OuterModel(Model):
    """A whole file."""

    inner = required("an inner mapping, or a word", either(text("[a-z]+"), model(InnerModel)))
    others = optional("inner mappings by name", named(model(InnerModel).or_null()))
    words = optional("a list of words", listed(text().accepting("a word"), 1, 2, unique=True), ())


def read(content: str) -> OuterModel:
    return OuterModel.of(read_yaml(content.encode(), "f"))


def test_values_are_those_of_the_file_or_the_declared_ones() -> None:
    found = read("inner: {size: 3}\nothers: {a: {size: 1, from: x}, b: }\nwords: null\n")
    assert isinstance(found.inner, InnerModel) and (found.inner.size, found.inner.from_) == (3, "here")
    assert found.others is not None and found.others["b"] is None and found.words == ()
    assert found.others["a"] is not None and found.others["a"].from_ == "x"
    assert InnerModel.accepts == "a mapping with size, and any of from"


@pytest.mark.parametrize(
    ("content", "line", "seen", "todo"),
    [
        ("words: [1]\ninner: {size: 0}\n", 1, "words: it cannot be 1", "it takes a word"),
        ("inner: {size: 0}\nwords: [1]\n", 1, "inner.size: it cannot be 0", "it takes a size"),
        ("words: [a]\ninnr: {}\n", 2, "innr: unknown key", "did you mean inner?"),
        ("words: [a]\n", 1, "the key inner is missing", "inner takes an inner mapping"),
        ("inner: A\n", 1, "inner: it cannot be 'A'", "it takes an inner mapping, or a word"),
        ("inner: a\nwords: [b,\n b]\n", 3, "words: 'b' is listed twice", "keep one of them"),
        ("inner: a\nwords: [a, b, c]\n", 2, "words: it cannot be", "it takes a list of words"),
        ("inner: a\nothers: {x: 3}\n", 2, "others.x: it cannot be 3", "a mapping with size"),
    ],
)
def test_the_first_fault_of_the_file_is_reported(content: str, line: int, seen: str, todo: str) -> None:
    with pytest.raises(PlaceError) as refused:
        read(content)
    assert refused.value.line == line and seen in refused.value.message and todo in refused.value.todo


def test_all_faults_are_reported_each_in_a_line() -> None:
    with pytest.raises(PlaceError) as refused:
        read("words: [1, b]\ninner: {size: 0}\nothers: {x: 3}\n")
    first, *lines = str(refused.value).splitlines()
    assert first.endswith(": 3 errors") and [one.line for one in refused.value.faults] == [1, 2, 3]
    assert (
        "words: it cannot be 1; it takes a word" in lines[0] and "inner.size: " in lines[1] and "others.x" in lines[2]
    )


def test_the_schema_has_what_is_declared() -> None:
    schema = schema_of(OuterModel, "t")
    assert schema["required"] == ["inner"] and schema["$defs"]["InnerModel"]["properties"]["size"] == {
        "description": "a size",
        "type": "integer",
        "minimum": 1,
        "maximum": 9,
    }
    assert schema["properties"]["words"]["anyOf"][1] == {"type": "null"}
