"""JSON of other tools: one object, no NaN, no duplicate keys except of text; the accessors report what is wrong."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from seatrial.applications.reading.text import Pattern, read_text
from seatrial.errors import ParseError
from seatrial.model.frozen import Frozen

_LINE_WITH = {
    "{": Pattern(r"^([^\n{]{0,400})(\{)[^\n]*", re.MULTILINE),
    "[": Pattern(r"^([^\n{\[]{0,400})([{\[])[^\n]*", re.MULTILINE),
}
"""The first opening of a line, and what is before it."""
INVALID_JSON = "invalid JSON"
_SECOND = "there is more after the JSON object; put each run in its own file"
_MORE = Pattern(r"[ \t\r]{0,200}([]{},:\"0-9]|\[\s{0,20}[\[{\"0-9])")
"""What continues an object or list on its last line, unlike a prompt or other words."""
_PART = Pattern(r"(?:\"\s*:|[\[,])\Z")
"""Before an object that is a part of one that begins elsewhere."""
_MOST_FAILED = 50
_JSON_LINE = Pattern(r"^[ \t]{0,200}([{}\]]|\[\s*$|\"[^\"\n]{0,200}\"\s*:)", re.MULTILINE)
"""A line of another object, or of a part of one."""

_MOST = 1e24
_DEEPEST = 64


class JsonObject(Frozen):
    """An object of a result file of `tool`; `where` says in errors which one ("": the whole file)."""

    tool: str
    where: str
    values: Mapping[str, Any]

    def error(self, why: str) -> ParseError:
        """The error that something in it is wrong."""
        return ParseError(self.tool, None, "", f"{self.where}: {why}" if self.where else why)

    def named(self, where: str) -> JsonObject:
        """The same, as errors call it from here on."""
        return JsonObject(self.tool, where, self.values)

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def get(self, key: str) -> Any:
        """What is under a key, as it is, or None."""
        return self.values.get(key)

    def object(self, key: str) -> JsonObject:
        """The object under a key. Raises ParseError if there is none."""
        value = self.values.get(key)
        if not isinstance(value, dict):
            raise ParseError(self.tool, None, "", f"{self.where or 'the file'} has no object {key!r}")
        return JsonObject(self.tool, f"{self.where}, {key}" if self.where else key, value)

    def objects(self, key: str) -> list[JsonObject]:
        """The list of objects under a key. Raises ParseError if there is none, or it is empty."""
        value = self.values.get(key)
        if not isinstance(value, list) or not value or not all(isinstance(entry, dict) for entry in value):
            raise ParseError(self.tool, None, "", f"{self.where or 'the file'} has no list of objects {key!r}")
        return [JsonObject(self.tool, self.where, entry) for entry in value]

    def number(self, key: str) -> float:
        """The number under a key, zero or more. Raises ParseError if there is none."""
        value = self.values.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(f"{key} is {_short(value)}, which is not a number")
        if not 0 <= value < _MOST or not math.isfinite(value):
            raise self.error(f"{key} is {_short(value)}, which is impossible")
        return float(value)

    def text(self, key: str) -> str | None:
        """The text under a key as one printable line, or None."""
        value = self.values.get(key)
        if not isinstance(value, str):
            return None
        return "".join(character if character.isprintable() else "?" for character in value.strip())[:1000] or None

    def whole(self, key: str) -> int | None:
        """The whole number, zero or more, under a key (fio writes options as text), or None."""
        value = self.values.get(key)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 15:
            return int(value)
        return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**15 else None


def read_object(data: bytes, tool: str, *needed: str, opening: str = "{") -> JsonObject:
    """The only JSON object of a file that has the keys `needed`. Other text beside it is skipped: warnings and prompts,
    and objects without these keys, such as the lines of a structured log. With `opening` "[", it is the only element of
    a list.

    Raises ParseError if there is none or a second one, if a part of one follows, or if it has NaN or a key twice with
    different values (except of text).
    """
    text = read_text(data, tool)
    _refuse_depth(text, tool)
    found = list(_objects(text, tool, needed, opening))
    own = [one for one in found if all(key in one.values for key in needed)] or found
    if not own or (len(found) > 1 and not all(key in own[0].values for key in needed)):
        keys = f" with {' and '.join(f'`{key}`' for key in needed)}" if needed else ""
        raise ParseError(tool, None, text[:200], f"no JSON object{keys} in the file")
    after = [one.start for one in own[1:2]]
    after += [
        at.start(1) for at in _JSON_LINE.finditer(text, own[0].end) if not any(one.has(at.start(1)) for one in found)
    ]
    if after:
        at = min(after)
        raise ParseError(tool, text.count("\n", 0, at) + 1, _line_at(text, at), _SECOND)
    return JsonObject(tool, "", own[0].values)


def is_json(data: bytes, key: str) -> bool:
    """Whether a text is a JSON object, or has one with this key beside other text."""
    if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{":
        return True
    return f'"{key}"'.encode() in data and re.search(rb"^[^\n{]{0,400}\{", data, re.MULTILINE) is not None


class _Found(Frozen):
    """An object and where it is in the text."""

    start: int
    end: int
    values: Mapping[str, Any]

    def has(self, at: int) -> bool:
        """Whether a position is in it."""
        return self.start <= at < self.end


def _objects(text: str, tool: str, needed: Sequence[str], opening: str) -> Iterator[_Found]:
    """The objects that begin a line; with keys that are `needed` also those that are indented, or behind other text on
    one line. Raises ParseError for one that is damaged or cut off."""
    decoder = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_no_constant)
    end, failed = 0, 0
    for line in _LINE_WITH[opening].finditer(text):
        start, before = line.start(2), line[1].rstrip()
        begins = start == line.start() and line[2] == opening
        is_part = _PART.search(before) is not None
        if start < end or failed > _MOST_FAILED or is_part or not (begins or needed):
            continue
        try:
            values, at = decoder.raw_decode(text[: line.end()] if before else text, start)
        except json.JSONDecodeError as error:
            failed += 1
            if begins and (error.pos > line.end() or not needed or any(f'"{key}"' in line[0] for key in needed)):
                number = text.count("\n", 0, error.pos) + 1
                raise ParseError(tool, number, _line_at(text, error.pos), f"{INVALID_JSON}: {error.msg}") from error
            continue
        except (ValueError, RecursionError) as error:
            raise ParseError(tool, None, "", f"{INVALID_JSON}: {error}") from error
        if (more := _MORE.match(text, at)) is not None:
            number = text.count("\n", 0, at) + 1
            raise ParseError(tool, number, _line_at(text, more.start(1)), _SECOND)
        if isinstance(values, list) and len(values) != 1:
            why = f"a list of {len(values)} runs, expected one; put each run in its own file"
            raise ParseError(tool, None, "", why)
        one, end = values[0] if isinstance(values, list) else values, at
        if isinstance(one, dict):
            yield _Found(start, end, one)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found and found[key] != value and not isinstance(value, str):
            raise ValueError(f"the key {key[:80]!r} is in one object twice")
        found[key] = value
    return found


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not valid JSON")


def _refuse_depth(text: str, tool: str) -> None:
    """Refuse brackets nested deeper than in any result file. Those inside strings count too: they are few."""
    depth = 0
    for character in filter("{}[]".__contains__, text):
        depth += 1 if character in "{[" else -1
        if depth > _DEEPEST:
            raise ParseError(tool, None, "", f"nested deeper than {_DEEPEST} levels")


def _line_at(text: str, position: int) -> str:
    begin = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    return text[begin : len(text) if end < 0 else end][:500]


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:60] + "..."
