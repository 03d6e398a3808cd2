"""What can be set in an MPI library, as the library itself tells it through MPI's tool information interface."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from seatrial.environments.compiler import ask
from seatrial.errors import BuildError
from seatrial.model.mpi import Mpi

_SCRIPT = Path(__file__).with_name("ask_control_variables.py")


@dataclass(frozen=True, slots=True)
class ControlVariable:
    """`items` are (value, name) of an enumeration's members, () where it is none; `text` is the library's own help."""

    items: tuple[tuple[int, str], ...]
    text: str


@dataclass(frozen=True, slots=True)
class ControlVariables:
    """All of a library by name, and what the library says of itself (MPI_Get_library_version)."""

    version: str
    variables: Mapping[str, ControlVariable]

    def __contains__(self, name: str) -> bool:
        return name in self.variables

    def have(self, prefix: str) -> bool:
        """Whether any begins so: a component of Open MPI that is not there has none."""
        return any(name.startswith(prefix) for name in self.variables)


def control_variables(mpi: Mpi) -> ControlVariables:
    """Those of a library, asked once in a process of its own. Raises BuildError where it cannot be asked."""
    return _asked(mpi.library, mpi.variables)


@cache
def _asked(library: Path, variables: tuple[tuple[str, str], ...]) -> ControlVariables:
    # What the user sets now is no matter: files and variables of settings would be read, and some end the process.
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_MCA_", "MPIR_CVAR_"))}
    answer = ask([sys.executable, "-I", str(_SCRIPT), str(library)], {**clean, **dict(variables)})
    try:
        told = json.loads(answer.stdout.rpartition("\n{")[2] if "\n{" in answer.stdout else answer.stdout)
        return ControlVariables(
            str(told["version"]),
            {
                str(name): ControlVariable(
                    tuple((int(value), str(item)) for value, item in entry["items"]), str(entry["text"])
                )
                for name, entry in told["variables"].items()
            },
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BuildError(f"{library} did not list its control variables: {error!r}") from error
