"""mpi.neighbor-allgather to mpi.neighbor-alltoallw: how long ranks take to exchange data with their neighbours.

Ranks form a periodic Cartesian grid with extents from MPI_Dims_create, in the order of MPI_COMM_WORLD, so each has two
neighbours per dimension (in a dimension of two the same rank twice, in a dimension of one itself). The figures and the
start of an iteration are those of `collective_family`.
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.benchmarks.mpi.collective_family import collective, resolved_call, resolved_largest
from seatrial.benchmarks.mpi.sizes import sizes_of
from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import Benchmark
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.machine.limit import Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

_MOST_DIMENSIONS = 16

DIMENSIONS = Parameter.integer(
    "dims", 2, "dimensions of the grid of ranks; each rank has two neighbours in each", minimum=1, option="--dimensions"
)

_OPERATIONS = {
    "neighbor-allgather": "How long does it take to gather a block from each neighbour on a grid?",
    "neighbor-allgatherv": "How long does an all-gather of neighbours with a separate count for each take?",
    "neighbor-alltoall": "How long does an exchange of blocks with the neighbours on a grid take?",
    "neighbor-alltoallv": "How long does an exchange with neighbours with a separate count for each take?",
    "neighbor-alltoallw": "How long does an exchange with neighbours with a separate datatype for each take?",
}


def _buffers(params: Params) -> int:
    """The bytes that all ranks take for each byte of a block: a block to and from each neighbour."""
    return 2 * 2 * whole(params["dims"]) * whole(params["ranks"])


def _prepare(machine: Machine, params: Params) -> Params:
    if whole(params["dims"]) > _MOST_DIMENSIONS:
        raise UsageError(f"dims={params['dims']} is too many dimensions", f"use at most {_MOST_DIMENSIONS}")
    params = resolved_call(machine, params)
    return resolved_largest(machine, params, _buffers(params))


def _limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    return Limit.unknown("s", "the number of neighbours on other nodes depends on the placement of the ranks")


def _benchmark(operation: str, question: str) -> Benchmark:
    counted = "one block to one neighbour"
    return collective(
        __file__,
        operation,
        question,
        f"one {operation.replace('-', ' ')}; size_B counts {counted}",
        counted,
        limit=_limit,
        sizes=sizes_of,
        buffers=_buffers,
        prepare=_prepare,
        first=(DIMENSIONS,),
    )


BENCHMARKS = tuple(_benchmark(operation, question) for operation, question in _OPERATIONS.items())
