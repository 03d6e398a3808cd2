"""mpi.bisection: the bandwidth between two halves of the ranks when all of them exchange at once.

The first bisection is that of the rank numbers, i with i + ranks / 2 (with ranks placed node after node: the nodes of
the first half with those of the second), or with `half` that of the ranks on these nodes with the ranks on all others:
the nodes of one switch against the rest measure its uplinks. The others split the ranks at random, the same way in each
run, so that neighbours exchange with distant ranks. The bandwidth counts what all ranks send, both directions together.

`worst` is the slowest bisection in each round of samples, `median` the middle one: with noise, the slowest of several
is slower than each of them alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seatrial.benchmarks.mpi.links import links_of_node
from seatrial.benchmarks.mpi.messages import WRONG_BYTES
from seatrial.benchmarks.mpi.ranks import OVERSUBSCRIBE, RANKS, rank_cpus, resolved_ranks
from seatrial.benchmarks.node_placement import NODE_PLACEMENT
from seatrial.benchmarks.nodes import NODES, RANKS_PER_NODE
from seatrial.errors import UsageError
from seatrial.model.benchmark import Benchmark, Better, Figure, Native, Skip
from seatrial.model.host_list import expand_hosts
from seatrial.model.limit import Limit
from seatrial.model.machine import Machine
from seatrial.model.parameter import Parameter, ParameterKind, Params, whole
from seatrial.model.quotients import WorkRate
from seatrial.model.sample import Sample

_SLICE_S = 0.25
_LEAST_ROUNDS = 5
_BY_RANK = "ranks"


def _prepare(machine: Machine, params: Params) -> Params:
    params = resolved_ranks(machine, params)
    if whole(params["ranks"]) < 2:
        raise Skip("two halves need two ranks; this process may use one CPU")
    _half(params)
    return params


def _half(params: Params) -> tuple[str, ...]:
    """The nodes of one half; none for a split by rank number. Raises UsageError for a list that is not valid."""
    if params["half"] == _BY_RANK:
        return ()
    try:
        return expand_hosts(str(params["half"]).replace("+", ","))
    except ValueError as error:
        raise UsageError(f"half: {error}", "list nodes as Slurm does, joined by +: n[1-4]+login1") from None


def _arguments(params: Params) -> list[str]:
    return [
        *("--slice", str(_SLICE_S), "--bytes", str(params["size_B"]), "--window", str(params["window"])),
        *("--bisections", str(params["bisections"]), "--shares", "1" if params["oversubscribe"] else "0"),
        *(("--half", ",".join(half)) if (half := _half(params)) else ()),
    ]


def _estimate_s(params: Params) -> float:
    of_each_s = 5e-3 + whole(params["window"]) * whole(params["size_B"]) * 3e-9
    return 1.0 + max(_SLICE_S, _LEAST_ROUNDS * whole(params["bisections"]) * of_each_s)


def _limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    """A node's links bound what it sends and, at the same time, what it receives; half of what is counted is sent by
    the nodes of one half. Where chance leaves two partners on one node their messages pass no link, so only the
    bisection of the rank numbers is held against it, on an even number of nodes."""
    nodes, half = whole(params["nodes"]), len(_half(params))
    if half:
        return Limit.unknown("B/s", "the number of ranks on the nodes of `half` is not known beforehand")
    if nodes > 1 and (nodes % 2 or any(sample.point.get("bisection") != 0 for sample in samples)):
        return Limit.unknown("B/s", "partners may be on one node, where messages use no link")
    return links_of_node(machine, params, nodes, f", of {nodes} nodes")


_bandwidth = WorkRate("bytes")


def _figure(name: str, work: str) -> Figure:
    return Figure(name=name, series=name, unit="B/s", better=Better.HIGHER, value=_bandwidth, work=work, limit=_limit)


BENCHMARK = Benchmark(
    name="mpi.bisection",
    question="What is the bandwidth between two halves of the ranks when all exchange at once?",
    program=Native(Path(__file__).with_suffix(".cpp"), _arguments, takes_turns=True),
    parameters=(
        RANKS,
        NODES,
        RANKS_PER_NODE,
        NODE_PLACEMENT,
        OVERSUBSCRIBE,
        Parameter("size_B", ParameterKind.BYTES, 1 << 20, "size of a message", minimum=1),
        Parameter("window", ParameterKind.INTEGER, 4, "messages in flight per pair, in each direction", minimum=1),
        Parameter(
            "half",
            ParameterKind.TEXT,
            _BY_RANK,
            "nodes of one half of bisection 0, such as n[1-4]+n7 (those of a switch: its uplinks); ranks: the first "
            "half of the ranks",
            words=(_BY_RANK,),
        ),
        Parameter(
            "bisections",
            ParameterKind.INTEGER,
            5,
            "number of bisections; 0 splits by `half`, the others at random",
            minimum=1,
        ),
    ),
    figures=(
        _figure("bandwidth", "bytes that all ranks send in both directions, until the slowest pair is done"),
        _figure("worst", "bandwidth of the slowest bisection of each round"),
        _figure("median", "bandwidth of the median bisection of each round"),
    ),
    checks=(WRONG_BYTES,),
    placement=rank_cpus,
    prepare=_prepare,
    ranks="mpi",
    estimate_s=_estimate_s,
)
