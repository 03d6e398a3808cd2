"""What applications share that are libraries of Python: the interpreter, and the result that their script writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from seatrial.errors import ProtocolError
from seatrial.model.benchmark.parameter import Parameter
from seatrial.model.benchmark.program import ProgramRecord
from seatrial.model.benchmark.python_script import AUTO, PYTHON


def interpreter(library: str) -> Parameter:
    """The path of an interpreter; `auto` is the first on PATH that can import the library."""
    return Parameter.text(PYTHON, AUTO, f"the interpreter; auto: the first on PATH with {library}", (AUTO,))


def read_result(library: str, data: bytes, record: Callable[[dict[str, Any]], ProgramRecord]) -> ProgramRecord:
    """The record of what a script wrote; not `ended` if it wrote nothing. Raises ProtocolError for other content."""
    if not data.strip():
        return ProgramRecord()
    try:
        return record(json.loads(data))
    except (ValueError, KeyError, TypeError, IndexError, ZeroDivisionError, AttributeError) as error:
        raise ProtocolError(f"cannot read the result of {library}'s script: {error!r}") from error
