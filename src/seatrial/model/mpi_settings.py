"""The run-time settings of MPI under names that are common to all libraries, and their values.

`environments/mpi_settings.py` translates them for each library.
"""

from __future__ import annotations

from seatrial.model.parameter import Params

COLLECTIVE_ALGORITHM, TRANSPORT, BINDING = "collective_algorithm", "transport", "binding"
CLUSTER_LINK = "cluster.link"
"""The rate of the links of a virtual cluster's nodes. It is no setting of the library, but of where its ranks run."""
SETTINGS = (COLLECTIVE_ALGORITHM, TRANSPORT, BINDING, CLUSTER_LINK)

AUTO, CORE, NONE = "auto", "core", "none"
TRANSPORTS = (AUTO, "shm", "tcp", "ucx", "ofi")
"""shm: shared memory within a host; tcp: sockets, also within a host; ucx, ofi: what these libraries choose."""
BINDINGS = (CORE, NONE)
"""core: each rank bound to its own CPUs, the default; none: unbound."""
DEFAULTS = {COLLECTIVE_ALGORITHM: AUTO, TRANSPORT: AUTO, BINDING: CORE}
"""The values that change nothing: an experiment with one is the same as without the setting."""

COLLECTIVES = (
    "barrier",
    "bcast",
    "reduce",
    "allreduce",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "reduce-scatter",
    "reduce-scatter-block",
    "scan",
    "exscan",
    "neighbor-allgather",
    "neighbor-allgatherv",
    "neighbor-alltoall",
    "neighbor-alltoallv",
    "neighbor-alltoallw",
)
OPERATIONS = (*COLLECTIVES, *(f"i{name}" for name in COLLECTIVES))
"""The calls with a selectable algorithm, without MPI_ and with hyphens; those with i are nonblocking."""

_PREFIX = "mpi."
_BRITISH = "neighbour-"


def operation_of(benchmark: str, params: Params | None = None) -> str | None:
    """The call that a benchmark measures (`mpi.allreduce` with call=nonblocking: iallreduce), or None if it is not a
    collective. Calls without a selectable algorithm have a name as well: persistent-allreduce."""
    name = benchmark.removeprefix(_PREFIX).replace(_BRITISH, "neighbor-")
    if name == benchmark or name not in COLLECTIVES:
        return None
    call = (params or {}).get("call", "blocking")
    return {"blocking": name, "nonblocking": f"i{name}"}.get(str(call), f"{call}-{name}")


def is_collective(benchmark: str) -> bool:
    """Whether a benchmark measures one of the collectives."""
    return operation_of(benchmark) is not None


def chosen_algorithms(value: str) -> tuple[tuple[str, str], ...]:
    """(operation, algorithm) of each part of "allreduce:ring+bcast:binomial"; an operation of ""
    means that of the benchmark."""
    pairs = (part.rpartition(":") for part in value.split("+"))
    return tuple((operation, algorithm) for operation, _, algorithm in pairs)
