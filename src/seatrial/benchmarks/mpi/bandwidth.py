"""mpi.bandwidth: how fast messages stream from one rank to another.

A window of non-blocking sends is under way at once and the receiver answers once a window, as osu_bw does. The size of
a ping-pong over its time is another measure (one message at a time), and does not belong here.
"""

from __future__ import annotations

from seatrial.benchmarks.mpi.ranks import BUFFERS, DATATYPE, FROM_OTHER_TOOLS, NODES, NOT_TOLD, UNKNOWN, no_placement
from seatrial.model.benchmark import Benchmark, Better, Figure
from seatrial.model.parameter import Parameter, ParameterKind

BENCHMARK = Benchmark(
    name="mpi.bandwidth",
    question="How fast do messages stream from one rank to another?",
    program=FROM_OTHER_TOOLS,
    parameters=(
        NODES,
        Parameter(
            "window",
            ParameterKind.INTEGER,
            UNKNOWN,
            f"messages that are under way at once; {NOT_TOLD}",
            words=(UNKNOWN,),
            minimum=1,
        ),
        BUFFERS,
        DATATYPE,
    ),
    figures=(
        Figure(
            name="bandwidth",
            series="bandwidth",
            unit="B/s",
            better=Better.HIGHER,
            value=lambda sample: sample.work["bytes"] / sample.elapsed_s,
            work="bytes of messages of size_B, one direction",
        ),
    ),
    checks=(),
    placement=no_placement,
    ranks="mpi",
)
