"""JSON of other tools: one object, no NaN, no duplicate keys except of text; the accessors report what is wrong."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from seatrial.applications.reading.text import Pattern, read_text
from seatrial.errors import ParseError
from seatrial.model.frozen import Frozen

_MORE = Pattern(r"[ \t\r]{0,200}([^ \t\r\n])")
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


def read_object(data: bytes, tool: str, *, opening: str = "{") -> JsonObject:
    """The only JSON object of a file. Lines before and after it (warnings that the tool
    printed, a prompt) are skipped. With `opening` "[",
    it is the only element of a list.

    Raises ParseError if there is no object, another one or a part of one follows it, or it has NaN or a key twice with
    different values (except of text).
    """
    text = read_text(data, tool)
    start = 0 if text.startswith(opening) else text.find(f"\n{opening}") + 1
    if not text.startswith(opening, start):
        raise ParseError(tool, None, text[:200], "no JSON object in the file")
    _refuse_depth(text, tool)
    try:
        found, end = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_no_constant).raw_decode(text, start)
    except json.JSONDecodeError as error:
        line = text.count("\n", 0, error.pos) + 1
        raise ParseError(tool, line, _line_at(text, error.pos), f"invalid JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise ParseError(tool, None, "", f"invalid JSON: {error}") from error
    if (more := _MORE.match(text, end) or _JSON_LINE.search(text, end)) is not None:
        at = more.start(1)
        why = "there is more after the JSON object; put each run in its own file"
        raise ParseError(tool, text.count("\n", 0, at) + 1, _line_at(text, at), why)
    if isinstance(found, list) and len(found) == 1:
        found = found[0]
    elif isinstance(found, list):
        raise ParseError(tool, None, "", f"a list of {len(found)} runs, expected one; put each run in its own file")
    if not isinstance(found, dict):
        raise ParseError(tool, None, "", "no JSON object in the file")
    return JsonObject(tool, "", found)


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
