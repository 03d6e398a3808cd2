"""How the program of a repeat is started, with the links of the virtual cluster as it asks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from seatrial.engine.probing import probe_variables
from seatrial.engine.ready import NotPreparedError, Ready
from seatrial.environments.private_copy import private_top
from seatrial.errors import UsageError
from seatrial.launch.ranks import rank_layout
from seatrial.model.environment.mpi import CLUSTER_LINK
from seatrial.places.cluster.relink import links_at
from seatrial.places.cluster.tools import ClusterError
from seatrial.places.rank_helpers import inside_probe
from seatrial.places.starting import Start, started


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
