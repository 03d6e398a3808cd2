"""The sizes of messages that one process measures."""

from __future__ import annotations

from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import Skip
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.machine.fact import sizing_memory_B
from seatrial.model.machine.machine import Machine

_LARGEST_B = 4 << 20
_SHARE_OF_MEMORY = 2
"""All buffers take at most this fraction of a node's memory (1/2); MPI and other processes need some too."""

SIZE = Parameter.size(
    "size_B",
    "sweep",
    "size of a message; sweep: every power of two from 1 B to largest_B; to-memory: up to what fits into memory",
    ("sweep", "to-memory"),
)

LARGEST = Parameter.size("largest_B", _LARGEST_B, "largest message of a sweep", minimum=1)

ELEMENT_B = {"MPI_CHAR": 1, "MPI_BYTE": 1, "MPI_INT": 4, "MPI_LONG": 8, "MPI_FLOAT": 4, "MPI_DOUBLE": 8}
"""Datatypes that our programs send -> bytes of an element. (long has 8 on every 64-bit system but Windows.)"""


def resolved_sizes(machine: Machine, params: Params, buffers: int) -> Params:
    """The parameters with the sizes that their words stand for on this machine.

    `buffers` says how many bytes all ranks of one node take together for each byte of a message. `to-memory` becomes a
    sweep to the largest power of two whose buffers fill at most half of the memory. Raises Skip where the machine does
    not report its memory, or a message is not a whole number of elements; UsageError for an unknown datatype.
    """
    size = params["size_B"]
    each = _element_bytes(params)
    if size == "to-memory":
        memory = sizing_memory_B(machine.facts)
        if memory is None:
            raise Skip("the memory size of this machine is unknown: give largest_B instead of to-memory")
        most = memory // _SHARE_OF_MEMORY // buffers
        if most < each:
            raise Skip(f"half of the memory does not hold {buffers} buffers of {each} B")
        return {**params, "size_B": "sweep", LARGEST.name: 1 << (most.bit_length() - 1)}
    if size == "sweep":
        if whole(params.get(LARGEST.name, _LARGEST_B)) < each:
            raise Skip(f"a sweep to {params[LARGEST.name]} B is too small for an element of {each} B")
        return params
    if whole(size) % each:
        raise Skip(f"{size} B is not a whole number of elements of {each} B ({params['datatype']})")
    return {**params, LARGEST.name: whole(size)} if LARGEST.name in params else params


def sizes_of(params: Params) -> tuple[int, ...]:
    """The sizes of a resolved point, in bytes, ascending: of a sweep those that hold whole elements."""
    if params["size_B"] != "sweep":
        return (whole(params["size_B"]),)
    largest, each = whole(params.get(LARGEST.name, _LARGEST_B)), _element_bytes(params)
    return tuple(1 << power for power in range(largest.bit_length()) if (1 << power) % each == 0)


def sizes_argument(params: Params) -> list[str]:
    """The argument with the sizes of a resolved point."""
    return ["--sizes", ",".join(map(str, sizes_of(params)))]


def _element_bytes(params: Params) -> int:
    """The bytes of an element of the datatype; 1 where a benchmark has no such parameter."""
    datatype = str(params.get("datatype", "MPI_CHAR"))
    if datatype not in ELEMENT_B:
        raise UsageError(f"datatype={datatype} is not supported", f"use one of {', '.join(ELEMENT_B)}")
    return ELEMENT_B[datatype]
