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

from seatrial.benchmarks.figures import rate
from seatrial.benchmarks.mpi.mpi_benchmark import AWARE_RANKS, SLICE_S, links_of_node, mpi_benchmark, resolved_ranks
from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import Figure, Skip
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.machine.host_list import expand_hosts
from seatrial.model.machine.limit import Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

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


def _estimate_s(params: Params) -> float:
    of_each_s = 5e-3 + whole(params["window"]) * whole(params["size_B"]) * 3e-9
    return 1.0 + max(SLICE_S, _LEAST_ROUNDS * whole(params["bisections"]) * of_each_s)


def _limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    """A node's links bound what it sends and, at the same time, what it receives; half of what is counted is sent by
    the nodes of one half. Where chance leaves two partners on one node their messages pass no link, so only the
    bisection of the rank numbers is compared with it, on an even number of nodes."""
    nodes, half = whole(params["nodes"]), len(_half(params))
    if half:
        return Limit.unknown("B/s", "the number of ranks on the nodes of `half` is unknown beforehand")
    if nodes > 1 and (nodes % 2 or any(sample.point.get("bisection") != 0 for sample in samples)):
        return Limit.unknown("B/s", "partners may be on one node, where messages use no link")
    return links_of_node(machine, params, nodes, f", of {nodes} nodes")


def _figure(name: str, work: str) -> Figure:
    return rate(name, "B/s", work, limit=_limit)


BENCHMARK = mpi_benchmark(
    __file__,
    name="mpi.bisection",
    question="What is the bandwidth between two halves of the ranks when all exchange at once?",
    ranks=AWARE_RANKS,
    words=(lambda params: ["--half", ",".join(half)] if (half := _half(params)) else [],),
    parameters=(
        Parameter.size("size_B", 1 << 20, "size of a message", minimum=1, option="--bytes"),
        Parameter.integer("window", 4, "messages in flight per pair, in each direction", minimum=1, option="--window"),
        Parameter.text(
            "half",
            _BY_RANK,
            "nodes of one half of bisection 0, such as n[1-4]+n7 (those of a switch: its uplinks); ranks: the first "
            "half of the ranks",
            (_BY_RANK,),
        ),
        Parameter.integer(
            "bisections",
            5,
            "number of bisections; 0 splits by `half`, the others at random",
            minimum=1,
            option="--bisections",
        ),
    ),
    figures=(
        _figure("bandwidth", "bytes that all ranks send in both directions, until the slowest pair is done"),
        _figure("worst", "bandwidth of the slowest bisection of each round"),
        _figure("median", "bandwidth of the median bisection of each round"),
    ),
    prepare=_prepare,
    estimate_s=_estimate_s,
)
