"""The probes that a study runs beside its repeats: the MPI profile and the program's I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from seatrial.engine.ready import Ready
from seatrial.launch.local import Completed


def probe_variables(ready: Ready, directory: Path) -> dict[str, str]:
    """The variables that the probes add to a repeat. Raises BuildError."""
    if not ready.point.is_profiled:
        return {}
    from seatrial.engine.mpi_probe import mpi_variables

    return mpi_variables(ready, directory)


@contextmanager
def probed(claimed: Sequence[tuple[Ready, Path]]) -> Iterator[None]:
    """Set up what the probes need while repeats run in their folders. Raises OSError, StoreError."""
    with ExitStack() as folders:
        for ready, directory in claimed:
            if ready.point.is_profiled:
                from seatrial.engine.mpi_probe import mpi_folder

                folders.enter_context(mpi_folder(directory))
        yield


def probe_reports(ready: Ready, directory: Path, completed: Completed | None) -> dict[str, Any]:
    """The probes' results for a repeat's record; null for what could not be read. `completed` is None if the program
    ended unobserved."""
    reports: dict[str, Any] = {}
    if ready.point.is_profiled:
        from seatrial.engine.mpi_probe import mpi_report

        reports["mpi"] = mpi_report(directory)
    if "io" in ready.point.probes:
        reports["io"] = None if completed is None else _io(completed.io)
    return reports


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
