"""mpi.put, mpi.get, mpi.accumulate: time and bandwidth of access to another rank's memory.

`time` is that of one operation, completed at the target before the next begins; `bandwidth` that of a window of
operations completed together. `synchronization` completes them: MPI_Win_flush inside one long epoch (the common,
passive way: the target does nothing), a lock around each epoch, a fence, or the general active target (post, start,
complete, wait).

The OSU micro-benchmarks (osu_put_latency, ...) define the same epochs. For the fence and the general active target they
report half of an exchange in which both ranks are origins; here only one rank is.
"""

from __future__ import annotations

from pathlib import Path

from seatrial.benchmarks.mpi.between_nodes import exchanged_in_pairs
from seatrial.benchmarks.mpi.messages import WRONG_BYTES, bandwidth
from seatrial.benchmarks.mpi.ranks import OVERSUBSCRIBE, rank_cpus, resolved_ranks
from seatrial.benchmarks.mpi.sizes import LARGEST, SIZE, resolved_sizes, sizes_of
from seatrial.benchmarks.node_placement import NODE_PLACEMENT
from seatrial.benchmarks.nodes import NODES
from seatrial.model.benchmark import Benchmark, Better, Figure, Native, Skip
from seatrial.model.machine import Machine
from seatrial.model.parameter import Parameter, ParameterKind, Params, whole
from seatrial.model.quotients import TimePerWork

_SLICE_S = 0.3
_BUFFERS = 4
"""Bytes that both ranks take for each byte of an operation: a buffer and a window each."""
_LEAST_WINDOWS = 5
"""Of one size: a warm-up, three rounds, and one to spare."""
_SLOW_LINK_Bps = 1e9
"""A rate of links between nodes for the estimate; the time limit leaves room for a twentieth of it."""

_PARAMETERS = (
    Parameter("ranks", ParameterKind.INTEGER, 2, "ranks: one origin and one target", minimum=2),
    NODES,
    NODE_PLACEMENT,
    OVERSUBSCRIBE,
    SIZE,
    LARGEST,
    Parameter(
        "synchronization",
        ParameterKind.CHOICE,
        "flush",
        "how operations are completed: flush (inside one lock_all), lock, fence, pscw (post, start, complete, wait)",
        words=("flush", "lock", "fence", "pscw"),
    ),
    Parameter(
        "memory",
        ParameterKind.CHOICE,
        "allocate",
        "who allocates the window's memory; allocate: MPI (MPI_Win_allocate); create: the program (MPI_Win_create)",
        words=("allocate", "create"),
    ),
    Parameter("window", ParameterKind.INTEGER, 64, "operations completed together, for the bandwidth", minimum=1),
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
    def arguments(params: Params) -> list[str]:
        return [
            *("--operation", operation),
            *("--slice", str(_SLICE_S)),
            *("--sizes", ",".join(str(size) for size in sizes_of(params) if size)),
            *("--synchronization", str(params["synchronization"])),
            *("--memory", str(params["memory"])),
            *("--window", str(params["window"])),
        ]

    return Benchmark(
        name=f"mpi.{operation}",
        question=question,
        program=Native(Path(__file__).with_suffix(".cpp"), arguments, takes_turns=True),
        parameters=_PARAMETERS,
        figures=(
            Figure(
                name="time",
                series="time",
                unit="s",
                better=Better.LOWER,
                value=TimePerWork("ops"),
                work=f"one {work} of size_B, completed before the next",
            ),
            bandwidth(f"bytes of a window of {work}s of size_B, completed together"),
        ),
        checks=(WRONG_BYTES,),
        placement=rank_cpus,
        prepare=_prepare,
        ranks="mpi",
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
