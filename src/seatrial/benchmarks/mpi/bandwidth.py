"""mpi.bandwidth: how fast messages stream from one rank to another.

A window of non-blocking sends is in flight and the receiver replies once per window, as in osu_bw of the OSU
micro-benchmarks; as there, all messages go from one buffer into another, which caches may hold. The bandwidth of a
ping-pong (one message at a time) is a different measure.

The program also measures mpi.bidirectional and mpi.multi-pair, whose declarations share this module.
"""

from __future__ import annotations

from msgspec.structs import replace

from seatrial.benchmarks.mpi.between_nodes import exchanged_in_pairs
from seatrial.benchmarks.mpi.messages import bandwidth
from seatrial.benchmarks.mpi.mpi_benchmark import mpi_benchmark, pair
from seatrial.benchmarks.mpi.placement import PLACEMENT, pair_cpus, resolved_placement
from seatrial.benchmarks.mpi.ranks import BUFFERS, DATATYPE, HUGE_PAGES, resolved_ranks
from seatrial.benchmarks.mpi.sizes import LARGEST, SIZE, resolved_sizes, sizes_argument, sizes_of
from seatrial.errors import UsageError
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.benchmark.role import Role
from seatrial.model.machine.machine import Machine

_LEAST_WINDOWS = 9
"""Of one size: one to try, a warm-up and three samples with one each, and one to spare."""
_SLOW_BPS = 4e9
"""A rate that large messages certainly reach, for the estimate."""

WINDOW = Parameter.integer("window", 64, "messages in flight", minimum=1, option="--window")
TWO_RANKS = pair("ranks of the pair")
STREAMED = (PLACEMENT, replace(SIZE, minimum=1), LARGEST, WINDOW, BUFFERS, HUGE_PAGES, DATATYPE)
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


BENCHMARK = mpi_benchmark(
    __file__,
    name="mpi.bandwidth",
    question="How fast do messages stream from one rank to another?",
    ranks=TWO_RANKS,
    parameters=STREAMED,
    words=(sizes_argument, ("--pairs", "1", "--both", "0")),
    figures=(replace(bandwidth("bytes of messages of size_B, one direction"), role=Role.MESSAGE_BANDWIDTH),),
    placement=pair_cpus,
    prepare=prepared_pair,
    trial=({},),
    estimate_s=estimate_s,
    between_nodes=exchanged_in_pairs,
)
