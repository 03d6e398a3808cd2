"""How the program of a repeat is started, with the links of the virtual cluster as it asks, and the probes that a study
runs beside it: the MPI profile and the program's I/O.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from seatrial.engine.ready import NotPreparedError, Ready
from seatrial.environments.cached_files import private_top
from seatrial.errors import UsageError
from seatrial.launch.local import Completed
from seatrial.launch.ranks import rank_layout
from seatrial.model.environment.mpi import CLUSTER_LINK
from seatrial.places.cluster.network import links_at
from seatrial.places.cluster.tools import ClusterError
from seatrial.places.rank_helpers import inside_probe
from seatrial.places.starting import Start, started


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


def start_of(ready: Ready, directory: Path) -> Start:
    """How a repeat is started.

    Raises BuildError if the helper programs for ranks are missing, and NoLauncherError.
    """
    added = probe_variables(ready, directory)
    layout = None if ready.mpi is None else rank_layout(ready.point)
    record = None if ready.program.writes_record else directory
    if ready.container is not None and ready.program.starts_containers:
        outside = started(None, None, ready.container, ready.variables, added, [directory])
        return Start(variables=outside.variables)
    folders = [directory, private_top(inside_probe() if ready.program.is_of_image else ready.program.path)]
    works_in = directory if ready.program.runs_in_its_folder else None
    return started(ready.mpi, layout, ready.container, ready.variables, added, folders, record, works_in)


@contextmanager
def link_of(ready: Ready) -> Iterator[None]:
    """The links as the experiment asks (axis `cluster.link`) while a repeat runs. Raises NotPreparedError."""
    wanted = dict(ready.point.environment.mpi_settings).get(CLUSTER_LINK)
    try:
        with links_at(wanted, os.environ):
            yield
    except (ClusterError, UsageError) as error:
        raise NotPreparedError(f"{error.message}; {error.todo}" if error.todo else error.message, "") from error
