"""mpi.bandwidth: how fast messages stream from one rank to another; mpi.bidirectional: between two ranks, both ways at
once; mpi.multi-pair: the message rate and bandwidth of all pairs of ranks together.

A window of non-blocking sends is in flight and the receiver replies once per window, as in osu_bw of the OSU
micro-benchmarks; as there, all messages go from one buffer into another, which caches may hold. The bandwidth of a
ping-pong (one message at a time) is a different measure.

mpi.bidirectional: each rank has a window of receives and a window of sends in flight, without replies, as in osu_bibw.
Links and memory seldom reach twice their one-way bandwidth in both directions together.

mpi.multi-pair: rank p streams to rank p + pairs, all pairs at once, as in osu_mbw_mr; as there, the time is the mean
over the pairs. A mean hides slow pairs: `slowest_pair` is the rate of the slowest.
"""

from __future__ import annotations

from msgspec.structs import replace

from seatrial.benchmarks.figures import rate
from seatrial.benchmarks.mpi.mpi_benchmark import (
    DATATYPE,
    HUGE_PAGES,
    MESSAGE_MEMORY,
    OVERSUBSCRIBE,
    bandwidth,
    exchanged_in_pairs,
    message_devices_argument,
    mpi_benchmark,
    pair,
    resolved_ranks,
)
from seatrial.benchmarks.mpi.pair_placement import PLACEMENT, pair_cpus, resolved_placement
from seatrial.benchmarks.mpi.sizes import LARGEST, SIZE, resolved_sizes, sizes_argument, sizes_of
from seatrial.benchmarks.nodes import NODE_PLACEMENT, NODES, node_count
from seatrial.benchmarks.placement import thread_count
from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import Role, Skip
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.machine.machine import Machine

_LEAST_WINDOWS = 9
"""Of one size: one to try, a warm-up and three samples with one each, and one to spare."""
_SLOW_BPS = 4e9
"""A rate that large messages certainly reach, for the estimate."""

WINDOW = Parameter.integer("window", 64, "messages in flight", minimum=1, option="--window")
TWO_RANKS = pair("ranks of the pair")
STREAMED = (PLACEMENT, replace(SIZE, minimum=1), LARGEST, WINDOW, *MESSAGE_MEMORY, HUGE_PAGES, DATATYPE)
"""The parameters of all streaming benchmarks, after those of the ranks."""


def prepared(machine: Machine, params: Params) -> Params:
    """The resolved parameters of an experiment with any number of ranks."""
    resolved = resolved_ranks(machine, params)
    return resolved_placement(machine, resolved_sizes(machine, resolved, 2 * whole(resolved["ranks"])))


def prepared_pair(machine: Machine, params: Params) -> Params:
    """The resolved parameters of an experiment with two ranks."""
    if params["ranks"] != 2:
        raise UsageError(f"ranks={params['ranks']}: a pair has two", "for more ranks, see `seatrial list mpi`")
    return prepared(machine, params)


def estimate_s(params: Params) -> float:
    """The time of one repeat."""
    pairs = whole(params["ranks"]) // 2
    streamed_B = _LEAST_WINDOWS * whole(params["window"]) * sum(sizes_of(params))
    return 1.0 + pairs * streamed_B / _SLOW_BPS


def _prepare_pairs(machine: Machine, params: Params) -> Params:
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


BENCHMARK = mpi_benchmark(
    __file__,
    name="mpi.bandwidth",
    question="How fast do messages stream from one rank to another?",
    ranks=TWO_RANKS,
    parameters=STREAMED,
    words=(sizes_argument, message_devices_argument, ("--pairs", "1", "--both", "0")),
    figures=(replace(bandwidth("bytes of messages of size_B, one direction"), role=Role.MESSAGE_BANDWIDTH),),
    placement=pair_cpus,
    prepare=prepared_pair,
    trial=({},),
    estimate_s=estimate_s,
    between_nodes=exchanged_in_pairs,
)

BENCHMARKS = (
    mpi_benchmark(
        __file__,
        name="mpi.bidirectional",
        question="How fast do messages stream between two ranks in both directions at once?",
        ranks=TWO_RANKS,
        parameters=STREAMED,
        words=(sizes_argument, message_devices_argument, ("--pairs", "1", "--both", "1")),
        figures=(bandwidth("bytes of messages of size_B, both directions together"),),
        placement=pair_cpus,
        prepare=prepared_pair,
        estimate_s=lambda params: 2 * estimate_s(params),
        between_nodes=exchanged_in_pairs,
    ),
    mpi_benchmark(
        __file__,
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
        parameters=STREAMED,
        words=(sizes_argument, message_devices_argument, ("--both", "0")),
        figures=(
            bandwidth("bytes of messages of size_B of all pairs, over the mean time of a pair"),
            rate(
                "message_rate",
                "op/s",
                "messages of size_B of all pairs, over the mean time of a pair",
                series="bandwidth",
            ),
            rate(
                "slowest_pair",
                "B/s",
                "bytes of messages of size_B of the slowest pair",
                is_there=lambda params: isinstance(params["pairs"], int) and params["pairs"] > 1,
            ),
        ),
        placement=pair_cpus,
        prepare=_prepare_pairs,
        estimate_s=estimate_s,
        between_nodes=exchanged_in_pairs,
    ),
)
