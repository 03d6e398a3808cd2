"""Pasted output of a tool: shared functions that find and clean the lines before a reader parses its own format.

A dump may be inside terminal output, a Markdown fence or prose, below a prompt, behind `# ` or `> ` or the name of a
node. A reader finds where its format begins, parses from there and refuses damaged text with a `ParseError`, which has
the number and complete text of the first wrong line. It never guesses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from seatrial.errors import ParseError, UsageError
from seatrial.model.frozen import Frozen
from seatrial.model.pasted import labelled_lines, unpacked
from seatrial.printable import without_sequences

MAX_BYTES = 64 << 20
"""Larger texts are refused: `lspci -vv` of a machine with a thousand functions has 4 MB."""

MAX_LINES = 2_000_000

_LOST_ESCAPE = re.compile(r"(?:\ufffd|\u241b|\^\[|\\(?:033|x1b|u001b|e))?\[[0-9;]{0,11}m")
"""A control sequence (nvidia-smi underlines its header) after a log or web form
removed the escape character, replaced it by a sign or wrote it out."""

_SPACES = re.compile("&nbsp;|[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
"""Spaces of web pages and word processors."""

_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")

_QUOTE = re.compile(r"[ ]{0,3}(?:(?:>|&gt;)[ ]?)+")
_PREFIX = re.compile(r"[ \t]{0,8}(?:(?:[#>|]|&gt;)[ \t]?)+")


class Line(Frozen):
    """One line: its number in the file (from 1), its text without control sequences and labels, and its raw text.

    `is_ended` is False for the last line of a file without a line break at its end, and for a wrapped line whose rest
    may be missing: it may have been cut off.
    """

    number: int
    text: str
    raw: str
    is_ended: bool = True

    @property
    def is_blank(self) -> bool:
        """Whether it is only white space."""
        return not self.text.strip()

    def error(self, tool: str, why: str) -> ParseError:
        """The error for this line, the first wrong one in a dump of `tool`."""
        return ParseError(tool, self.number, self.raw, why)


def read_lines(data: bytes, tool: str) -> tuple[Line, ...]:
    """All lines of a text; mixed lines of several nodes are sorted by node.

    Raises ParseError if it is too long, or binary.
    """
    try:
        text = unpacked(data, MAX_BYTES).decode("utf-8-sig", "replace")
    except ValueError as error:
        raise ParseError(tool, None, "", str(error)) from error
    raws = re.split(r"\r\n|\n|\r", text, maxsplit=MAX_LINES)
    if len(raws) > MAX_LINES:
        raise ParseError(tool, MAX_LINES + 1, raws[-1][:200], f"more than {MAX_LINES} lines")
    unended = len(raws)
    if raws[-1] == "":
        raws.pop()
    texts = _outer([_plain(raw) for raw in raws])
    prefixes = [len(prefix_of(text)) for text in texts]
    labelled = labelled_lines([text[at:] for text, at in zip(texts, prefixes, strict=True)])
    lines = []
    for index, at in labelled:
        text, prefix = texts[index], prefixes[index]
        text = text if at == 0 else text[:prefix] + text[prefix + at :]
        lines.append(Line(index + 1, text, raws[index], index + 1 != unended))
        if "\0" in text:
            raise lines[-1].error(tool, "a zero byte: this is not text")
    return tuple(lines)


def _plain(raw: str) -> str:
    """A line as a terminal shows it, with plain spaces."""
    if raw.isascii() and "\x1b" not in raw and "&nbsp;" not in raw and "[" not in raw:
        return raw
    return _INVISIBLE.sub("", _SPACES.sub(" ", _LOST_ESCAPE.sub("", without_sequences(raw))))


def _outer(texts: list[str]) -> list[str]:
    """The lines without the marks of a quote and the indentation that all of them have."""
    quotes = [_QUOTE.match(text) for text in texts if text.strip()]
    depths = {quote[0].replace("&gt;", ">").count(">") if quote else 0 for quote in quotes}
    if len(quotes) > 1 and len(depths) == 1 and depths != {0}:
        texts = [text[match.end() :] if (match := _QUOTE.match(text)) else text for text in texts]
    indents = [len(text) - len(text.lstrip(" ")) for text in texts if text.strip()]
    indent = min(indents, default=0) if len(indents) > 1 else 0
    return [text[indent:] for text in texts] if indent else texts


def is_fence(text: str) -> bool:
    """Whether a line opens or closes a Markdown code block."""
    return text.lstrip(" \t>").startswith(("```", "~~~"))


def prefix_of(text: str) -> str:
    """The prefix of a line: "# ", "> ", "# # ", or "" (white space alone is not a prefix)."""
    if text[:1] not in " \t#>|&":
        return ""
    match = _PREFIX.match(text)
    return match[0] if match else ""


def without_prefix(text: str) -> str:
    """The line without leading `# ` and `> `; its indentation stays."""
    return text[len(prefix_of(text)) :]


def refuse_pick(pick: int | None, named: str) -> None:
    """Raise UsageError if a dump other than the first is wanted of a format that has only one in a file."""
    if pick not in (None, 1):
        raise UsageError(f"{named}: there is no dump {pick}: the file is one dump")


T = TypeVar("T")

_MAX_NAMED = 20  # The most lines that a message names.


def choose(found: Sequence[T], line_of: Callable[[T], int], pick: int | None, tool: str, noun: str) -> T:
    """The only dump of a file, or the `pick`-th (from 1).

    `line_of` returns the number of a dump's first line; `noun` is what a dump is called ("matrix"). Raises ParseError
    if there is none; UsageError for several dumps without `pick` (it names their lines), or fewer than `pick`.
    """
    if not found:
        raise ParseError(tool, None, "", f"no {noun} in the file")
    lines = [line_of(dump) for dump in found]
    if pick is None:
        if len(found) == 1:
            return found[0]
        named = ", ".join(f"line {line}" for line in lines[: min(_MAX_NAMED, len(lines) - 1)])
        named += f" and line {lines[-1]}" if len(lines) <= _MAX_NAMED + 1 else ", ..."
        raise UsageError(
            f"{tool}: the file has {len(found)} dumps (each a {noun}): they begin on {named}",
            f"select one with FILE#1 .. FILE#{len(found)}",
        )
    if not 1 <= pick <= len(found):
        where = ", ".join(str(line) for line in lines[:_MAX_NAMED]) + (", ..." if len(lines) > _MAX_NAMED else "")
        raise UsageError(f"{tool}: there is no {noun} {pick}: the file has {len(found)} (line {where})")
    return found[pick - 1]
