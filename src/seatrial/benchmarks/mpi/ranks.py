"""Parameters that message-passing benchmarks share: the number of ranks, their place, and the memory of buffers."""

from __future__ import annotations

from itertools import permutations

from seatrial.benchmarks.placement import spread, thread_count
from seatrial.errors import UsageError
from seatrial.model.benchmark import Skip
from seatrial.model.machine import Machine
from seatrial.model.parameter import UNKNOWN, Parameter, ParameterKind, Params, whole

RANKS = Parameter(
    "ranks",
    ParameterKind.INTEGER,
    "all",
    "ranks, each bound to its own CPU; all: one per core",
    words=("all",),
    minimum=1,
)

NODES = Parameter("nodes", ParameterKind.INTEGER, 1, "nodes that the ranks run on", minimum=1)

OVERSUBSCRIBE = Parameter(
    "oversubscribe",
    ParameterKind.FLAG,
    False,
    "allow more ranks than CPUs: they are not bound and share the CPUs",
)

_MIXED = tuple(f"{a}-{b}" for a, b in permutations(("host", "device", "managed"), 2))

BUFFERS = Parameter(
    "buffers",
    ParameterKind.CHOICE,
    "host",
    "memory of the message buffers; two words: the sender's and the receiver's",
    words=("host", "device", "managed", *_MIXED),
)

HUGE_PAGES = Parameter(
    "huge_pages",
    ParameterKind.FLAG,
    True,
    "ask the kernel for huge pages for the buffers, which speeds up copies through the kernel (OSU and IMB do not)",
)

DATATYPE = Parameter("datatype", ParameterKind.TEXT, "MPI_CHAR", "MPI datatype of the elements")


def resolved_ranks(machine: Machine, params: Params) -> Params:
    """The parameters with the number of ranks on this machine.

    `oversubscribe` is true afterwards only if there are more ranks than CPUs. Raises Skip if there are too few CPUs and
    ranks may not share them, or if the buffers are not in host memory; UsageError for values that only imported files
    have.
    """
    refuse_unknown(params)
    if params.get("buffers", "host") != "host":
        raise Skip(f"buffers={params['buffers']}: the programs of seatrial use host memory only")
    if whole(params["nodes"]) != 1:
        raise Skip("ranks on several nodes need a batch system's allocation; this is one node")
    ranks = params["ranks"]
    if ranks != "all" and params["oversubscribe"]:
        return {**params, "oversubscribe": whole(ranks) > len(machine.allowed_cpus)}
    if ranks != "all" and whole(ranks) > len(machine.allowed_cpus):
        raise Skip(
            f"{ranks} ranks need {ranks} CPUs; this process may use {len(machine.allowed_cpus)} "
            "(oversubscribe=true lets ranks share them)"
        )
    return {**params, "ranks": thread_count(machine, ranks), "oversubscribe": False}


def refuse_unknown(params: Params) -> None:
    """Raise UsageError for a value that only imported results have."""
    for name, value in params.items():
        if value == UNKNOWN:
            raise UsageError(f"{name}={UNKNOWN} is only for imported results", "give a value")


def rank_cpus(machine: Machine, params: Params) -> tuple[int, ...]:
    """The CPU of each rank; empty if ranks share CPUs."""
    ranks = whole(params["ranks"])
    if params["oversubscribe"] and ranks > len(machine.allowed_cpus):
        return ()
    return spread(machine, ranks)
