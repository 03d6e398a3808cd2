"""mpi.multi-pair: the message rate and bandwidth of all pairs of ranks together.

Rank p streams to rank p + pairs, all pairs at once, each with a window of non-blocking sends that the receiver
acknowledges, as in osu_mbw_mr of the OSU micro-benchmarks; as there, the time is the mean over the pairs. A mean hides
slow pairs: `slowest_pair` is the rate of the slowest.
"""

from __future__ import annotations

from seatrial.benchmarks.figures import rate
from seatrial.benchmarks.mpi import bandwidth, messages
from seatrial.benchmarks.mpi.between_nodes import exchanged_in_pairs
from seatrial.benchmarks.mpi.mpi_benchmark import mpi_benchmark
from seatrial.benchmarks.mpi.placement import pair_cpus
from seatrial.benchmarks.mpi.ranks import OVERSUBSCRIBE
from seatrial.benchmarks.mpi.sizes import sizes_argument
from seatrial.benchmarks.node_placement import NODE_PLACEMENT
from seatrial.benchmarks.nodes import NODES, node_count
from seatrial.benchmarks.placement import thread_count
from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import Skip
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.machine.machine import Machine


def _prepare(machine: Machine, params: Params) -> Params:
    pairs = _pairs(machine, params)
    if params["ranks"] not in ("auto", 2 * pairs):
        raise UsageError(
            f"ranks={params['ranks']} and pairs={pairs} contradict each other",
            "set only one of them: a pair has two ranks",
        )
    return bandwidth.prepared(machine, {**params, "pairs": pairs, "ranks": 2 * pairs})


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


BENCHMARK = mpi_benchmark(
    bandwidth.__file__,
    name="mpi.multi-pair",
    question="What message rate and bandwidth do all pairs of ranks reach together?",
    ranks=(
        Parameter.integer(
            "pairs",
            "all",
            "pairs of ranks that stream at once; all: as many as the cores allow",
            minimum=1,
            option="--pairs",
        ),
        Parameter.integer("ranks", "auto", "ranks; auto: two for each pair", minimum=2),
        NODES,
        NODE_PLACEMENT,
        OVERSUBSCRIBE,
    ),
    parameters=bandwidth.STREAMED,
    words=(sizes_argument, ("--both", "0")),
    figures=(
        messages.bandwidth("bytes of messages of size_B of all pairs, over the mean time of a pair"),
        rate(
            "message_rate",
            "op/s",
            "ops",
            "messages of size_B of all pairs, over the mean time of a pair",
            series="bandwidth",
        ),
        rate(
            "slowest_pair",
            "B/s",
            "bytes",
            "bytes of messages of size_B of the slowest pair",
            is_there=lambda params: isinstance(params["pairs"], int) and params["pairs"] > 1,
        ),
    ),
    placement=pair_cpus,
    prepare=_prepare,
    estimate_s=bandwidth.estimate_s,
    between_nodes=exchanged_in_pairs,
)
