"""The probes that a study runs beside its repeats: the MPI profile and the program's I/O."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from seatrial.engine.ready import Ready
from seatrial.errors import ParseError
from seatrial.launch.local import Completed
from seatrial.profiler.capture.functions import function_names
from seatrial.profiler.capture.node_folder import NodeFolder, node_folder
from seatrial.profiler.capture.run import ProbeSettings, profiled_variables, profiler
from seatrial.profiler.tables.process_table import ProcessTable, read_table
from seatrial.profiler.tables.summary import mpi_summary

_TABLES = "mpi"
_NOTHING = ProbeSettings()


def probe_variables(ready: Ready, directory: Path) -> dict[str, str]:
    """The variables that the probes add to a repeat. Raises BuildError."""
    if not ready.point.is_profiled:
        return {}
    target = directory / _TABLES
    variables = {**os.environ, **{name: value for name, value in ready.variables if value is not None}}
    return profiled_variables(profiler(), target, node_folder(target), _NOTHING, variables)


@contextmanager
def probed(claimed: Sequence[tuple[Ready, Path]]) -> Iterator[None]:
    """Set up what the probes need while repeats run in their folders. Raises OSError, StoreError."""
    with ExitStack() as folders:
        for ready, directory in claimed:
            if ready.point.is_profiled:
                target = directory / _TABLES
                target.mkdir(exist_ok=True)
                folders.enter_context(NodeFolder(node_folder(target), target))
        yield


def probe_reports(ready: Ready, directory: Path, completed: Completed | None) -> dict[str, Any]:
    """The probes' results for a repeat's record; null for what could not be read. `completed` is None if the program
    ended unobserved."""
    reports: dict[str, Any] = {}
    if ready.point.is_profiled:
        reports["mpi"] = _mpi(directory / _TABLES)
    if "io" in ready.point.probes:
        reports["io"] = None if completed is None else _io(completed.io)
    return reports


def _mpi(folder: Path) -> dict[str, Any] | None:
    tables: list[ProcessTable] = []
    names = function_names()
    for path in sorted(folder.glob("*.mpi")):
        try:
            tables.append(read_table(path, len(names)))
        except (ParseError, OSError):
            return None  # a sum without this rank would look like less work
    return mpi_summary(tables, names) if tables else None


def _io(counters: Mapping[str, int] | None) -> dict[str, int] | None:
    """Bytes that the program requested from the kernel, and bytes transferred from and to devices (proc(5))."""
    if counters is None:
        return None
    return {
        "asked_read_B": counters["rchar"],
        "asked_written_B": counters["wchar"],
        "device_read_B": counters["read_bytes"],
        "device_written_B": max(0, counters["write_bytes"] - counters["cancelled_write_bytes"]),
    }
