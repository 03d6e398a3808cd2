"""The probe `mpi`: the MPI profiler beside a repeat. Loaded only where a point is profiled."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from seatrial.engine.ready import Ready
from seatrial.errors import ParseError
from seatrial.profiler.capture.functions import function_names
from seatrial.profiler.capture.run import ProbeSettings, node_folder, on_node, profiled_variables, profiler
from seatrial.profiler.merge.recorded import mpi_summary
from seatrial.profiler.tables.process_table import ProcessTable, read_table

_TABLES = "mpi"
_NOTHING = ProbeSettings()


def mpi_variables(ready: Ready, directory: Path) -> dict[str, str]:
    """The variables that the profiler adds to a repeat. Raises BuildError."""
    target = directory / _TABLES
    variables = {**os.environ, **{name: value for name, value in ready.variables if value is not None}}
    return profiled_variables(profiler(), target, node_folder(target), _NOTHING, variables)


def mpi_folder(directory: Path) -> AbstractContextManager[object]:
    """The folder of the tables, and what the profiler needs of this node, for as long as a repeat runs. Raises OSError,
    StoreError."""
    target = directory / _TABLES
    target.mkdir(exist_ok=True)
    return on_node(node_folder(target), target)


def mpi_report(directory: Path) -> dict[str, Any] | None:
    """The sums over the ranks; None if there is none, or one cannot be read."""
    tables: list[ProcessTable] = []
    names = function_names()
    for path in sorted((directory / _TABLES).glob("*.mpi")):
        try:
            tables.append(read_table(path, len(names)))
        except (ParseError, OSError):
            return None  # a sum without this rank would look like less work
    return mpi_summary(tables, names) if tables else None
