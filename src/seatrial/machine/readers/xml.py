"""A parser for untrusted XML: no entities, no network access, bounded size, depth and counts.

A file may be pasted text: documents among prose, prompts and fences, perhaps behind `# ` or `> `. A document begins
where its root element begins a line (after such a prefix, its declaration, document type and comments), and ends with
that element. It uses expat (standard library) and its own small tree, because expat reports the line of each
element, and error messages name lines of the file. expat never sees a document type: a plain one is skipped and never
fetched; one with declarations is refused. Reference: the attacks listed in defusedxml's documentation (billion laughs,
quadratic blow-up and external entities all need a declaration).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat

from msgspec import Struct

from seatrial.errors import ParseError
from seatrial.machine.readers.dump import Line, choose, prefix_of, read_lines

MAX_DEPTH = 256
MAX_ELEMENTS = 200_000
MAX_ATTRIBUTES = 100
MAX_DOCUMENTS = 100
MAX_MARKS = 100_000
"""Comments, declarations and mentions of a root element outside documents."""

_FIRST_BLOCK = 1 << 16
"""Characters in the first block for expat; each block is twice the last. Old versions of expat restart an unfinished
token with each block: with equal blocks, a long comment would take quadratic time."""

_LONGEST_PROLOG = 2000  # Characters of a document type or XML declaration.

_DECLARATION = re.compile(rb"<\?xml[^<>]{0,200}?encoding\s{0,9}=\s{0,9}[\"']([^\"'<>]{0,40})[\"']")
_LATIN_1 = frozenset({"iso-8859-1", "latin1", "latin-1"})
_UNICODE = frozenset({"utf-8", "utf8", "us-ascii", "ascii", "utf-16"})
_PLAIN_DOCTYPE = re.compile(
    r"<!DOCTYPE\s+[\w.:-]{1,100}(?:\s+(?:SYSTEM|PUBLIC))?(?:\s+(?:\"[^\"<]*\"|'[^'<]*')){0,2}\s*>"
)


class Element(Struct):
    """One element: its tag, attributes, child elements, text directly inside, and line in the file (from 1)."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = []
    text: str = ""


@dataclass(frozen=True, slots=True)
class XmlDocument:
    """One document of a file; `lines` are all lines of the file."""

    root: Element
    tool: str
    lines: Sequence[Line] = field(repr=False)

    def error(self, element: Element, why: str) -> ParseError:
        """The error for this element, with its line and the complete text of the line."""
        return self.lines[element.line - 1].error(self.tool, why)


class _Refused(Exception):
    """Raised inside a handler; has the line (of expat's input, from 1) and the reason."""


class _Closed(Exception):
    """Raised inside a handler: the root element is complete."""


def read_xml(
    data: bytes, tool: str, roots: Collection[str], pick: int | None = None, texts: Collection[str] = ()
) -> XmlDocument:
    """The only document of a file whose root element is one of `roots`, or the `pick`-th (from 1).

    Only elements in `texts` may have text inside; text elsewhere shows that the document is cut.
    Raises ParseError for `tool`, with number and text of the first wrong line; UsageError for several documents
    without `pick`.
    """
    lines = _lines(data, tool)
    noun = " or ".join(f"<{root}>" for root in roots)
    found: list[XmlDocument] = []
    finder = _Finder(lines, roots, tool)
    while (start := finder.next_root()) is not None:
        if len(found) == MAX_DOCUMENTS:
            raise lines[start[0]].error(tool, f"more than {MAX_DOCUMENTS} documents")
        parser = _Parser(lines, start, roots, texts, tool)
        found.append(XmlDocument(parser.parse(), tool, lines))
        finder.at = parser.behind
    return choose(found, lambda document: document.root.line, pick, tool, noun)


def _lines(data: bytes, tool: str) -> tuple[Line, ...]:
    declared = _DECLARATION.search(data)
    encoding = declared[1].decode("latin-1").lower() if declared is not None else "utf-8"
    if encoding in _LATIN_1:
        data = data.decode("latin-1").encode()
    lines = read_lines(data, tool)
    if declared is not None and encoding not in _LATIN_1 | _UNICODE:
        number = data[: declared.start()].count(b"\n")
        raise lines[min(number, len(lines) - 1)].error(tool, f'the encoding "{encoding}" is not supported')
    return lines


class _Finder:
    """Finds where documents begin: a root element at the start of a line, after only a prefix, a declaration, a
    document type or a comment. A `<topology>` inside a sentence or a comment is not a document."""

    def __init__(self, lines: Sequence[Line], roots: Collection[str], tool: str) -> None:
        self._lines = lines
        self._tool = tool
        self._mark = re.compile(rf"<!--|<\?xml|<!DOCTYPE|(?P<root><(?:{'|'.join(map(re.escape, roots))})(?=[\s/>]|\Z))")
        self._marks = 0
        self.at = (0, 0)
        """Where the search continues: index of the line, column."""
        self._comments_end = True

    def next_root(self) -> tuple[int, int] | None:
        """Position (index of the line, column) of the next root element's start, or None."""
        number, column = self.at
        is_prose = False
        while number < len(self._lines):
            text = self._lines[number].text
            mark = self._mark.search(text, column)
            if mark is None:
                number, column, is_prose = number + 1, 0, False
                continue
            self._marks += 1
            if self._marks > MAX_MARKS:
                raise self._lines[number].error(self._tool, f"more than {MAX_MARKS} comments and declarations")
            before = text[column : mark.start()]
            is_prose = is_prose or bool((before[len(prefix_of(before)) :] if column == 0 else before).strip())
            if mark["root"] is not None:
                if not is_prose:
                    return number, mark.start()
                column = mark.end()
                continue
            end = self._end_of_prolog(number, mark.start())
            is_prose = is_prose and end[0] == number
            number, column = end
        return None

    def _end_of_prolog(self, number: int, column: int) -> tuple[int, int]:
        """The end of the comment, declaration or document type that begins here; an unterminated one is prose."""
        head = self._lines[number].text[column : column + _LONGEST_PROLOG]
        if head.startswith("<!DOCTYPE"):
            following = (line.text[:_LONGEST_PROLOG] for line in self._lines[number + 1 : number + 5])
            if "[" in " ".join((head, *following)).split(">", 1)[0]:
                why = "a document type with declarations (an entity?), which such a file does not need"
                raise self._lines[number].error(self._tool, why)
            match = _PLAIN_DOCTYPE.match(head)
            return number, column + (match.end() if match is not None else 1)
        if head.startswith("<?xml"):
            return number, column + max(head.find("?>") + 2, 1)
        for index in range(number, len(self._lines) if self._comments_end else number):
            end = self._lines[index].text.find("-->", column if index == number else 0)
            if end >= 0:
                return index, end + 3
        self._comments_end = False  # later ones have no end either
        return number, column + 1


class _Parser:
    """Parses one document that begins at `start` (index of the line, column)."""

    behind = (0, 0)
    """After `parse`: the position after the root element."""

    def __init__(
        self, lines: Sequence[Line], start: tuple[int, int], roots: Collection[str], texts: Collection[str], tool: str
    ) -> None:
        self._lines = lines
        self._first, self._column = start
        self._roots = roots
        self._texts = frozenset(texts)
        self._tool = tool
        self._prefix = prefix_of(lines[self._first].text[: self._column])
        self._stack: list[Element] = []
        self._pieces: list[list[str]] = []
        self._found: list[Element] = []
        self._count = 0
        self._expat = expat.ParserCreate("utf-8")
        self._expat.StartElementHandler = self._start
        self._expat.EndElementHandler = self._end
        self._expat.CharacterDataHandler = self._text
        self._expat.EntityDeclHandler = self._refuse_entity
        self._expat.ExternalEntityRefHandler = self._refuse_entity

    def parse(self) -> Element:
        """The root element. Raises ParseError."""
        try:
            for block in self._blocks():
                self._expat.Parse(block, False)
            self._expat.Parse(b"", True)
        except _Closed:
            return self._found[0]
        except _Refused as refused:
            raise self._error(*refused.args) from None
        except expat.ExpatError as error:
            raise self._expat_error(error) from None
        raise self._cut(len(self._lines) - 1, "its end was not found")

    def _blocks(self) -> Iterator[bytes]:
        block: list[str] = []
        size, limit = 0, _FIRST_BLOCK
        for index in range(self._first, len(self._lines)):
            text = self._without_prefix(index)
            block.append(text)
            size += len(text) + 1
            if size >= limit:
                yield ("\n".join(block) + "\n").encode()
                block, size, limit = [], 0, 2 * limit
        yield ("\n".join(block) + "\n").encode()

    def _without_prefix(self, index: int) -> str:
        text = self._lines[index].text
        if index == self._first:
            return text[self._column :]
        if self._prefix.strip() and text.startswith(self._prefix):
            return text[len(self._prefix) :]
        return "" if self._prefix.strip() and text.strip() == self._prefix.strip() else text

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        line = self._expat.CurrentLineNumber
        self._count += 1
        if len(self._stack) >= MAX_DEPTH:
            raise _Refused(line, f"nested deeper than {MAX_DEPTH} elements")
        if self._count > MAX_ELEMENTS:
            raise _Refused(line, f"more than {MAX_ELEMENTS} elements")
        if len(attributes) > MAX_ATTRIBUTES:
            raise _Refused(line, f"more than {MAX_ATTRIBUTES} attributes")
        if self._stack and tag in self._roots:
            around = self._found[0]
            raise _Refused(line, f"a <{tag}> inside the <{around.tag}> of line {around.line}: which is cut")
        element = Element(tag, attributes, self._first + line)
        (self._stack[-1].children if self._stack else self._found).append(element)
        self._stack.append(element)
        self._pieces.append([])

    def _end(self, tag: str) -> None:
        self._stack.pop().text = "".join(self._pieces.pop())
        if not self._stack:  # expat's position is the beginning of an end tag, but after the tag of an empty element
            line = self._expat.CurrentLineNumber - 1
            index = self._first + line
            text = self._lines[index].text
            at = self._expat.CurrentColumnNumber + len(text) - len(self._without_prefix(index))
            end = text.find(">", at) if text.startswith("</", at) else at - 1
            self.behind = (index, end + 1) if end >= 0 else (index + 1, 0)
            raise _Closed

    def _text(self, characters: str) -> None:
        if not self._stack:
            return
        if self._stack[-1].tag in self._texts:
            self._pieces[-1].append(characters)
        elif characters.strip():
            why = f"text inside <{self._stack[-1].tag}>: the document is cut before this line, or damaged"
            raise _Refused(self._expat.CurrentLineNumber, why)

    def _refuse_entity(self, *_: object) -> NoReturn:
        raise _Refused(self._expat.CurrentLineNumber, "an entity declaration, which such a file does not need")

    def _expat_error(self, error: expat.ExpatError) -> ParseError:
        why = expat.ErrorString(error.code)
        if why == "no element found":
            return self._cut(len(self._lines) - 1, "unclosed elements")
        if why in ("unclosed token", "unclosed CDATA section"):
            return self._cut(self._first + error.lineno - 1, "unterminated")
        return self._error(error.lineno, why)

    def _cut(self, index: int, why: str) -> ParseError:
        """The error for a document that ends too early, at the last non-blank line up to `index`."""
        while index > self._first and self._lines[index].is_blank:
            index -= 1
        return self._lines[index].error(self._tool, f"the document is cut: {why}")

    def _error(self, number: int, why: str) -> ParseError:
        return self._lines[min(self._first + number, len(self._lines)) - 1].error(self._tool, why)
