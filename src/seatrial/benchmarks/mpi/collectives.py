"""mpi.barrier to mpi.exscan: how long the collective operations of all ranks take.

Sizes are counted as the OSU micro-benchmarks count them (`_Operation.counted`). How an iteration starts, and where that
differs from other programs, says `collective_family`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from seatrial.benchmarks.mpi.collective_family import (
    CALL,
    LARGEST,
    START,
    TESTS,
    checks,
    estimate_s,
    figures,
    fitting,
    refuse_datatype,
    resolved_call,
    resolved_largest,
    size_parameter,
    sizes_argument,
    why_samples_missing,
)
from seatrial.benchmarks.mpi.messages import links_of_node
from seatrial.benchmarks.mpi.mpi_benchmark import exchanged_together, mpi_benchmark
from seatrial.benchmarks.mpi.ranks import BUFFERS, DATATYPE
from seatrial.benchmarks.mpi.sizes import ELEMENT_B
from seatrial.model.benchmark.benchmark import Benchmark, LimitOf, Skip
from seatrial.model.benchmark.parameter import UNKNOWN, Parameter, Params, whole
from seatrial.model.frozen import Frozen
from seatrial.model.machine.limit import Basis, Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

_MOST = 2**31 - 1
"""The largest count that MPI's calls take."""
_REDUCED = ("MPI_CHAR", "MPI_INT", "MPI_LONG", "MPI_FLOAT", "MPI_DOUBLE")

REDUCTION = Parameter.choice(
    "operation",
    "sum",
    "reduction operation (OSU and Intel MPI Benchmarks use sum)",
    ("sum", "max", "min"),
    option="--reduction",
)


class _Operation(Frozen):
    """`counted` is what size_B counts the bytes of; "" where there is no size. `buffers` gives the bytes that n ranks
    of a node take for each byte of it, `moved` those that pass the links of each of N nodes, per direction and at
    least, of n ranks in all; None where the formula is not settled."""

    name: str
    question: str
    counted: str
    buffers: Callable[[int], int] = lambda n: 2 * n
    moved: Callable[[int, int], float] | None = None
    reduces: bool = False
    trial: bool = False


def _moved_by_allreduce(n: int, nodes: int) -> float:
    """2 (N - 1) / N of the vector: a reduce-scatter and an all-gather."""
    return 2 * (nodes - 1) / nodes


def _moved_by_reduce_scatter(n: int, nodes: int) -> float:
    return (nodes - 1) / nodes


def _moved_by_allgather(n: int, nodes: int) -> float:
    """What the ranks of the other nodes give."""
    return n * (nodes - 1) / nodes


def _moved_by_alltoall(n: int, nodes: int) -> float:
    """What the ranks of a node have for those of the others."""
    own = n / nodes
    return own * (n - own)


def _with_root(n: int) -> int:
    """A block on every rank; of all at the root."""
    return 2 * n


_MESSAGE = "the message that the root sends"
_BLOCK = "the block that each rank contributes"
_VECTOR = "the vector that each rank contributes"
_PAIR = "the block that each rank sends to each other"
_OPERATIONS = (
    _Operation("barrier", "How long does a barrier take?", ""),
    _Operation(
        "bcast",
        "How long does a broadcast from one rank to all take?",
        _MESSAGE,
        moved=lambda n, nodes: 1.0,
        trial=True,
    ),
    _Operation("gather", "How long does it take to gather a block from every rank at one rank?", _BLOCK, _with_root),
    _Operation("gatherv", "How long does a gather with a separate count for each rank take?", _BLOCK, _with_root),
    _Operation(
        "scatter",
        "How long does it take to scatter blocks from one rank to all?",
        "the block that each rank receives",
        _with_root,
    ),
    _Operation(
        "scatterv",
        "How long does a scatter with a separate count for each rank take?",
        "the block that each rank receives",
        _with_root,
    ),
    _Operation(
        "allgather",
        "How long does it take to gather a block from every rank at all ranks?",
        _BLOCK,
        lambda n: n + n * n,
        _moved_by_allgather,
    ),
    _Operation(
        "allgatherv",
        "How long does an all-gather with a separate count for each rank take?",
        _BLOCK,
        lambda n: n + n * n,
        _moved_by_allgather,
    ),
    _Operation(
        "alltoall",
        "How long does an exchange of blocks between all pairs of ranks take?",
        _PAIR,
        lambda n: 2 * n * n,
        _moved_by_alltoall,
        trial=True,
    ),
    _Operation(
        "alltoallv",
        "How long does an all-to-all with a separate count for each rank take?",
        _PAIR,
        lambda n: 2 * n * n,
        _moved_by_alltoall,
    ),
    _Operation(
        "alltoallw",
        "How long does an all-to-all with a separate datatype for each rank take?",
        _PAIR,
        lambda n: 2 * n * n,
        _moved_by_alltoall,
    ),
    _Operation("reduce", "How long does a reduction to one rank take?", _VECTOR, reduces=True),
    _Operation(
        "allreduce",
        "How long does a reduction to all ranks take?",
        _VECTOR,
        moved=_moved_by_allreduce,
        reduces=True,
        trial=True,
    ),
    _Operation(
        "reduce-scatter",
        "How long does a reduction take that scatters its result, with a separate count for each rank?",
        _VECTOR,
        moved=_moved_by_reduce_scatter,
        reduces=True,
    ),
    _Operation(
        "reduce-scatter-block",
        "How long does a reduction take that scatters its result in equal blocks?",
        f"{_VECTOR}, in a sweep rounded down to a multiple of the ranks",
        moved=_moved_by_reduce_scatter,
        reduces=True,
    ),
    _Operation("scan", "How long does an inclusive prefix reduction over the ranks take?", _VECTOR, reduces=True),
    _Operation("exscan", "How long does an exclusive prefix reduction over the ranks take?", _VECTOR, reduces=True),
)


def _sizes(operation: _Operation, params: Params) -> tuple[int, ...]:
    """The sizes of a resolved point that MPI can take; Skip where there is none."""
    if not operation.counted:
        return ()
    ranks = whole(params["ranks"])
    if operation.name == "alltoallw":
        return fitting(
            params,
            lambda size: size * (ranks - 1) <= _MOST,
            "the displacements of alltoallw, int bytes, cannot address blocks of this size",
        )
    if not operation.reduces:
        return fitting(params, lambda size: True, "no size to measure")
    each = ELEMENT_B[str(params["datatype"])]
    sizes = fitting(params, lambda size: size // each <= _MOST, f"a vector has at most {_MOST} elements")
    if operation.name != "reduce-scatter-block":
        return sizes
    unit = each * ranks
    if params["size_B"] != "sweep" and sizes[0] % unit:
        raise Skip(
            f"{sizes[0]} B do not divide into equal blocks of {each} B elements for {ranks} ranks: "
            f"use a multiple of {unit} B"
        )
    rounded = sorted({size // unit * unit for size in sizes} - {0})
    if not rounded:
        raise Skip(f"a sweep to {params['largest_B']} B is too small for one element of {each} B per rank ({ranks})")
    return tuple(rounded)


def _prepare(operation: _Operation, machine: Machine, params: Params) -> Params:
    if operation.reduces:
        refuse_datatype(params, _REDUCED)
    params = resolved_call(machine, params)
    if operation.counted:
        params = resolved_largest(machine, params, operation.buffers(whole(params["ranks"])))
        _sizes(operation, params)
    return params


def _estimate_s(operation: _Operation, params: Params) -> float:
    return estimate_s(params, _sizes(operation, params), operation.buffers(whole(params["ranks"])))


def limit_of(moved: Callable[[int, int], float] | None) -> LimitOf:
    """The least time by the bytes that must pass a node's links. A network that reduces by itself needs less, so that
    a time below it is no fault."""

    def limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
        if moved is None:
            return Limit.unknown("s", "bound by the latency of its messages, not by bandwidth")
        if UNKNOWN in (params["nodes"], params["ranks"]):
            return Limit.unknown("s", "the file does not state the number of nodes and ranks")
        links = links_of_node(machine, params)
        size = samples[0].point.get("size_B")
        if links.value is None or size is None:
            return Limit.unknown("s", links.derivation)
        share = moved(whole(params["ranks"]), whole(params["nodes"]))
        return Limit(
            whole(size) * share / links.value,
            "s",
            f"{share:.4g} x size_B through the links of each node, {links.derivation}; less if the network reduces",
            Basis.PHYSICAL,
            confirmed=False,
        )

    return limit


def _benchmark(operation: _Operation) -> Benchmark:
    work = f"one {operation.name}" + (f"; size_B counts {operation.counted}" if operation.counted else "")
    sized = (size_parameter(operation.counted), LARGEST, BUFFERS) if operation.counted else ()
    return mpi_benchmark(
        __file__,
        name=f"mpi.{operation.name}",
        question=operation.question,
        parameters=(*sized, *((DATATYPE, REDUCTION) if operation.reduces else ()), *(CALL, TESTS, START)),
        figures=figures(work, limit_of(operation.moved)),
        checks=checks(partial(_sizes, operation)),
        prepare=partial(_prepare, operation),
        words=(("--operation", operation.name), sizes_argument(partial(_sizes, operation))),
        why_samples_missing=why_samples_missing,
        trial=({},) if operation.trial or operation.name == "barrier" else (),
        estimate_s=partial(_estimate_s, operation),
        between_nodes=None if operation.moved is None else exchanged_together(operation.moved),
    )


BENCHMARKS = tuple(_benchmark(operation) for operation in _OPERATIONS)
