"""The sizes of messages that one process measures."""

from __future__ import annotations

from seatrial.model.parameter import Parameter, ParameterKind, Params, whole

LATENCY_SIZES_B = tuple(1 << power for power in range(23))
"""1 B to 4 MiB."""

SIZE = Parameter(
    "size_B",
    ParameterKind.BYTES,
    "sweep",
    "bytes of a message; sweep: every power of two from 1 B to 4 MiB",
    words=("sweep",),
)


def sizes_of(params: Params) -> tuple[int, ...]:
    """The sizes of a resolved point, in bytes, ascending."""
    return LATENCY_SIZES_B if params["size_B"] == "sweep" else (whole(params["size_B"]),)
