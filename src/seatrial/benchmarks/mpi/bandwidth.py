"""mpi.bandwidth: how fast messages stream from one rank to another.

A window of non-blocking sends is in flight and the receiver replies once per window, as in osu_bw of the OSU
micro-benchmarks; as there, all messages go from one buffer into another, which caches may hold. The bandwidth of a
ping-pong (one message at a time) is a different measure.

The program also measures mpi.bidirectional and mpi.multi-pair, whose declarations share this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from seatrial.benchmarks.mpi.between_nodes import exchanged_in_pairs
from seatrial.benchmarks.mpi.messages import WRONG_BYTES, bandwidth
from seatrial.benchmarks.mpi.placement import PLACEMENT, pair_cpus, resolved_placement
from seatrial.benchmarks.mpi.ranks import BUFFERS, DATATYPE, HUGE_PAGES, OVERSUBSCRIBE, resolved_ranks
from seatrial.benchmarks.mpi.sizes import LARGEST, SIZE, resolved_sizes, sizes_of
from seatrial.benchmarks.node_placement import NODE_PLACEMENT
from seatrial.benchmarks.nodes import NODES
from seatrial.errors import UsageError
from seatrial.model.benchmark import Benchmark, Native
from seatrial.model.machine import Machine
from seatrial.model.parameter import Parameter, ParameterKind, Params, whole
from seatrial.model.role import Role

PROGRAM = Path(__file__).with_suffix(".cpp")

_SLICE_S = 0.25
_LEAST_WINDOWS = 9
"""Of one size: one to try, a warm-up and three samples with one each, and one to spare."""
_SLOW_BPS = 4e9
"""A rate that large messages certainly reach, for the estimate."""

WINDOW = Parameter("window", ParameterKind.INTEGER, 64, "messages in flight", minimum=1)
TWO_RANKS = Parameter("ranks", ParameterKind.INTEGER, 2, "ranks of the pair", minimum=2)
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


def arguments(params: Params, *, pairs: int = 1, both: bool = False) -> Sequence[str]:
    """The command line of the program."""
    return [
        *("--slice", str(_SLICE_S)),
        *("--sizes", ",".join(map(str, sizes_of(params)))),
        *("--datatype", str(params["datatype"])),
        *("--huge-pages", str(whole(params["huge_pages"]))),
        *("--window", str(params["window"])),
        *("--pairs", str(pairs)),
        *("--both", str(int(both))),
    ]


def estimate_s(params: Params) -> float:
    """The time of one repeat."""
    pairs = whole(params["ranks"]) // 2
    streamed_B = _LEAST_WINDOWS * whole(params["window"]) * sum(sizes_of(params))
    return 1.0 + pairs * streamed_B / _SLOW_BPS


BENCHMARK = Benchmark(
    name="mpi.bandwidth",
    question="How fast do messages stream from one rank to another?",
    program=Native(PROGRAM, arguments, takes_turns=True),
    parameters=(TWO_RANKS, NODES, NODE_PLACEMENT, OVERSUBSCRIBE, *STREAMED),
    figures=(replace(bandwidth("bytes of messages of size_B, one direction"), role=Role.MESSAGE_BANDWIDTH),),
    checks=(WRONG_BYTES,),
    placement=pair_cpus,
    prepare=prepared_pair,
    ranks="mpi",
    trial=({},),
    estimate_s=estimate_s,
    between_nodes=exchanged_in_pairs,
)
