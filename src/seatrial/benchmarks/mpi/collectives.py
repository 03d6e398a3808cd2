"""mpi.barrier to mpi.exscan: how long the collective operations of all ranks take.

Sizes are counted as the OSU micro-benchmarks count them (`_Operation.counted`). How an iteration starts, and where that
differs from other programs, says `collective_family`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypedDict, Unpack

from seatrial.benchmarks.mpi.collective_family import (
    collective,
    fitting,
    refuse_datatype,
    resolved_call,
    resolved_largest,
)
from seatrial.benchmarks.mpi.mpi_benchmark import DATATYPE, exchanged_together, links_of_node
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
    buffers: Callable[[int], int] = lambda n: 2 * n  # with a root: a block on every rank, and of all at the root
    moved: Callable[[int, int], float] | None = None
    reduces: bool = False


def _moved_by_reduce_scatter(n: int, nodes: int) -> float:
    return (nodes - 1) / nodes


def _moved_by_alltoall(n: int, nodes: int) -> float:
    """What the ranks of a node have for those of the others."""
    own = n / nodes
    return own * (n - own)


class _More(TypedDict, total=False):
    """What operations of one kind share, as in `_Operation`."""

    buffers: Callable[[int], int]
    moved: Callable[[int, int], float]
    reduces: bool


def _alike(questions: Mapping[str, str], counted: str, **more: Unpack[_More]) -> list[_Operation]:
    return [_Operation(name, question, counted, **more) for name, question in questions.items()]


_BLOCK = "the block that each rank contributes"
_VECTOR = "the vector that each rank contributes"
_OPERATIONS = (
    _Operation("barrier", "How long does a barrier take?", ""),
    *_alike(
        {"bcast": "How long does a broadcast from one rank to all take?"},
        "the message that the root sends",
        moved=lambda n, nodes: 1.0,
    ),
    *_alike(
        {
            "gather": "How long does it take to gather a block from every rank at one rank?",
            "gatherv": "How long does a gather with a separate count for each rank take?",
        },
        _BLOCK,
    ),
    *_alike(
        {
            "scatter": "How long does it take to scatter blocks from one rank to all?",
            "scatterv": "How long does a scatter with a separate count for each rank take?",
        },
        "the block that each rank receives",
    ),
    *_alike(
        {
            "allgather": "How long does it take to gather a block from every rank at all ranks?",
            "allgatherv": "How long does an all-gather with a separate count for each rank take?",
        },
        _BLOCK,
        buffers=lambda n: n + n * n,
        moved=lambda n, nodes: n * (nodes - 1) / nodes,  # what the ranks of the other nodes give
    ),
    *_alike(
        {
            "alltoall": "How long does an exchange of blocks between all pairs of ranks take?",
            "alltoallv": "How long does an all-to-all with a separate count for each rank take?",
            "alltoallw": "How long does an all-to-all with a separate datatype for each rank take?",
        },
        "the block that each rank sends to each other",
        buffers=lambda n: 2 * n * n,
        moved=_moved_by_alltoall,
    ),
    *_alike({"reduce": "How long does a reduction to one rank take?"}, _VECTOR, reduces=True),
    *_alike(
        {"allreduce": "How long does a reduction to all ranks take?"},
        _VECTOR,
        moved=lambda n, nodes: 2 * (nodes - 1) / nodes,  # a reduce-scatter and an all-gather
        reduces=True,
    ),
    *_alike(
        {
            "reduce-scatter": "How long does a reduction take that scatters its result, with a separate count for each "
            "rank?"
        },
        _VECTOR,
        moved=_moved_by_reduce_scatter,
        reduces=True,
    ),
    *_alike(
        {"reduce-scatter-block": "How long does a reduction take that scatters its result in equal blocks?"},
        f"{_VECTOR}, in a sweep rounded down to a multiple of the ranks",
        moved=_moved_by_reduce_scatter,
        reduces=True,
    ),
    *_alike(
        {
            "scan": "How long does an inclusive prefix reduction over the ranks take?",
            "exscan": "How long does an exclusive prefix reduction over the ranks take?",
        },
        _VECTOR,
        reduces=True,
    ),
)
_TRIAL = ("barrier", "bcast", "alltoall", "allreduce")
"""Those of the standard trial."""


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


def limit_of(moved: Callable[[int, int], float] | None) -> LimitOf:
    """The least time by the bytes that must pass a node's links. A network that reduces by itself needs less, so that
    a time below it is not a fault."""

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
    return collective(
        __file__,
        operation.name,
        operation.question,
        f"one {operation.name}" + (f"; size_B counts {operation.counted}" if operation.counted else ""),
        operation.counted,
        limit=limit_of(operation.moved),
        sizes=partial(_sizes, operation),
        buffers=lambda params: operation.buffers(whole(params["ranks"])),
        prepare=partial(_prepare, operation),
        parameters=(DATATYPE, REDUCTION) if operation.reduces else (),
        trial=({},) if operation.name in _TRIAL else (),
        between_nodes=None if operation.moved is None else exchanged_together(operation.moved),
    )


BENCHMARKS = tuple(_benchmark(operation) for operation in _OPERATIONS)
