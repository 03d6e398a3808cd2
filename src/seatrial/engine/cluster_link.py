"""The links of the virtual cluster at the rate of an experiment."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from seatrial.engine.ready import NotPreparedError, Ready
from seatrial.errors import UsageError
from seatrial.model.mpi_settings import CLUSTER_LINK
from seatrial.places.cluster.relink import links_at
from seatrial.places.cluster.tools import ClusterError


@contextmanager
def link_of(ready: Ready) -> Iterator[None]:
    """The links as the experiment asks (axis `cluster.link`) while a repeat runs. Raises NotPreparedError."""
    wanted = dict(ready.point.environment.mpi_settings).get(CLUSTER_LINK)
    try:
        with links_at(wanted, os.environ):
            yield
    except (ClusterError, UsageError) as error:
        raise NotPreparedError(f"{error.message}; {error.todo}" if error.todo else error.message, "") from error
