"""mpi.subset-alltoall: the bandwidth of an all-to-all exchange within each of several equal subsets of the ranks.

Each rank of a subset sends a block to every other rank of it (MPI_Alltoall). Ranks are placed node after node, so
`members` says which part of the fabric a subset uses: neighbours are consecutive ranks (nodes of one switch, if they
are numbered by switch), spread takes every n-th rank (nodes of all switches). A subset that holds a slow node or link
is slow. With `at_once` all subsets exchange at the same time and share the links between them. Ranks that fill no
further subset are idle.
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.benchmarks.figures import rate
from seatrial.benchmarks.mpi.mpi_benchmark import (
    AWARE_RANKS,
    SLICE_S,
    bandwidth,
    links_of_node,
    mpi_benchmark,
    resolved_ranks,
)
from seatrial.model.benchmark.benchmark import Skip
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.machine.limit import Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

_LEAST_ROUNDS = 5
_ROUND_S = 5e-3
"""A sample with its filling and comparing, at least."""
_SLOW_BPS = 5e8


def _prepare(machine: Machine, params: Params) -> Params:
    params = resolved_ranks(machine, params)
    ranks = whole(params["ranks"])
    if ranks < 2:
        raise Skip("a subset needs two ranks; this process may use one CPU")
    subset = max(2, ranks // 2) if params["subset"] == "auto" else whole(params["subset"])
    if subset > ranks:
        raise Skip(f"subset={subset}: there are only {ranks} ranks")
    return {**params, "subset": subset}


def _subsets(params: Params) -> int:
    return whole(params["ranks"]) // whole(params["subset"])


def _estimate_s(params: Params) -> float:
    subset = whole(params["subset"])
    exchange_s = subset * (subset - 1) * whole(params["size_B"]) / _SLOW_BPS
    return 1.0 + max(SLICE_S, (_LEAST_ROUNDS + 2) * _subsets(params) * (_ROUND_S + 2 * exchange_s))


def _limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    """What the links of a subset's nodes send, where each rank has its own node."""
    nodes, subset = whole(params["nodes"]), whole(params["subset"])
    if 1 < nodes < whole(params["ranks"]):
        return Limit.unknown("B/s", "messages between ranks of one node use no link")
    return links_of_node(machine, params, subset, f", of {subset} nodes")


BENCHMARK = mpi_benchmark(
    __file__,
    name="mpi.subset-alltoall",
    question="How fast is an all-to-all exchange within each subset of the ranks?",
    ranks=AWARE_RANKS,
    parameters=(
        Parameter.size("size_B", 64 << 10, "block that a rank sends to each other one", minimum=1, option="--bytes"),
        Parameter.integer("subset", "auto", "ranks of a subset; auto: half of all", minimum=2, option="--members"),
        Parameter.choice(
            "members",
            "neighbours",
            "ranks of a subset; neighbours: consecutive ones; spread: every n-th, with n subsets",
            ("neighbours", "spread"),
            option="--spread",
            spelled={"neighbours": "0", "spread": "1"},
        ),
        Parameter.switch(
            "at_once", False, "all subsets exchange at the same time, not one after another", option="--at-once"
        ),
    ),
    figures=(
        bandwidth("bytes that the ranks of the subset send to others, until its slowest rank is done", _limit),
        rate(
            "slowest",
            "B/s",
            "bandwidth of the slowest subset of each round",
            limit=_limit,
            is_there=lambda params: not isinstance(params["subset"], int) or _subsets(params) > 1,
        ),
    ),
    prepare=_prepare,
    estimate_s=_estimate_s,
)
