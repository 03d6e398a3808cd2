"""mpi.init: the time of MPI_Init, and the memory that MPI uses in each rank.

The time is that of MPI_Init alone; each record also has the time of the whole process, including the launcher
(`program_s`). Memory is measured twice: after MPI_Init, and after every rank has exchanged a byte with every other,
because libraries connect on demand. On many nodes the second grows with the number of ranks.
"""

from __future__ import annotations

from seatrial.benchmarks.mpi.mpi_benchmark import mpi_benchmark, resolved_ranks
from seatrial.model.benchmark.benchmark import Better, Figure, Role
from seatrial.model.results.sample import Sample
from seatrial.model.units import Unit


def _figure(name: str, series: str, unit: Unit, amount: str, work: str, role: Role | None = None) -> Figure:
    def value(sample: Sample) -> float:
        return sample.work[amount]

    return Figure(name, unit, Better.LOWER, value, work, series=series, role=role)


BENCHMARK = mpi_benchmark(
    __file__,
    name="mpi.init",
    question="How long does MPI_Init take, and how much memory does MPI use?",
    slice_s=None,
    takes_turns=False,
    parameters=(),
    figures=(
        _figure("time_max", "init", "s", "s", "MPI_Init on the slowest rank", Role.PROGRAM_START),
        _figure("time_mean", "init", "s", "mean", "MPI_Init, mean over ranks", Role.PROGRAM_START),
        _figure("memory_max", "memory", "B", "bytes", "memory that MPI_Init takes, of the rank with the most"),
        _figure("memory_mean", "memory", "B", "mean", "memory that MPI_Init takes, mean over ranks"),
        _figure(
            "memory_connected_max",
            "memory_connected",
            "B",
            "bytes",
            "memory after all ranks have exchanged messages, of the rank with the most",
        ),
        _figure(
            "memory_connected_mean",
            "memory_connected",
            "B",
            "mean",
            "memory after all ranks have exchanged messages, mean over ranks",
        ),
    ),
    prepare=resolved_ranks,
    trial=({},),
    estimate_s=lambda params: 1.0,
)
