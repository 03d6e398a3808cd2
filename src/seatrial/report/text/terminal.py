"""Text on a terminal: colours where there is one, and names from outside that cannot steer it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Style:
    """ANSI codes of what stands out; empty ones where there is no terminal."""

    heading: str = ""
    error: str = ""
    warning: str = ""
    faint: str = ""
    near: str = ""
    direct: str = ""
    end: str = ""


PLAIN = Style()
COLOURS = Style(
    heading="\x1b[1m",
    error="\x1b[1;31m",
    warning="\x1b[33m",
    faint="\x1b[2m",
    near="\x1b[36m",
    direct="\x1b[32m",
    end="\x1b[0m",
)


def clean(text: str) -> str:
    """`text` with anything that is not printable as "?", so that a product name cannot carry escape codes."""
    return "".join(character if character.isprintable() else "?" for character in text)
