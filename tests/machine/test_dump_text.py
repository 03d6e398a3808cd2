"""Text as people paste it: lines, prefixes, control sequences, and the choice among several dumps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.errors import ParseError, UsageError
from seatrial.machine.readers.dump import choose, is_fence, prefix_of, read_lines, without_prefix


def test_lines_keep_their_numbers_and_their_raw_text() -> None:
    lines = read_lines(b"one\r\n\x1b[4mtwo\x1b[0m\n\nfour\r", "x")
    assert [(line.number, line.text, line.raw) for line in lines] == [
        (1, "one", "one"), (2, "two", "\x1b[4mtwo\x1b[0m"), (3, "", ""), (4, "four", "four"),
    ]  # fmt: skip
    assert [line.is_blank for line in lines] == [False, False, True, False]


@pytest.mark.parametrize(
    ("data", "ended"), [(b"a\nb\n", [True, True]), (b"a\nb", [True, False]), (b"", []), (b"\n", [True])]
)
def test_a_last_line_without_a_break_is_marked(data: bytes, ended: list[bool]) -> None:
    assert [line.is_ended for line in read_lines(data, "x")] == ended


@pytest.mark.parametrize(
    ("data", "texts"),
    [
        ("\ufeffone\ntwo".encode(), ["one", "two"]),
        ("one\ntwo".encode("utf-16"), ["one", "two"]),
        (b"\xe9t\xe9\n", ["\ufffdt\ufffd"]),
        (b"\x1b]0;a title\x07prompt\n", ["prompt"]),
        (b"\x1b[38;5;12mblue\x1b(B\n", ["blue"]),
    ],
)
def test_encodings_and_control_sequences(data: bytes, texts: list[str]) -> None:
    assert [line.text for line in read_lines(data, "x")] == texts


def test_a_zero_byte_is_refused_at_its_line() -> None:
    with pytest.raises(ParseError) as caught:
        read_lines(b"one\nt\0wo\n", "x")
    assert (caught.value.tool, caught.value.line) == ("x", 2)


@pytest.mark.parametrize(
    ("text", "prefix"),
    [("# a", "# "), ("> > a", "> > "), ("#a", "#"), ("  a", ""), ("", ""), (" > \ta", " > "), ("a # b", "")],
)
def test_prefixes(text: str, prefix: str) -> None:
    assert prefix_of(text) == prefix
    assert without_prefix(text) == text[len(prefix) :]


@pytest.mark.parametrize(("text", "fence"), [("```bash", True), ("> ~~~", True), ("  ```", True), ("a ```", False)])
def test_fences(text: str, fence: bool) -> None:
    assert is_fence(text) is fence


def test_choosing_among_dumps() -> None:
    def line_of(number: int) -> int:
        return number

    assert choose([7], line_of, None, "x", "matrix") == 7
    assert choose([7, 9], line_of, 2, "x", "matrix") == 9
    with pytest.raises(ParseError, match="no matrix in the file"):
        choose([], line_of, 1, "x", "matrix")
    with pytest.raises(UsageError, match="line 7, line 9 and line 30"):
        choose([7, 9, 30], line_of, None, "x", "matrix")
    with pytest.raises(UsageError, match="has 1000 dumps") as caught:
        choose(range(1000), line_of, None, "x", "matrix")
    assert len(caught.value.message) < 500
    for pick in (0, 3, -1):
        with pytest.raises(UsageError, match="line 7, 9"):
            choose([7, 9], line_of, pick, "x", "matrix")


@given(st.binary(max_size=400))
def test_any_bytes_give_lines_or_a_parse_error(data: bytes) -> None:
    try:
        lines = read_lines(data, "x")
    except ParseError as error:
        assert error.tool == "x"
    else:
        assert [line.number for line in lines] == list(range(1, len(lines) + 1))
        assert all(line.is_ended for line in lines[:-1])
