"""mpi.multi-pair: the message rate and bandwidth of all pairs of ranks together.

Rank p streams to rank p + pairs, all pairs at once, each with a window of non-blocking sends that the receiver
acknowledges, as in osu_mbw_mr of the OSU micro-benchmarks; as there, the time is the mean over the pairs. A mean hides
slow pairs: `slowest_pair` is the rate of the slowest.
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.benchmarks.mpi.bandwidth import (
    PROGRAM,
    STREAMED,
    arguments,
    estimate_s,
    prepared,
)
from seatrial.benchmarks.mpi.between_nodes import exchanged_in_pairs
from seatrial.benchmarks.mpi.messages import WRONG_BYTES, bandwidth, bytes_per_second
from seatrial.benchmarks.mpi.placement import pair_cpus
from seatrial.benchmarks.mpi.ranks import OVERSUBSCRIBE
from seatrial.benchmarks.node_placement import NODE_PLACEMENT
from seatrial.benchmarks.nodes import NODES, node_count
from seatrial.benchmarks.placement import thread_count
from seatrial.errors import UsageError
from seatrial.model.benchmark import Benchmark, Better, Figure, Native, Skip
from seatrial.model.machine import Machine
from seatrial.model.parameter import Parameter, ParameterKind, Params, whole
from seatrial.model.quotients import WorkRate


def _prepare(machine: Machine, params: Params) -> Params:
    pairs = _pairs(machine, params)
    if params["ranks"] not in ("auto", 2 * pairs):
        raise UsageError(
            f"ranks={params['ranks']} and pairs={pairs} contradict each other",
            "set only one of them: a pair has two ranks",
        )
    return prepared(machine, {**params, "pairs": pairs, "ranks": 2 * pairs})


def _pairs(machine: Machine, params: Params) -> int:
    """The number of pairs, from `pairs` or `ranks`; all cores if neither is given."""
    pairs, ranks = params["pairs"], params["ranks"]
    if pairs != "all":
        return whole(pairs)
    if ranks == "auto":
        ranks = thread_count(machine, "all") * node_count(machine, params["nodes"])
        if ranks < 2:
            raise Skip("a pair needs two cores; this process may use 1 (share it: oversubscribe=true and pairs=1)")
        return ranks // 2
    if whole(ranks) % 2:
        raise UsageError(f"ranks={ranks} leaves one without a partner", "give an even number of ranks")
    return whole(ranks) // 2


def _arguments(params: Params) -> Sequence[str]:
    return arguments(params, pairs=whole(params["pairs"]))


BENCHMARK = Benchmark(
    name="mpi.multi-pair",
    question="What message rate and bandwidth do all pairs of ranks reach together?",
    program=Native(PROGRAM, _arguments, takes_turns=True),
    parameters=(
        Parameter(
            "pairs",
            ParameterKind.INTEGER,
            "all",
            "pairs of ranks that stream at once; all: as many as the cores allow",
            words=("all",),
            minimum=1,
        ),
        Parameter(
            "ranks",
            ParameterKind.INTEGER,
            "auto",
            "ranks; auto: two for each pair",
            words=("auto",),
            minimum=2,
        ),
        NODES,
        NODE_PLACEMENT,
        OVERSUBSCRIBE,
        *STREAMED,
    ),
    figures=(
        bandwidth("bytes of messages of size_B of all pairs, over the mean time of a pair"),
        Figure(
            name="message_rate",
            series="bandwidth",
            unit="op/s",
            better=Better.HIGHER,
            value=WorkRate("ops"),
            work="messages of size_B of all pairs, over the mean time of a pair",
        ),
        Figure(
            name="slowest_pair",
            series="slowest_pair",
            unit="B/s",
            better=Better.HIGHER,
            value=bytes_per_second,
            work="bytes of messages of size_B of the slowest pair",
            is_there=lambda params: isinstance(params["pairs"], int) and params["pairs"] > 1,
        ),
    ),
    checks=(WRONG_BYTES,),
    placement=pair_cpus,
    prepare=_prepare,
    ranks="mpi",
    estimate_s=estimate_s,
    between_nodes=exchanged_in_pairs,
)
