"""The settings of an MPI library, as it lists them through MPI's tool information interface."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from seatrial.environments.remembered import ask_once
from seatrial.errors import BuildError
from seatrial.model.frozen import Frozen
from seatrial.model.mpi import Mpi

_SCRIPT = Path(__file__).with_name("ask_control_variables.py")


class ControlVariable(Frozen):
    """`items` are (value, name) of an enumeration's members, () for other types; `text` is the library's help text."""

    items: tuple[tuple[int, str], ...]
    text: str


class ControlVariables(Frozen):
    """The variables of a library by name, and its version text (MPI_Get_library_version)."""

    version: str
    variables: Mapping[str, ControlVariable]

    def __contains__(self, name: str) -> bool:
        return name in self.variables

    def have(self, prefix: str) -> bool:
        """Whether any name begins with the prefix: an Open MPI component that is not installed has none."""
        return any(name.startswith(prefix) for name in self.variables)


def control_variables(mpi: Mpi) -> ControlVariables:
    """The variables of a library, read once in a separate process. Raises BuildError if that fails."""
    return _read(mpi.library, mpi.variables)


@cache
def _read(library: Path, variables: tuple[tuple[str, str], ...]) -> ControlVariables:
    # The user's settings must not interfere: some of them end the process.
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_MCA_", "MPIR_CVAR_"))}
    words = [sys.executable, "-I", str(_SCRIPT), str(library)]
    answer = ask_once(words, {**clean, **dict(variables)}, files=(_SCRIPT, library))
    try:
        document = json.loads(answer.stdout.rpartition("\n{")[2] if "\n{" in answer.stdout else answer.stdout)
        return ControlVariables(
            str(document["version"]),
            {
                str(name): ControlVariable(
                    tuple((int(value), str(item)) for value, item in entry["items"]), str(entry["text"])
                )
                for name, entry in document["variables"].items()
            },
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BuildError(f"{library} did not list its control variables: {error!r}") from error
