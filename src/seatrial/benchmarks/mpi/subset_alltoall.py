"""mpi.subset-alltoall: the bandwidth of an all-to-all exchange within each of several equal subsets of the ranks.

Each rank of a subset sends a block to every other rank of it (MPI_Alltoall). Ranks are placed node after node, so
`members` says which part of the fabric a subset uses: neighbours are consecutive ranks (nodes of one switch, if they
are numbered by switch), spread takes every n-th rank (nodes of all switches). A subset that holds a slow node or link
is slow. With `at_once` all subsets exchange at the same time and share the links between them. Ranks that fill no
further subset are idle.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seatrial.benchmarks.mpi.links import links_of_node
from seatrial.benchmarks.mpi.messages import WRONG_BYTES, bandwidth, bytes_per_second
from seatrial.benchmarks.mpi.ranks import OVERSUBSCRIBE, RANKS, rank_cpus, resolved_ranks
from seatrial.benchmarks.node_placement import NODE_PLACEMENT
from seatrial.benchmarks.nodes import NODES, RANKS_PER_NODE
from seatrial.model.benchmark import Benchmark, Better, Figure, Native, Skip
from seatrial.model.limit import Limit
from seatrial.model.machine import Machine
from seatrial.model.parameter import Parameter, ParameterKind, Params, whole
from seatrial.model.sample import Sample

_SLICE_S = 0.25
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


def _arguments(params: Params) -> list[str]:
    return [
        *("--slice", str(_SLICE_S), "--bytes", str(params["size_B"]), "--members", str(params["subset"])),
        *("--spread", "1" if params["members"] == "spread" else "0"),
        *("--at-once", "1" if params["at_once"] else "0"),
        *("--shares", "1" if params["oversubscribe"] else "0"),
    ]


def _estimate_s(params: Params) -> float:
    subset = whole(params["subset"])
    exchange_s = subset * (subset - 1) * whole(params["size_B"]) / _SLOW_BPS
    return 1.0 + max(_SLICE_S, (_LEAST_ROUNDS + 2) * _subsets(params) * (_ROUND_S + 2 * exchange_s))


def _limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    """What the links of a subset's nodes send, where each rank has a node of its own."""
    nodes, subset = whole(params["nodes"]), whole(params["subset"])
    if 1 < nodes < whole(params["ranks"]):
        return Limit.unknown("B/s", "messages between ranks of one node use no link")
    return links_of_node(machine, params, subset, f", of {subset} nodes")


BENCHMARK = Benchmark(
    name="mpi.subset-alltoall",
    question="How fast is an all-to-all exchange within each subset of the ranks?",
    program=Native(Path(__file__).with_suffix(".cpp"), _arguments, takes_turns=True),
    parameters=(
        RANKS,
        NODES,
        RANKS_PER_NODE,
        NODE_PLACEMENT,
        OVERSUBSCRIBE,
        Parameter("size_B", ParameterKind.BYTES, 64 << 10, "block that a rank sends to each other one", minimum=1),
        Parameter(
            "subset",
            ParameterKind.INTEGER,
            "auto",
            "ranks of a subset; auto: half of all",
            words=("auto",),
            minimum=2,
        ),
        Parameter(
            "members",
            ParameterKind.CHOICE,
            "neighbours",
            "ranks of a subset; neighbours: consecutive ones; spread: every n-th, with n subsets",
            words=("neighbours", "spread"),
        ),
        Parameter("at_once", ParameterKind.FLAG, False, "all subsets exchange at the same time, not one after another"),
    ),
    figures=(
        bandwidth("bytes that the ranks of the subset send to others, until its slowest rank is done", _limit),
        Figure(
            name="slowest",
            series="slowest",
            unit="B/s",
            better=Better.HIGHER,
            value=bytes_per_second,
            work="bandwidth of the slowest subset of each round",
            limit=_limit,
            is_there=lambda params: not isinstance(params["subset"], int) or _subsets(params) > 1,
        ),
    ),
    checks=(WRONG_BYTES,),
    placement=rank_cpus,
    prepare=_prepare,
    ranks="mpi",
    estimate_s=_estimate_s,
)
