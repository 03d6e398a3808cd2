"""What applications share that are libraries of Python: the result that their script writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from seatrial.errors import ProtocolError
from seatrial.model.benchmark.program import ProgramRecord


def read_result(library: str, data: bytes, record: Callable[[dict[str, Any]], ProgramRecord]) -> ProgramRecord:
    """The record of what a script wrote; not `ended` if it wrote nothing. Raises ProtocolError for other content."""
    if not data.strip():
        return ProgramRecord()
    try:
        return record(json.loads(data))
    except (ValueError, KeyError, TypeError, IndexError, ZeroDivisionError, AttributeError) as error:
        raise ProtocolError(f"cannot read the result of {library}'s script: {error!r}") from error
