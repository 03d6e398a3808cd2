"""Documents found in pasted text, and XML that means harm."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.errors import ParseError, UsageError
from seatrial.machine.readers.dump import MAX_BYTES, MAX_LINES
from seatrial.machine.readers.xml import (
    MAX_ATTRIBUTES,
    MAX_DEPTH,
    MAX_DOCUMENTS,
    MAX_ELEMENTS,
    Element,
    XmlDocument,
    read_xml,
)

ROOTS = ("topology", "system")
DOCUMENT = '<system a="1">\n  <cpu b="x > y">\n    <values>1 2</values>\n  </cpu>\n</system>'


def _read(text: str | bytes, pick: int | None = None) -> XmlDocument:
    data = text.encode() if isinstance(text, str) else text
    return read_xml(data, "x", ROOTS, pick, texts=("values",))


def _shape(element: Element) -> tuple[str, dict[str, str], str, list[object]]:
    return (element.tag, element.attributes, element.text, [_shape(child) for child in element.children])


def _prefixed(prefix: str) -> str:
    return "\n".join(prefix + line for line in DOCUMENT.split("\n"))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (DOCUMENT, 1),
        ("\ufeff\n\n" + DOCUMENT, 3),
        ("How to read a `<system>`, or <system> for short:\n\n```xml\n" + DOCUMENT + "\n```\nSo <system> it is.\n", 4),
        ("user@node:~$ cat topo.xml\n" + DOCUMENT + "\nuser@node:~$ exit\n", 2),
        (_prefixed("# "), 1),
        ("said:\n" + _prefixed("> > ") + "\n> > bye", 2),
        (_prefixed("#"), 1),
        ('<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE system SYSTEM "none.dtd">\n' + DOCUMENT, 3),
        ('<?xml version="1.0"?><!DOCTYPE system><!-- <system> -->' + DOCUMENT, 1),
        ("<!-- <system>\n</system>\n-->\n" + DOCUMENT, 4),
        ("<!-- never ended\n" + DOCUMENT, 2),
        ("\x1b[1mlstopo\x1b[0m\n" + DOCUMENT.replace("<cpu", "\x1b[32m<cpu"), 2),
        (DOCUMENT + " and more & more < than XML allows", 1),
    ],
)
def test_a_document_is_found_in_pasted_text(text: str, line: int) -> None:
    document = _read(text)
    assert document.root.line == line
    assert _shape(document.root) == _shape(_read(DOCUMENT).root)
    assert [child.line for child in document.root.children] == [line + 1]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_endings_of_lines_and_encodings(ending: str, encoding: str) -> None:
    text = "prose\n" + DOCUMENT.replace("x > y", "Grüße")
    document = _read(text.replace("\n", ending).encode(encoding))
    assert document.root.children[0].attributes == {"b": "Grüße"}
    assert document.root.children[0].line == 3


def test_latin_1_is_read_where_it_is_declared() -> None:
    text = '<?xml version="1.0" encoding="ISO-8859-1"?>\n<system a="Gerät"/>'
    assert _read(text.encode("latin-1")).root.attributes == {"a": "Gerät"}


def test_of_several_documents_one_is_picked() -> None:
    text = "first:\n" + DOCUMENT + "\nsecond:\n<topology/> <system/>\n"
    with pytest.raises(UsageError) as caught:
        _read(text)
    assert not isinstance(caught.value, ParseError)
    assert "line 2, line 8 and line 8" in str(caught.value)
    assert [_read(text, pick).root.tag for pick in (1, 2, 3)] == ["system", "topology", "system"]
    for pick in (0, 4):
        with pytest.raises(UsageError):
            _read(text, pick)


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("<system>\n  <cpu>\n```\nprose\n", 3, "text inside <cpu>"),
        ("<system>\n  <cpu>\n</cpu>\n\n\n", 3, "cut"),
        ("<system>\n  <cpu a='1\n", 2, "cut"),
        ("<system>\n  <cpu>\n  <system>\n</system>", 3, "inside the <system> of line 1"),
        ("<system>\n  <cpu>\n</system>\n", 3, "mismatched tag"),
        ("\n<system>\n  <cpu a='1' a='2'/>\n</system>\n", 3, "duplicate attribute"),
        ("\n<system>\n  &lol;\n</system>\n", 3, "undefined entity"),
        ("\n<!DOCTYPE system [\n<!ENTITY a 'b'>]>\n<system/>", 2, "entity"),
        ("<!DOCTYPE system SYSTEM 'x' [<!ENTITY a SYSTEM 'file:///etc/passwd'>]>\n<system/>", 1, "entity"),
        ("<!DOCTYPE system\n[ <!ATTLIST cpu a CDATA 'x'> ]>\n<system/>", 1, "declarations"),
        ('\n<?xml version="1.0" encoding="klingon"?>\n<system/>', 2, "klingon"),
        ("\n<system>\n" + "<a>" * (MAX_DEPTH + 1), 3, "deeper"),
        ("\n<system>" + "<a/>" * MAX_ELEMENTS, 2, "elements"),
        ("<system " + " ".join(f"a{n}='1'" for n in range(MAX_ATTRIBUTES + 1)) + "/>", 1, "attributes"),
        ("<system/>\n" * (MAX_DOCUMENTS + 1), MAX_DOCUMENTS + 1, "documents"),
        ("<!-- -->\n" * 100_001, 100_001, "comments"),
    ],
)
def test_damage_and_harm_are_refused_at_their_line(text: str, line: int, why: str) -> None:
    with pytest.raises(ParseError) as caught:
        _read(text)
    assert caught.value.line == line
    assert caught.value.text == text.split("\n")[line - 1], "the whole line, as it stands in the file"
    assert why in str(caught.value)


@pytest.mark.parametrize(
    "data", [b"", b"<html/>", b"see <system> here", b"\0", b"\n" * (MAX_LINES + 1), b" " * (MAX_BYTES + 1)]
)
def test_input_without_a_document_is_rejected(data: bytes) -> None:
    with pytest.raises(ParseError):
        _read(data)


def test_a_line_of_an_error_is_whole() -> None:
    padding = "x" * 3000
    with pytest.raises(ParseError) as caught:
        _read(f"<system>\n   <cpu a='{padding}'></gpu>   \n</system>")
    assert caught.value.text == f"   <cpu a='{padding}'></gpu>   "


def test_an_element_names_its_line_of_the_file() -> None:
    document = _read("prose\n> " + DOCUMENT.replace("\n", "\n> "))
    error = document.error(document.root.children[0], "wrong")
    assert (error.tool, error.line, error.text) == ("x", 3, '>   <cpu b="x > y">')


@given(st.binary(max_size=300), st.integers(0, 80), st.integers(0, 80))
def test_any_bytes_give_a_document_or_an_error(data: bytes, start: int, end: int) -> None:
    text = DOCUMENT.encode()
    for glued in (data, text[:start] + data + text[end:]):
        try:
            assert _read(glued).root.tag in ROOTS
        except UsageError as error:
            assert str(error)
