"""Parameters that message-passing benchmarks share: the number of ranks, their place, and the memory of buffers."""

from __future__ import annotations

from itertools import permutations

from seatrial.benchmarks.nodes import cpus_of_nodes, node_count, on_each_node, with_ranks_per_node
from seatrial.benchmarks.placement import spread, thread_count
from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import Skip
from seatrial.model.benchmark.parameter import UNKNOWN, Parameter, Params, whole
from seatrial.model.machine.machine import Machine

RANKS = Parameter.integer("ranks", "all", "ranks, each bound to its own CPU; all: one per core", minimum=1)

OVERSUBSCRIBE = Parameter.switch(
    "oversubscribe", False, "allow more ranks than CPUs: they are not bound and share the CPUs"
)

_MIXED = tuple(f"{a}-{b}" for a, b in permutations(("host", "device", "managed"), 2))

BUFFERS = Parameter.choice(
    "buffers",
    "host",
    "memory of the message buffers; two words: the sender's and the receiver's",
    ("host", "device", "managed", *_MIXED),
)

HUGE_PAGES = Parameter.switch(
    "huge_pages",
    True,
    "ask the kernel for huge pages for the buffers, which speeds up copies through the kernel (OSU and IMB do not)",
    option="--huge-pages",
)

DATATYPE = Parameter.text("datatype", "MPI_CHAR", "MPI datatype of the elements", option="--datatype")


def resolved_ranks(machine: Machine, params: Params) -> Params:
    """The parameters with the number of ranks on this machine.

    `oversubscribe` is true afterwards only if there are more ranks than CPUs. Raises Skip if there are too few CPUs and
    ranks may not share them, or if the buffers are not in host memory; UsageError for values that only imported files
    have.
    """
    refuse_unknown(params)
    if params.get("buffers", "host") != "host":
        raise Skip(f"buffers={params['buffers']}: the programs of seatrial use host memory only")
    params = with_ranks_per_node(machine, params)
    ranks = params["ranks"]
    nodes = node_count(machine, params["nodes"], None if ranks == "all" else whole(ranks))
    params = {**params, "nodes": nodes}
    if ranks == "all":
        return {**params, "ranks": thread_count(machine, "all") * nodes, "oversubscribe": False}
    cpus = cpus_of_nodes(machine, nodes)
    if params["oversubscribe"] or whole(ranks) <= cpus:
        return {**params, "ranks": whole(ranks), "oversubscribe": whole(ranks) > cpus}
    where = "this process may use" if nodes == 1 else f"{nodes} nodes have"
    raise Skip(f"{ranks} ranks need {ranks} CPUs; {where} {cpus} (oversubscribe=true lets ranks share them)")


def refuse_unknown(params: Params) -> None:
    """Raise UsageError for a value that only imported results have."""
    for name, value in params.items():
        if value == UNKNOWN:
            raise UsageError(f"{name}={UNKNOWN} is only for imported results", "give a value")


def rank_cpus(machine: Machine, params: Params) -> tuple[int, ...]:
    """The CPU of each rank on its node; empty if ranks share CPUs."""
    ranks, nodes = whole(params["ranks"]), whole(params["nodes"])
    if params["oversubscribe"] and ranks > cpus_of_nodes(machine, nodes):
        return ()
    return on_each_node(machine, nodes, ranks, spread)
