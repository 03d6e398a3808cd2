"""Pasted output of a tool: shared functions that find and clean the lines before a reader parses its own format.

A dump may be inside terminal output, a Markdown fence or prose, below a prompt, behind `# ` or `> ` or the name of a
node. A reader finds where its format begins, parses from there and refuses damaged text with a `ParseError`, which has
the number and complete text of the first wrong line. It never guesses.

Labels that parallel shells, launchers and logs put before each line of output.

pdsh and clush write "node01: ", srun -l "0: " (right-aligned), mpirun --tag-output "[1,0]<stdout>:", logs a time and a
level. A label counts only if several consecutive lines have it, so "NIC0: mlx5_0" or a line of prose stays unchanged.
Mixed lines of several nodes are sorted by node.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from seatrial.errors import ParseError, UsageError
from seatrial.model.frozen import Frozen

_TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?|\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_LABEL = re.compile(
    rf"(?P<time>{_TIME}|\[(?:{_TIME})\])(?=[ \t])"
    r"|(?P<level>DEBUG|INFO|WARN(?:ING)?|ERROR|stdout|stderr)(?=[ \t:|])[:|]?"
    r"|(?P<rank>\[[A-Za-z0-9_.\-]{1,80}(?:,[0-9]{1,9}){0,3}\](?:<std(?:out|err)>:?|:|(?=[ \t])))"
    r"|(?P<host>[A-Za-z0-9][A-Za-z0-9_.\-]{0,80}(?:,[0-9]{1,9})?:)(?=[ \t]|\Z)",
    re.ASCII,
)
_PADDED_RANK = re.compile(r" {1,7}(?=\d{1,7}:(?: |\Z))")
_NO_HOST = frozenset({"Capabilities:"})  # lspci -v without its indentation
_MAX_LABELS = 4
_MIN_LINES = 3

_Keys = tuple[str, ...]
"""The parts of a label that are equal on all lines: the node or rank itself; only the presence of a time."""

_Labels = list[tuple[_Keys, int]]
"""The first label of a line, the first two, ..., each with the start of the text after them."""


def labels_of(text: str) -> _Labels:
    """The possible labels at the beginning of a line. The name of a node is the last one."""
    if not text or not (text[0].isalnum() or text[0] in " ["):
        return []  # most lines: blank, or indented by a tab
    padding = _PADDED_RANK.match(text)
    at = padding.end() if padding else 0
    found: _Labels = []
    keys: _Keys = ()
    while len(found) < _MAX_LABELS:
        match = _LABEL.match(text, at)
        if match is None or match[0] in _NO_HOST:
            break
        kind = match.lastgroup or ""
        keys = (*keys, kind if kind in ("time", "level") else match[0])
        found.append((keys, match.end()))
        at = match.end() + text.startswith(" ", match.end())
        if kind == "host":
            break
    return found


def labelled_lines(texts: Sequence[str]) -> list[tuple[int, int]]:
    """Index and text start of every line, in reading order.

    The start is 0 for a line without a label. The order is unchanged except for mixed lines of several nodes.
    """
    order: list[tuple[int, int]] = []
    run: list[tuple[int, _Labels]] = []
    for index, text in enumerate(texts):
        labels = labels_of(text)
        if labels:
            run.append((index, labels))
            continue
        if run:
            order += _one_run(run, texts)
            run = []
        order.append((index, 0))
    return order + _one_run(run, texts)


def _one_run(run: Sequence[tuple[int, _Labels]], texts: Sequence[str]) -> list[tuple[int, int]]:
    """Consecutive lines that may begin with labels, sorted by node if they do."""
    counts = Counter(keys for _, labels in run for keys, _ in labels)
    by_keys: dict[_Keys, list[tuple[int, int]]] = {}
    for index, labels in run:
        keys, at = next((one for one in reversed(labels) if counts[one[0]] >= _MIN_LINES), ((), 0))
        by_keys.setdefault(keys, []).append((index, at))
    order: list[tuple[int, int]] = []
    for keys, lines in by_keys.items():
        # The space after a label belongs to it only if every line has it: lines of a tree begin with spaces.
        is_spaced = bool(keys) and all(texts[index][at : at + 1] in ("", " ") for index, at in lines)
        order += [(index, at + is_spaced) for index, at in lines]
    return order


MAX_BYTES = 64 << 20
"""Larger texts are refused: `lspci -vv` of a machine with a thousand functions has 4 MB."""

MAX_LINES = 2_000_000

_CONTROL_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[@-Z\\-_])")
"""ECMA-48 control sequences: nvidia-smi underlines its header, terminals set titles."""

_LOST_ESCAPE = re.compile(r"(?:\ufffd|\u241b|\^\[|\\(?:033|x1b|u001b|e))?\[[0-9;]{0,11}m")
"""The same after a log or web form removed the escape character, replaced it by a sign or wrote it out."""

_SPACES = re.compile("&nbsp;|[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
"""Spaces of web pages and word processors."""

_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")

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
    if len(data) > MAX_BYTES:
        raise ParseError(tool, None, "", f"larger than {MAX_BYTES >> 20} MiB")
    if data[:2] == b"\x1f\x8b":
        raise ParseError(tool, None, "", "the file is compressed with gzip: give what `zcat` prints of it")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):  # written by Windows shells
        text = data.decode("utf-16", "replace")
    else:
        text = data.decode("utf-8-sig", "replace")
    raws = re.split(r"\r\n|\n|\r", text, maxsplit=MAX_LINES)
    if len(raws) > MAX_LINES:
        raise ParseError(tool, MAX_LINES + 1, raws[-1][:200], f"more than {MAX_LINES} lines")
    unended = len(raws)
    if raws[-1] == "":
        raws.pop()
    texts = [_plain(raw) for raw in raws]
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
    return _INVISIBLE.sub("", _SPACES.sub(" ", _LOST_ESCAPE.sub("", _CONTROL_SEQUENCE.sub("", raw))))


def is_fence(text: str) -> bool:
    """Whether a line opens or closes a Markdown code block."""
    return text.lstrip(" \t>").startswith(("```", "~~~"))


def prefix_of(text: str) -> str:
    """The prefix of a line: "# ", "> ", "# # ", or "" (white space alone is no prefix)."""
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
