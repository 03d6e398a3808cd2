"""mpi.latency: how long a message takes from one rank to another.

Half the round trip of a ping-pong, as the OSU micro-benchmarks (osu_latency) and Intel MPI Benchmarks (PingPong) both
define it.
"""

from __future__ import annotations

from pathlib import Path

from seatrial.benchmarks.mpi.ranks import BUFFERS, DATATYPE, NODES, OVERSUBSCRIBE, rank_cpus, resolved_ranks
from seatrial.benchmarks.mpi.sizes import SIZE, sizes_of
from seatrial.model.benchmark import Benchmark, Better, Check, Figure, Native
from seatrial.model.machine import Machine
from seatrial.model.parameter import Parameter, ParameterKind, Params

_SLICE_S = 0.25


def _prepare(machine: Machine, params: Params) -> Params:
    return resolved_ranks(machine, params)


def _arguments(params: Params) -> list[str]:
    return ["--slice", str(_SLICE_S), "--sizes", ",".join(map(str, sizes_of(params)))]


BENCHMARK = Benchmark(
    name="mpi.latency",
    question="How long does a message take from one rank to another?",
    program=Native(Path(__file__).with_suffix(".cpp"), _arguments),
    parameters=(
        Parameter("ranks", ParameterKind.INTEGER, 2, "ranks: the two of the ping-pong", minimum=2),
        NODES,
        OVERSUBSCRIBE,
        SIZE,
        BUFFERS,
        DATATYPE,
    ),
    figures=(
        Figure(
            name="one_way",
            series="one_way",
            unit="s",
            better=Better.LOWER,
            value=lambda sample: sample.elapsed_s / sample.work.get("ops", 1.0),
            work="half the round trip of a ping-pong of size_B",
        ),
    ),
    checks=(
        Check("wrong_bytes", "bytes that did not arrive as they were sent", bound=lambda machine, params: (0, 0)),
        Check("lost_bounces", "turns of a cache line that were lost", bound=lambda machine, params: (0, 0)),
    ),
    placement=rank_cpus,
    prepare=_prepare,
    ranks="mpi",
    estimate_s=lambda params: 1.0,
)
