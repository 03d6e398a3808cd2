"""Regular expressions that are compiled when they are first used: every command loads all readers, and few read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property


class Pattern:
    """The pattern of a line, as `re` has it."""

    def __init__(self, text: str, flags: re.RegexFlag = re.NOFLAG) -> None:
        self.text = text
        self._flags = flags

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """What it is compiled to."""
        return re.compile(self.text, self._flags)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """The match of the whole text."""
        return self.compiled.fullmatch(text)

    def match(self, text: str, start: int = 0) -> re.Match[str] | None:
        """The match at `start`."""
        return self.compiled.match(text, start)

    def search(self, text: str, start: int = 0) -> re.Match[str] | None:
        """The first match."""
        return self.compiled.search(text, start)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """All matches, one after another."""
        return self.compiled.finditer(text)

    def sub(self, replacement: str, text: str) -> str:
        """The text with its matches replaced."""
        return self.compiled.sub(replacement, text)
