"""XML from outside, read as if it were hostile: no entities, nothing fetched, bounded size, depth and count.

It is expat (standard library) with its own small tree, because expat tells the line of each element, which errors name.
Reference: the attacks listed by defusedxml's documentation; billion laughs and external entities need an entity
declaration, and any declaration is refused here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat

from seatrial.errors import ParseError

MAX_BYTES = 64 << 20
MAX_DEPTH = 256
MAX_ELEMENTS = 500_000


@dataclass(slots=True)
class Element:
    """One element: its tag, attributes, child elements, text directly inside it, and line (from 1)."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)
    text: str = ""


class _Refused(Exception):
    """Raised inside a handler; carries why."""


def read_xml(data: bytes, tool: str) -> Element:
    """The root element of one XML document. Raises ParseError, in the name of `tool`, with line and text."""
    if len(data) > MAX_BYTES:
        raise ParseError(tool, None, "", f"larger than {MAX_BYTES >> 20} MiB")
    try:
        return _parse(data)
    except _Refused as refused:
        line, why = refused.args
        raise ParseError(tool, line, _line_of(data, line), why) from None
    except expat.ExpatError as error:
        raise ParseError(tool, error.lineno, _line_of(data, error.lineno), expat.ErrorString(error.code)) from None
    except (ValueError, LookupError) as error:  # an encoding that Python does not know
        raise ParseError(tool, 1, _line_of(data, 1), str(error)) from None


def _parse(data: bytes) -> Element:
    parser = expat.ParserCreate()
    parser.buffer_text = True
    stack: list[Element] = []
    roots: list[Element] = []
    count = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if len(stack) >= MAX_DEPTH:
            raise _Refused(parser.CurrentLineNumber, f"nested deeper than {MAX_DEPTH} elements")
        if count > MAX_ELEMENTS:
            raise _Refused(parser.CurrentLineNumber, f"more than {MAX_ELEMENTS} elements")
        element = Element(tag, attributes, parser.CurrentLineNumber)
        (stack[-1].children if stack else roots).append(element)
        stack.append(element)

    def end(tag: str) -> None:
        stack.pop()

    def text(characters: str) -> None:
        if stack:
            stack[-1].text += characters

    def refuse(*_: object) -> NoReturn:
        raise _Refused(parser.CurrentLineNumber, "it declares an entity, which no such file needs")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    parser.EntityDeclHandler = refuse
    parser.ExternalEntityRefHandler = refuse
    parser.Parse(data, True)
    return roots[0]


def _line_of(data: bytes, line: int) -> str:
    lines = data.split(b"\n")
    return lines[line - 1].decode("utf-8", "replace").strip()[:500] if 0 < line <= len(lines) else ""
