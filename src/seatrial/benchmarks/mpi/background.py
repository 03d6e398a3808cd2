"""mpi.background: how much longer a small message takes while all other ranks stream to each other.

Ranks 0 and ranks / 2 play ping-pong (with ranks placed node after node: on the first node and on that in the middle).
The others, i with i + ranks / 2, are idle in one sample and stream in the next. If ranks share CPUs, the load takes
CPU time from the two, and `slowdown` measures the operating system's scheduler more than the network.
"""

from __future__ import annotations

import math
from pathlib import Path

from seatrial.benchmarks.bounds import between
from seatrial.benchmarks.mpi.messages import WRONG_BYTES
from seatrial.benchmarks.mpi.ranks import OVERSUBSCRIBE, RANKS, rank_cpus, resolved_ranks
from seatrial.benchmarks.node_placement import NODE_PLACEMENT
from seatrial.benchmarks.nodes import NODES, RANKS_PER_NODE
from seatrial.model.benchmark import Benchmark, Better, Check, Figure, Native, Skip
from seatrial.model.machine import Machine
from seatrial.model.parameter import Parameter, ParameterKind, Params, whole
from seatrial.model.quotients import TimePerWork

_SLICE_S = 0.25
_LEAST_ROUNDS = 5


def _prepare(machine: Machine, params: Params) -> Params:
    params = resolved_ranks(machine, params)
    if whole(params["ranks"]) < 4:
        raise Skip(f"a pair with another pair in the background needs at least 4 ranks, not {params['ranks']}")
    return params


def _arguments(params: Params) -> list[str]:
    return [
        *("--slice", str(_SLICE_S), "--bytes", str(params["size_B"])),
        *("--background", str(params["background_B"]), "--window", str(params["window"])),
        *("--shares", "1" if params["oversubscribe"] else "0"),
    ]


def _estimate_s(params: Params) -> float:
    return 1.5 + whole(params["window"]) * whole(params["background_B"]) * 1e-7


_one_way = TimePerWork("ops")


def _time(series: str, work: str) -> Figure:
    return Figure(name=series, series=series, unit="s", better=Better.LOWER, value=_one_way, work=work)


BENCHMARK = Benchmark(
    name="mpi.background",
    question="How much does background traffic slow down a small message?",
    program=Native(Path(__file__).with_suffix(".cpp"), _arguments),
    parameters=(
        RANKS,
        NODES,
        RANKS_PER_NODE,
        NODE_PLACEMENT,
        OVERSUBSCRIBE,
        Parameter("size_B", ParameterKind.BYTES, 8, "size of a ping-pong message", minimum=1),
        Parameter("background_B", ParameterKind.BYTES, 1 << 20, "size of a background message", minimum=1),
        Parameter(
            "window",
            ParameterKind.INTEGER,
            4,
            "messages in flight per background pair, in each direction",
            minimum=1,
        ),
    ),
    figures=(
        _time("quiet", "half the round trip of a ping-pong of size_B while the other ranks sleep"),
        _time("loaded", "half the round trip of a ping-pong of size_B while the other ranks stream"),
        Figure(
            name="slowdown",
            series="slowdown",
            unit="1",
            better=Better.LOWER,
            value=lambda sample: _one_way(sample) / sample.extra["quiet_one_way_s"],
            work="the loaded time over the quiet time right before it",
        ),
    ),
    checks=(
        WRONG_BYTES,
        Check(
            "loaded_samples",
            "samples during which every background rank streamed",
            bound=between(_LEAST_ROUNDS, math.inf),
        ),
    ),
    placement=rank_cpus,
    prepare=_prepare,
    ranks="mpi",
    estimate_s=_estimate_s,
)
