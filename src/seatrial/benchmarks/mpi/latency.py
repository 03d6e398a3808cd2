"""mpi.latency: how long a message takes from one rank to another.

Half the round trip of a ping-pong, as the OSU micro-benchmarks (osu_latency) and Intel MPI Benchmarks (PingPong) both
define it.
"""

from __future__ import annotations

from seatrial.benchmarks.mpi.ranks import BUFFERS, DATATYPE, FROM_OTHER_TOOLS, NODES, no_placement
from seatrial.model.benchmark import Benchmark, Better, Figure

BENCHMARK = Benchmark(
    name="mpi.latency",
    question="How long does a message take from one rank to another?",
    program=FROM_OTHER_TOOLS,
    parameters=(NODES, BUFFERS, DATATYPE),
    figures=(
        Figure(
            name="one_way",
            series="one_way",
            unit="s",
            better=Better.LOWER,
            value=lambda sample: sample.elapsed_s,
            work="half the round trip of a ping-pong of size_B",
        ),
    ),
    checks=(),
    placement=no_placement,
    ranks="mpi",
)
