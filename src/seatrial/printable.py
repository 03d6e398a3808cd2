"""The one filter for text from outside: what programs, files, hosts and users of other machines say may contain control
sequences that act on a terminal, and characters that change the order or hide parts of what is read.

Everything that Python does not call printable goes: controls (C0, C1), the ones that direct text (U+202A to U+202E,
U+2066 to U+2069), those of no width, line separators, and halves of surrogate pairs.
"""

from __future__ import annotations

import re

SPACES = "\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{THIN SPACE}"
"""Spaces of typography: not printable for Python, harmless, and in our own texts."""

_SEQUENCE = (
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|[]PX^_][^\x07\x1b\r\n]{0,1000}(?:\x07|\x1b\\)"
    r"|[ -/]{1,8}[0-~]|[0-OQ-WYZ\\a-~])"
)
"""ECMA-48, sections 5.3 to 5.6: colours, movements, titles and other strings, character sets, single functions."""
_SEQUENCES, _SEQUENCES_OF_BYTES = re.compile(_SEQUENCE), re.compile(_SEQUENCE.encode())
_OURS = re.compile(r"(\x1b\[(?:[0-9;]*m|\?25[hl]|[0-9]*[AK])|\r)")
"""What colours and the bar of progress need."""


def without_sequences(text: str) -> str:
    """The text without control sequences of a terminal."""
    return _SEQUENCES.sub("", text) if "\x1b" in text else text


def without_sequences_of_bytes(text: bytes) -> bytes:
    """The same for a text in ASCII or UTF-8."""
    return _SEQUENCES_OF_BYTES.sub(b"", text) if b"\x1b" in text else text


def printable(text: str, kept: str = "", instead: str = "?") -> str:
    """The text without control sequences, and with `instead` for each other character that cannot be printed, but for
    those in `kept`."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in kept else instead for one in without_sequences(text))


def shown(text: str, *, is_terminal: bool) -> str:
    """The text as it is written to a standard stream, whoever made it. On a terminal, colours stay."""
    kept = f"\n\t{SPACES}"
    if not is_terminal:
        return printable(text, kept)
    pieces = _OURS.split(text)
    return "".join(piece if k % 2 else printable(piece, kept) for k, piece in enumerate(pieces))
