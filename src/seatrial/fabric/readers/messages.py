"""What the tools of infiniband-diags write to standard error, where that was saved with their output.

A query that got no answer means that a part of the fabric was not seen: the tools go on, print what they have, and
often end with status 0.
"""

from __future__ import annotations

import re

from msgspec import Struct

from seatrial.fabric.parts import Source

_MESSAGE = re.compile(r"(?:ib(?:warn|error|panic|debug): |[\w./+~-]{0,200}\w\.c:\d{1,6};? |DR path slid \d)", re.ASCII)
_FAILURE = re.compile(r"bad status|timed out|fail|can't|cannot|unable|iberror|ibpanic", re.IGNORECASE)


class Messages(Struct):
    """The messages in a dump."""

    failures: int = 0
    first: Source | None = None

    def take(self, text: str, source: Source) -> bool:
        """Whether a line is a message of a tool; failures are counted."""
        if _MESSAGE.match(text) is None:
            return False
        if _FAILURE.search(text):
            self.failures += 1
            self.first = self.first or source
        return True

    @property
    def missing(self) -> str:
        """Why parts of the fabric may be missing; "" if there is no such message."""
        if self.first is None:
            return ""
        what = "a failed query" if self.failures == 1 else f"{self.failures} failed queries, the first"
        return f"the tool reports {what} on line {self.first.line}: parts of the fabric may be missing"
