"""The run-time settings of MPI that have one name here and another in each library: what they are, what they take.

`environments/mpi_settings.py` says them in a library's own words.
"""

from __future__ import annotations

from seatrial.model.parameter import Params

COLLECTIVE_ALGORITHM, TRANSPORT, BINDING = "collective_algorithm", "transport", "binding"
SETTINGS = (COLLECTIVE_ALGORITHM, TRANSPORT, BINDING)

AUTO, CORE, NONE = "auto", "core", "none"
TRANSPORTS = (AUTO, "shm", "tcp", "ucx", "ofi")
"""shm: memory that ranks of one host share; tcp: sockets, also within a host; ucx, ofi: what these libraries take."""
BINDINGS = (CORE, NONE)
"""core: each rank on CPUs of its own, as always; none: ranks go where the kernel puts them."""
DEFAULTS = {COLLECTIVE_ALGORITHM: AUTO, TRANSPORT: AUTO, BINDING: CORE}
"""The values that set nothing: such a point is the same as one without the setting."""

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
"""The calls whose algorithm can be chosen, without MPI_ and with hyphens; those with i are the nonblocking ones."""

_PREFIX = "mpi."
_BRITISH = "neighbour-"


def operation_of(benchmark: str, params: Params | None = None) -> str | None:
    """The call that a benchmark measures (`mpi.allreduce` with call=nonblocking: iallreduce), or None where it measures
    no collective. One that no library lets choose has a name as well: persistent-allreduce."""
    name = benchmark.removeprefix(_PREFIX).replace(_BRITISH, "neighbor-")
    if name == benchmark or name not in COLLECTIVES:
        return None
    call = (params or {}).get("call", "blocking")
    return {"blocking": name, "nonblocking": f"i{name}"}.get(str(call), f"{call}-{name}")


def is_collective(benchmark: str) -> bool:
    """Whether a benchmark measures one of the collectives."""
    return operation_of(benchmark) is not None


def chosen_algorithms(value: str) -> tuple[tuple[str, str], ...]:
    """(operation, algorithm) of each part of "allreduce:ring+bcast:binomial"; the operation is "" where a part names
    none, which then is that of the benchmark."""
    pairs = (part.rpartition(":") for part in value.split("+"))
    return tuple((operation, algorithm) for operation, _, algorithm in pairs)
