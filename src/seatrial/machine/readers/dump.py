"""Text of a tool as people paste it: what a reader of such text needs before it can look for its own format.

A dump stands in a terminal's output, in a Markdown fence, under a prompt, behind `# ` or `> `, behind the name of a
node; prose stands round it. A reader looks for where its format begins, reads from there, and refuses what is damaged:
a `ParseError` with the number and whole text of the first wrong line, as they stand in the file. It never guesses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from seatrial.errors import ParseError, UsageError
from seatrial.machine.readers.line_labels import labelled_lines

MAX_BYTES = 64 << 20
"""The longest text that is read: `lspci -vv` of a machine with a thousand functions has 4 MB."""

MAX_LINES = 2_000_000

_CONTROL_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[@-Z\\-_])")
"""ECMA-48 control sequences: nvidia-smi underlines its header, terminals set titles."""

_LOST_ESCAPE = re.compile(r"(?:\ufffd|\u241b|\^\[|\\(?:033|x1b|u001b|e))?\[[0-9;]{0,11}m")
"""The same where a log or web form took the escape character away, put a sign for it, or wrote it out."""

_SPACES = re.compile("&nbsp;|[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
"""Spaces of web pages and word processors that stand for a plain one."""

_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")

_PREFIX = re.compile(r"[ \t]{0,8}(?:(?:[#>|]|&gt;)[ \t]?)+")


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its number in the file (from 1), its text without control sequences and labels, and as it stands there.

    `is_ended` is False only for the last line of a file that has no line break at its end: it may have been cut off.
    """

    number: int
    text: str
    raw: str
    is_ended: bool = True

    @property
    def is_blank(self) -> bool:
        """Whether nothing but white space stands on it."""
        return not self.text.strip()

    def error(self, tool: str, why: str) -> ParseError:
        """The error that this is the first wrong line of a dump of `tool`."""
        return ParseError(tool, self.number, self.raw, why)


def read_lines(data: bytes, tool: str) -> tuple[Line, ...]:
    """All lines of a text; where those of several nodes are mixed, node by node.

    Raises ParseError if it is too long, or no text.
    """
    if len(data) > MAX_BYTES:
        raise ParseError(tool, None, "", f"larger than {MAX_BYTES >> 20} MiB")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):  # what Windows' shells write
        text = data.decode("utf-16", "replace")
    else:
        text = data.decode("utf-8-sig", "replace")
    raws = re.split(r"\r\n|\n|\r", text, maxsplit=MAX_LINES)
    if len(raws) > MAX_LINES:
        raise ParseError(tool, MAX_LINES + 1, raws[-1][:200], f"more than {MAX_LINES} lines")
    if raws[-1] == "":
        raws.pop()
        unended = 0
    else:
        unended = len(raws)
    texts = [_plain(raw) for raw in raws]
    prefixes = [len(prefix_of(text)) for text in texts]
    labelled = labelled_lines([text[at:] for text, at in zip(texts, prefixes, strict=True)])
    lines = tuple(
        Line(index + 1, _without_label(texts[index], prefixes[index], at), raws[index], index + 1 != unended)
        for index, at in labelled
    )
    binary = next((line for line in lines if "\0" in line.text), None)
    if binary is not None:
        raise binary.error(tool, "a zero byte: this is no text")
    return lines


def _plain(raw: str) -> str:
    """A line as a terminal shows it, with plain spaces."""
    if raw.isascii() and "\x1b" not in raw and "&nbsp;" not in raw and "[" not in raw:
        return raw
    text = _LOST_ESCAPE.sub("", _CONTROL_SEQUENCE.sub("", raw))
    return _INVISIBLE.sub("", _SPACES.sub(" ", text))


def _without_label(text: str, prefix: int, label: int) -> str:
    return text if label == 0 else text[:prefix] + text[prefix + label :]


def is_fence(text: str) -> bool:
    """Whether a line opens or closes a Markdown code block."""
    return text.lstrip(" \t>").startswith(("```", "~~~"))


def prefix_of(text: str) -> str:
    """What stands before the dump on a line: "# ", "> ", "# # ", or "" (which leaves white space alone)."""
    if text[:1] not in " \t#>|&":
        return ""
    match = _PREFIX.match(text)
    return match[0] if match else ""


def without_prefix(text: str) -> str:
    """The line without `# ` and `> ` before it; its own indentation stays."""
    return text[len(prefix_of(text)) :]


T = TypeVar("T")

_MAX_NAMED = 20
"""Lines that a message names at most."""


def choose(found: Sequence[T], line_of: Callable[[T], int], pick: int | None, tool: str, noun: str) -> T:
    """The one dump of a file, or the `pick`-th (from 1).

    `line_of` gives the number of a dump's first line, `noun` what a dump is called ("matrix"). Raises ParseError if
    there is none; UsageError where there are several and none was picked (naming their lines), or fewer than `pick`.
    """
    if not found:
        raise ParseError(tool, None, "", f"there is no {noun} in it")
    lines = [line_of(dump) for dump in found]
    if pick is None:
        if len(found) == 1:
            return found[0]
        named = ", ".join(f"line {line}" for line in lines[: min(_MAX_NAMED, len(lines) - 1)])
        named += f" and line {lines[-1]}" if len(lines) <= _MAX_NAMED + 1 else ", ..."
        raise UsageError(
            f"{tool}: the file holds {len(found)} of them (each a {noun}): they begin on {named}",
            f"name the one that is meant with FILE#1 .. FILE#{len(found)}",
        )
    if not 1 <= pick <= len(found):
        where = ", ".join(str(line) for line in lines[:_MAX_NAMED]) + (", ..." if len(lines) > _MAX_NAMED else "")
        raise UsageError(f"{tool}: there is no {noun} {pick}: the file holds {len(found)} (line {where})")
    return found[pick - 1]
