"""The layout of an application: nodes x ranks x threads, each thread on its own CPU."""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.benchmarks.figures import exactly
from seatrial.benchmarks.nodes import (
    NODE_PLACEMENT,
    NODES,
    RANKS_PER_NODE,
    cpus_of_nodes,
    node_count,
    on_each_node,
    with_ranks_per_node,
)
from seatrial.benchmarks.placement import spread, thread_count
from seatrial.model.benchmark.benchmark import Check, Skip
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.benchmark.program import NODES as NODES_NAME
from seatrial.model.benchmark.program import RANKS as RANKS_NAME
from seatrial.model.benchmark.program import THREADS as THREADS_NAME
from seatrial.model.machine.machine import Machine

RANKS = Parameter.integer(
    RANKS_NAME,
    "all",
    "MPI ranks, each bound to as many CPUs as it has threads; all: as many as fit on the cores",
    minimum=1,
)

THREADS = Parameter.integer(THREADS_NAME, 1, "OpenMP threads per rank", minimum=1)

RANK_LAYOUT = (RANKS, NODES, RANKS_PER_NODE, NODE_PLACEMENT)
LAYOUT = (*RANK_LAYOUT, THREADS)
"""The parameters of ranks on nodes, and of ranks with threads."""

_OVERRIDING = ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY", "OMP_DYNAMIC", "OMP_THREAD_LIMIT")
"""Variables that would change the number or binding of the threads. OMP_PLACES binds the threads of every rank to the
same CPUs if the ranks themselves are not bound: two ranks of GROMACS on two cores then took 30 times as long."""


def resolved(machine: Machine, params: Params) -> Params:
    """The parameters with the numbers that `ranks` and `nodes` stand for. Raises Skip where there are fewer CPUs or
    nodes."""
    params = with_ranks_per_node(machine, params)
    threads = whole(params.get(THREADS_NAME, 1))
    given = None if params[RANKS_NAME] == "all" else whole(params[RANKS_NAME])
    nodes = node_count(machine, params[NODES_NAME], given)
    ranks = nodes * max(1, thread_count(machine, "all") // threads) if given is None else given
    refuse_too_many(machine, nodes, ranks, threads)
    return {**params, RANKS_NAME: ranks, NODES_NAME: nodes}


def refuse_too_many(machine: Machine, nodes: int, ranks: int, threads: int) -> None:
    """Raise Skip where the ranks and their threads need more CPUs than there are."""
    there = cpus_of_nodes(machine, nodes)
    if ranks * threads > there:
        where = "this process may use" if nodes == 1 else f"{nodes} nodes have"
        raise Skip(f"{ranks} ranks of {threads} threads need {ranks * threads} CPUs; {where} {there}")


def placement(machine: Machine, params: Params) -> tuple[int, ...]:
    """The CPU of each thread, rank by rank: a core each as long as the node has cores."""
    return on_each_node(machine, params[NODES_NAME], cpus_of(params), spread)


def cpus_of(params: Params) -> int:
    """How many CPUs the ranks and their threads take; ranks without this parameter have one thread."""
    return whole(params[RANKS_NAME]) * whole(params.get(THREADS_NAME, 1))


def openmp_variables(params: Params) -> Mapping[str, str | None]:
    """The environment in which each rank starts its threads and leaves them on the CPUs that the rank is bound to."""
    return {"OMP_NUM_THREADS": str(whole(params[THREADS_NAME])), **dict.fromkeys(_OVERRIDING)}


def counted_by(application: str) -> tuple[Check, ...]:
    """The checks that the application runs on the requested number of ranks and threads."""
    return (
        Check(RANKS_NAME, f"ranks, as {application} reports", exactly(RANKS_NAME)),
        Check(THREADS_NAME, f"threads per rank, as {application} reports", exactly(THREADS_NAME)),
    )


def edge_for(machine: Machine, smallest: int, atoms_of_a_cube: float, atoms_per_core: float) -> int:
    """The smallest cube, by its edge, that gives each core its share of atoms. It does not depend on the ranks: a
    strong scaling measures one problem."""
    edge, cores = smallest, thread_count(machine, "all")
    while atoms_of_a_cube * edge**3 < atoms_per_core * cores:
        edge += 1
    return edge
