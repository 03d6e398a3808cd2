"""mpi.put, mpi.get, mpi.accumulate: time and bandwidth of access to another rank's memory.

`time` is that of one operation, completed at the target before the next begins; `bandwidth` that of a window of
operations completed together. `synchronization` completes them: MPI_Win_flush inside one long epoch (the common,
passive way: the target does nothing), a lock around each epoch, a fence, or the general active target (post, start,
complete, wait).

The OSU micro-benchmarks (osu_put_latency, ...) define the same epochs. For the fence and the general active target they
report half of an exchange in which both ranks are origins; here only one rank is.
"""

from __future__ import annotations

from seatrial.benchmarks.figures import duration
from seatrial.benchmarks.mpi.mpi_benchmark import bandwidth, exchanged_in_pairs, mpi_benchmark, pair, resolved_ranks
from seatrial.benchmarks.mpi.sizes import LARGEST, SIZE, resolved_sizes, sizes_of
from seatrial.model.benchmark.benchmark import Benchmark, Skip
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.machine.machine import Machine

_BUFFERS = 4
"""Bytes that both ranks take for each byte of an operation: a buffer and a window each."""
_LEAST_WINDOWS = 5
"""Of one size: a warm-up, three rounds, and one to spare."""
_SLOW_LINK_Bps = 1e9
"""A rate of links between nodes for the estimate; the time limit leaves room for a twentieth of it."""

_PARAMETERS = (
    SIZE,
    LARGEST,
    Parameter.choice(
        "synchronization",
        "flush",
        "how operations are completed: flush (inside one lock_all), lock, fence, pscw (post, start, complete, wait)",
        ("flush", "lock", "fence", "pscw"),
        option="--synchronization",
    ),
    Parameter.choice(
        "memory",
        "allocate",
        "who allocates the window's memory; allocate: MPI (MPI_Win_allocate); create: the program (MPI_Win_create)",
        ("allocate", "create"),
        option="--memory",
    ),
    Parameter.integer("window", 64, "operations completed together, for the bandwidth", minimum=1, option="--window"),
)


def _prepare(machine: Machine, params: Params) -> Params:
    if whole(params["ranks"]) != 2:
        raise Skip(f"one-sided operations are measured between two ranks, not {params['ranks']}")
    return resolved_sizes(machine, resolved_ranks(machine, params), _BUFFERS)


def _estimate_s(params: Params) -> float:
    nodes = params.get("nodes")
    if not isinstance(nodes, int) or nodes == 1:
        return 1.5
    return 1.5 + _LEAST_WINDOWS * whole(params["window"]) * sum(sizes_of(params)) / _SLOW_LINK_Bps


def _benchmark(operation: str, question: str, work: str) -> Benchmark:
    return mpi_benchmark(
        __file__,
        name=f"mpi.{operation}",
        question=question,
        ranks=pair("ranks: one origin and one target"),
        parameters=_PARAMETERS,
        words=(
            ("--operation", operation),
            lambda params: ["--sizes", ",".join(str(size) for size in sizes_of(params) if size)],  # not the empty one
        ),
        slice_s=0.3,
        figures=(
            duration("time", f"one {work} of size_B, completed before the next", "ops"),
            bandwidth(f"bytes of a window of {work}s of size_B, completed together"),
        ),
        prepare=_prepare,
        estimate_s=_estimate_s,
        between_nodes=exchanged_in_pairs,
    )


BENCHMARKS = (
    _benchmark("put", "How long does it take to write into another rank's memory?", "MPI_Put"),
    _benchmark("get", "How long does it take to read from another rank's memory?", "MPI_Get"),
    _benchmark(
        "accumulate",
        "How long does it take to add to another rank's memory?",
        "MPI_Accumulate (MPI_SUM of 64-bit words, of bytes if size_B is not a multiple of 8)",
    ),
)
