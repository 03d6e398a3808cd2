"""MPI libraries, and the run-time settings of MPI with their values, under names that are common to all libraries.

`environments/mpi_settings.py` translates them for each library.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from msgspec.structs import replace

from seatrial.model.benchmark.parameter import Params
from seatrial.model.frozen import Frozen
from seatrial.model.json_object import plain, record_of
from seatrial.model.json_shape import As, Json, Key, Sparse


class MpiFamily(StrEnum):
    """Libraries with the same launcher and settings. Cray MPICH and MVAPICH are MPICH with further settings."""

    OPENMPI = "openmpi"
    MPICH = "mpich"
    INTEL = "intel"
    MVAPICH = "mvapich"
    CRAY = "cray"


class Mpi(Frozen):
    """One library. `name` is its name in `environment.mpi`: its family for the first of each, else with its version,
    else its path.

    `library` is the file of libmpi, `build_id` identifies it (GNU build id, or "sha256:" and the hash of the file).
    `compile_flags` and `link_flags` are passed to the compiler. `launcher` starts ranks; None if only a batch system
    can. `variables` are those that it needs if it was moved from the path it was built for, and those of the site file.
    `is_generic`: a build for any machine, without support for this one's network. `is_runtime_only`: mpi.h is missing,
    so it can run existing programs, but none can be built with it.
    """

    name: str
    family: MpiFamily
    version: str
    library: Annotated[Path, As(str, to=str, back=Path)]
    build_id: str
    compile_flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    launcher: Annotated[Path, As(str, to=str, back=Path)] | None
    variables: Annotated[tuple[tuple[str, str], ...], As(dict[str, str], back=lambda found: tuple(found.items()))] = ()
    is_generic: Annotated[bool, Key("generic")] = False
    found: str = "PATH"
    """Where it was found, for messages: PATH, a module, the site file, ..."""
    is_runtime_only: Sparse[Annotated[bool, Key("runtime_only")]] = False

    def document(self) -> Json:
        """As stored in environments and shown by `list`."""
        return plain(self)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Mpi:
        """The library that `document()` described. Raises ValueError if it is invalid."""
        return record_of(cls, document)

    def named(self, name: str) -> Mpi:
        """The same under another name."""
        return replace(self, name=name)

    def for_builds(self) -> Mpi:
        """Only what affects programs compiled with it, without its name, launcher and path, so that another node with
        the same library can use the same build."""
        return replace(self, name="", launcher=None, variables=(), found="", is_generic=False)

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names for it: its family, and its family with its version."""
        return (self.family.value, f"{self.family}-{self.version}")

    @property
    def title(self) -> str:
        """Name and version for messages, such as "Open MPI 4.1.4" or "MPICH 5.0.2 (generic)"."""
        labels = [
            name for name, holds in (("generic", self.is_generic), ("runtime only", self.is_runtime_only)) if holds
        ]
        return f"{_TITLES[self.family]} {self.version}" + (f" ({', '.join(labels)})" if labels else "")


_TITLES = {
    MpiFamily.OPENMPI: "Open MPI",
    MpiFamily.MPICH: "MPICH",
    MpiFamily.INTEL: "Intel MPI",
    MpiFamily.MVAPICH: "MVAPICH",
    MpiFamily.CRAY: "Cray MPICH",
}


COLLECTIVE_ALGORITHM, TRANSPORT, BINDING = "collective_algorithm", "transport", "binding"
CLUSTER_LINK = "cluster.link"
"""The rate of the links of a virtual cluster's nodes. It is not a setting of the library, but of where its ranks
run."""
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
