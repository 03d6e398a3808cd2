"""Reads files named by the caller, and parses YAML 1.2 into a tree of nodes with line numbers; limits protect against
hostile files.

The parser's events are read one by one, so that depth and size are checked before anything is built.
Scalars follow the core schema of YAML 1.2.2 (section 10.3.2), except that true and false have one spelling each: `yes`,
`on`, `True` and `1_000` are text, and 0777 is seven hundred and seventy-seven.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from seatrial.errors import PlaceError, UsageError, did_you_mean, nearest_names
from seatrial.model.frozen import Frozen
from seatrial.model.units import LARGEST_COUNT
from seatrial.printable import printable

MAX_BYTES = 1 << 20
_MAX_NODES = 150_000
_MAX_DEPTH = 12
_LONGEST_SHOWN = 60

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_WHOLE = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_ONLY_COMMENTS = re.compile(rb"(?:[ \t]*(?:#[^\n]*)?\r?\n)*[ \t]*(?:#[^\n]*)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")

Scalar = bool | int | float | str | None
KeyPath = tuple[str | int, ...]


class YamlNode(Frozen):
    """One value: a scalar, a list of nodes or a mapping. `line` counts from 1; `written` is a scalar's text."""

    value: Scalar | list[YamlNode] | dict[str, YamlNode]
    line: int
    written: str = ""
    key_lines: dict[str, int] = field(default_factory=dict)

    @property
    def is_scalar(self) -> bool:
        """Whether this is neither a list nor a mapping."""
        return not isinstance(self.value, list | dict)

    @property
    def items(self) -> list[YamlNode]:
        """The nodes of a list; empty for anything else."""
        return self.value if isinstance(self.value, list) else []

    @property
    def entries(self) -> dict[str, YamlNode]:
        """The entries of a mapping; empty for anything else."""
        return self.value if isinstance(self.value, dict) else {}

    def plain(self) -> Any:
        """The same as lists, dictionaries and scalars."""
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        return self.value

    def shown(self) -> str:
        """The value for a message: short, with quotes if it is text."""
        if isinstance(self.value, list):
            text = "[" + ", ".join(node.shown() for node in self.value[:5])
            return text + (", ...]" if len(self.value) > 5 else "]")
        if isinstance(self.value, dict):
            return "a mapping with " + (", ".join(map(_short, list(self.value)[:5])) or "nothing")
        if self.value is None:
            return "nothing" if self.written == "" else _short(self.written)
        return repr(_short(self.value)) if isinstance(self.value, str) else _short(self.written)


class Document(Frozen):
    """The tree of a file, with error messages for values in it."""

    file: str
    root: YamlNode

    def node(self, path: KeyPath) -> YamlNode | None:
        """The node at a path of keys and positions, or None."""
        node: YamlNode | None = self.root
        for step in path:
            if node is None:
                return None
            node = node.entries.get(step) if isinstance(step, str) else _item(node, step)
        return node

    def line(self, path: KeyPath) -> int:
        """The line of a value, or of the innermost existing one that contains it."""
        node = self.root
        line = node.line
        for step in path:
            inner = node.entries.get(step) if isinstance(step, str) else _item(node, step)
            if inner is None:
                break
            node, line = inner, inner.line
        return line

    def refuse(self, path: KeyPath, seen: str, todo: str = "", line: int | None = None) -> PlaceError:
        """An error about a value in the file."""
        key = ".".join(_short(step) for step in path if isinstance(step, str))
        return PlaceError(self.file, line or self.line(path), f"{key}: {seen}" if key else seen, todo, path)


class FileKind(Frozen):
    """What a file should be, for messages: `name`, `give` (what to give instead of a file that is none), and `needs`:
    what it must have at least. None: it may be empty, and is a mapping without keys then."""

    name: str
    give: str
    needs: str | None


STUDY = FileKind("study file", "give the study's YAML file", "a study needs at least study, question, benchmarks")


def read_yaml(data: bytes, file: str, kind: FileKind = STUDY) -> Document:
    """The one document of a file. Raises PlaceError for text that is not valid YAML 1.2, and for features that no file
    needs: more than 1 MiB, several documents, tags, anchors, aliases, duplicate keys, deep nesting."""
    if len(data) > MAX_BYTES:
        raise PlaceError(file, None, f"larger than 1 MiB: not a {kind.name}", kind.give)
    if _ONLY_COMMENTS.fullmatch(data.removeprefix(b"\xef\xbb\xbf")):
        if kind.needs is None:
            return Document(file, YamlNode({}, 1))
        raise PlaceError(file, None, "the file is empty", kind.needs)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise PlaceError(
            file, line, f"invalid UTF-8 (byte 0x{data[error.start]:02x})", "save the file as UTF-8 text"
        ) from None
    return Document(file, _Builder(file, kind).build(_events(text, file)))


def _item(node: YamlNode, position: int) -> YamlNode | None:
    return node.items[position] if position < len(node.items) else None


def _short(text: str) -> str:
    """Text from the file, printable and short enough for a message."""
    shown = printable(text[:_LONGEST_SHOWN])
    return shown if len(text) <= _LONGEST_SHOWN else f"{shown}..."


def _events(text: str, file: str) -> Iterator[Any]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError
    from ruamel.yaml.reader import ReaderError

    todo = "write YAML 1.2: `key: value` lines, indented with spaces"
    try:
        yield from YAML(typ="safe", pure=True).parse(text)
    except ReaderError as error:
        line = text[: error.position].count("\n") + 1
        raise PlaceError(file, line, f"invalid character U+{error.character:04X}") from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = ", ".join(_short(part) for part in (error.context, error.problem) if part)
        seen, todo = _in_plain_words(problem, text.splitlines()[mark.line : mark.line + 1] if mark else [], todo)
        raise PlaceError(file, mark.line + 1 if mark else None, f"invalid YAML: {seen}", todo) from None
    except (YAMLError, ValueError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise PlaceError(file, None, f"invalid YAML: {_short(first)}", todo) from None


_NO_SPACE = re.compile(r"""[\w"']:[{\[]""")


def _in_plain_words(problem: str, lines: list[str], todo: str) -> tuple[str, str]:
    """What is wrong and what to write, for the mistakes that the parser's words do not explain; `lines` has the line
    where it noticed."""
    line = lines[0] if lines else ""
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return "the line is indented with a tab", "indent with spaces"
    if _NO_SPACE.search(line):
        return "a colon without a space after it", "write `key: value` with a space after the colon"
    if "mapping values are not allowed" in problem:
        return "a second colon in one line", "write text with a colon in quotes, and each key on its own line"
    return problem, todo


class _Open(Struct):
    """An unfinished list or mapping. `key` is the one whose value comes next."""

    node: YamlNode
    key: str | None = None
    key_line: int = 0


class _Builder:
    """Builds nodes from events with an explicit stack, so that deep nesting cannot exhaust the interpreter's."""

    def __init__(self, file: str, kind: FileKind) -> None:
        self._file = file
        self._kind = kind
        self._stack: list[_Open] = []
        self._root: YamlNode | None = None
        self._count = 0

    def build(self, events: Iterator[Any]) -> YamlNode:
        """The root of the only document."""
        for event in events:
            line = event.start_mark.line + 1
            match type(event).__name__:
                case "DocumentStartEvent":
                    self._begin_document(event, line)
                case "ScalarEvent":
                    self._refuse_anchor_and_tag(event, line)
                    self._add(self._scalar(event, line), line)
                case "SequenceStartEvent":
                    self._refuse_anchor_and_tag(event, line)
                    self._open(YamlNode([], line), line)
                case "MappingStartEvent":
                    self._refuse_anchor_and_tag(event, line)
                    self._open(YamlNode({}, line), line)
                case "SequenceEndEvent" | "MappingEndEvent":
                    self._stack.pop()
                case "AliasEvent":
                    raise self._error(line, f"the alias *{_short(event.anchor)} is not accepted", _NO_ALIASES)
        if self._root is None:
            raise PlaceError(self._file, None, "the file is empty", self._kind.needs or self._kind.give)
        return self._root

    def _error(self, line: int, seen: str, todo: str = "") -> PlaceError:
        return PlaceError(self._file, line, seen, todo)

    def _begin_document(self, event: Any, line: int) -> None:
        if self._root is not None:
            raise self._error(line, "a second document begins here", "a file contains one document")
        if event.version is not None and tuple(event.version) != (1, 2):
            version = ".".join(map(str, event.version))
            raise self._error(line, f"%YAML {version} is not accepted", "study files are YAML 1.2: remove the line")
        if event.tags:
            raise self._error(line, "%TAG is not accepted", "write values without tags")

    def _refuse_anchor_and_tag(self, event: Any, line: int) -> None:
        """Refuse anchors and tags."""
        if event.anchor is not None:
            raise self._error(line, f"the anchor &{_short(event.anchor)} is not accepted", _NO_ALIASES)
        if event.tag is not None:
            raise self._error(line, f"the tag {_short(str(event.tag))} is not accepted", "write values without tags")

    def _open(self, node: YamlNode, line: int) -> None:
        self._add(node, line)
        self._stack.append(_Open(node))
        if len(self._stack) > _MAX_DEPTH:
            raise self._error(line, f"nested more than {_MAX_DEPTH} levels deep", "no part of a study is so deep")

    def _add(self, node: YamlNode, line: int) -> None:
        self._count += 1
        if self._count > _MAX_NODES:
            raise self._error(line, f"more than {_MAX_NODES} values", "split it into several studies")
        if not self._stack:
            self._root = node
            return
        top = self._stack[-1]
        if isinstance(top.node.value, list):
            top.node.value.append(node)
        elif top.key is None:
            self._key(top, node, line)
        else:
            # The parser reports an empty value on a later line; report it at its key.
            placed = YamlNode(None, top.key_line) if node.value is None and node.written == "" else node
            top.node.entries[top.key] = placed
            top.key = None

    def _key(self, top: _Open, node: YamlNode, line: int) -> None:
        if not node.is_scalar:
            raise self._error(line, "expected a key, found a list or mapping", "write a name before the colon")
        if node.written in top.node.entries:
            first = top.node.key_lines[node.written]
            raise self._error(
                line, f"{_short(node.written)} is given twice (first on line {first})", "keep one of them"
            )
        top.key, top.key_line = node.written, line
        top.node.key_lines[node.written] = line

    def _scalar(self, event: Any, line: int) -> YamlNode:
        text: str = event.value
        is_quoted = bool(event.style)
        return YamlNode(text if is_quoted else self._resolved(text, line), line, text)

    def _resolved(self, text: str, line: int) -> Scalar:
        if text in _NULL:
            return None
        if text in ("true", "false"):
            return text == "true"
        if _NOT_FINITE.fullmatch(text):
            raise self._error(line, f"{text} is not a usable number", "write a number, or text in quotes")
        number: int | float | None = None
        if len(text) > _LONGEST_SHOWN:
            return text
        if _WHOLE.fullmatch(text):
            number = int(text)
        elif _OCTAL.fullmatch(text):
            number = int(text[2:], 8)
        elif _HEXADECIMAL.fullmatch(text):
            number = int(text[2:], 16)
        elif _NUMBER.fullmatch(text):
            number = float(text)
        if number is not None and not (math.isfinite(number) and abs(number) <= LARGEST_COUNT):
            raise self._error(line, f"{text} is too large a number", "use numbers up to 2^53, or text in quotes")
        return text if number is None else number


_NO_ALIASES = "write the value each time"


STDIN = "-"


def read_file(path: str | Path, most: int, todo: str, what: str = "") -> bytes:
    """The first `most` + 1 bytes of a file: the extra byte makes its reader reject a file that is too long.

    Raises UsageError, which says `what` it is ("the site file ") and suggests `todo`, if the file cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            return file.read(most + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        near = _files_like(Path(path)) if isinstance(error, FileNotFoundError) else []
        raise UsageError(f"{what}{str(path)!r} cannot be read: {why}", did_you_mean(near) if near else todo) from error


_MOST_ENTRIES = 10_000


def _files_like(path: Path) -> list[str]:
    """The files beside a missing one whose names are similar; those of the same kind before others."""
    try:
        with os.scandir(path.parent) as entries:
            names = [entry.name for entry in itertools.islice(entries, _MOST_ENTRIES) if entry.is_file()]
    except OSError:
        return []
    near = [name for name in names if _similar(name, path)]
    return [str(path.parent / name) for name in nearest_names(path.name, near) if name.isprintable()]


def _similar(name: str, path: Path) -> bool:
    """Whether a file may be meant: the ending is one of the same kind, or the missing file has none."""
    return path.suffix in ("", Path(name).suffix) or {path.suffix, Path(name).suffix} <= {".yaml", ".yml"}


def read_output(name: str, most: int) -> bytes:
    """The same for the output of another tool; "-" is standard input."""
    if name == STDIN:
        return sys.stdin.buffer.read(most + 1)
    return read_file(name, most, "give the file with the tool's output")
