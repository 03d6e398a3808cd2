"""mpi.background: how much longer a small message takes while all other ranks stream to each other.

Ranks 0 and ranks / 2 play ping-pong (with ranks placed node after node: on the first node and on that in the middle).
The others, i with i + ranks / 2, are idle in one sample and stream in the next. If ranks share CPUs, the load takes
CPU time from the two, and `slowdown` measures the operating system's scheduler more than the network.
"""

from __future__ import annotations

import math

from seatrial.benchmarks.figures import between
from seatrial.benchmarks.mpi.mpi_benchmark import AWARE_RANKS, WRONG_BYTES, mpi_benchmark, resolved_ranks
from seatrial.model.benchmark.benchmark import Better, Check, Figure, Skip
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.benchmark.quotients import TimePerWork
from seatrial.model.machine.machine import Machine

_LEAST_ROUNDS = 5


def _prepare(machine: Machine, params: Params) -> Params:
    params = resolved_ranks(machine, params)
    if whole(params["ranks"]) < 4:
        raise Skip(f"a pair with another pair in the background needs at least 4 ranks, not {params['ranks']}")
    return params


_one_way = TimePerWork("ops")


def _time(series: str, work: str) -> Figure:
    return Figure(series, "s", Better.LOWER, _one_way, work)


BENCHMARK = mpi_benchmark(
    __file__,
    name="mpi.background",
    question="How much does background traffic slow down a small message?",
    ranks=AWARE_RANKS,
    takes_turns=False,
    parameters=(
        Parameter.size("size_B", 8, "size of a ping-pong message", minimum=1, option="--bytes"),
        Parameter.size("background_B", 1 << 20, "size of a background message", minimum=1, option="--background"),
        Parameter.integer(
            "window", 4, "messages in flight per background pair, in each direction", minimum=1, option="--window"
        ),
    ),
    figures=(
        _time("quiet", "half the round trip of a ping-pong of size_B while the other ranks sleep"),
        _time("loaded", "half the round trip of a ping-pong of size_B while the other ranks stream"),
        Figure(
            "slowdown",
            "1",
            Better.LOWER,
            lambda sample: _one_way(sample) / sample.extra["quiet_one_way_s"],
            "the loaded time over the quiet time right before it",
        ),
    ),
    checks=(
        WRONG_BYTES,
        Check(
            "loaded_samples", "samples during which every background rank streamed", between(_LEAST_ROUNDS, math.inf)
        ),
    ),
    prepare=_prepare,
    estimate_s=lambda params: 1.5 + whole(params["window"]) * whole(params["background_B"]) * 1e-7,
)
