"""The parameter that chooses the Python with an application's library."""

from __future__ import annotations

from seatrial.model.parameter import Parameter, ParameterKind
from seatrial.model.python_script import AUTO, PYTHON


def interpreter(library: str) -> Parameter:
    """The path of an interpreter; `auto` is the first on PATH that can import the library."""
    return Parameter(
        PYTHON, ParameterKind.TEXT, AUTO, f"the interpreter; auto: the first on PATH with {library}", words=(AUTO,)
    )
