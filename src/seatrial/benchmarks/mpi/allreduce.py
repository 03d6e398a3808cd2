"""mpi.allreduce: how long a reduction takes whose result every rank gets.

`time_mean` is the mean over ranks, `time_max` that of the slowest rank; a file may give only one of them.
"""

from __future__ import annotations

from seatrial.benchmarks.mpi.ranks import BUFFERS, DATATYPE, FROM_OTHER_TOOLS, NODES, RANKS, no_placement
from seatrial.model.benchmark import Benchmark, Better, Figure


def _time(name: str, work: str) -> Figure:
    return Figure(
        name=name,
        series=name,
        unit="s",
        better=Better.LOWER,
        value=lambda sample: sample.elapsed_s,
        work=work,
    )


BENCHMARK = Benchmark(
    name="mpi.allreduce",
    question="How long does a reduction take whose result every rank gets?",
    program=FROM_OTHER_TOOLS,
    parameters=(RANKS, NODES, BUFFERS, DATATYPE),
    figures=(
        _time("time_max", "one allreduce of size_B on the slowest rank"),
        _time("time_mean", "one allreduce of size_B, mean over ranks"),
    ),
    checks=(),
    placement=no_placement,
    ranks="mpi",
)
