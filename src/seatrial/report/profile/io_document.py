"""The key `io` of `seatrial.profile/1`: what the ranks and nodes read and wrote."""

from __future__ import annotations

from typing import Annotated, TypedDict

from seatrial.model.json_shape import Count, From, NonNegative, shape
from seatrial.profiler.profile_io import NodeIo, ProfileIo, RankIo

_Series = list[NonNegative]


@shape(RankIo)
class RankIoJson(TypedDict):
    """From MPI_Init to MPI_Finalize; bytes and calls asked for, and what block devices moved; null: not known."""

    rank: Count
    host: str
    read_bytes: Annotated[Count | None, From("totals.read_B")]
    written_bytes: Annotated[Count | None, From("totals.written_B")]
    read_calls: Annotated[Count | None, From("totals.read_calls")]
    write_calls: Annotated[Count | None, From("totals.write_calls")]
    device_read_bytes: Annotated[Count | None, From("totals.device_read_B")]
    device_written_bytes: Annotated[Count | None, From("totals.device_written_B")]
    cancelled_bytes: Annotated[Count | None, From("totals.cancelled_B"), "were to be written and never were"]
    start_read_bytes: Annotated[
        Count | None, From("totals.start_read_B"), "before MPI_Init returned, in no other field"
    ]
    start_written_bytes: Annotated[
        Count | None, From("totals.start_written_B"), "before MPI_Init returned, in no other field"
    ]
    to_end: Annotated[bool | None, From("totals.is_to_end"), "false: to the last sample, MPI_Finalize was not reached"]
    error: Annotated[str | None, From(lambda one: one.error or None)]


@shape(ProfileIo)
class IoOverTimeJson(TypedDict):
    """Bytes in bins of equal width, sums over ranks."""

    width_s: NonNegative
    read_bytes: Annotated[_Series, From(lambda io: io.over_time("read_B"))]
    written_bytes: Annotated[_Series, From(lambda io: io.over_time("written_B"))]
    device_read_bytes: Annotated[_Series, From(lambda io: io.over_time("device_read_B"))]
    device_written_bytes: Annotated[_Series, From(lambda io: io.over_time("device_written_B"))]


@shape(NodeIo)
class NodeIoJson(TypedDict):
    """Whole nodes, whoever used them, in the bins of over_time; null: there is no such thing."""

    host: str
    disk_read_bytes: Annotated[_Series | None, From("disk_read_B")]
    disk_written_bytes: Annotated[_Series | None, From("disk_written_B")]
    nfs_read_bytes: Annotated[_Series | None, From("nfs_read_B")]
    nfs_written_bytes: Annotated[_Series | None, From("nfs_written_B")]


@shape(ProfileIo)
class IoJson(TypedDict):
    """What the ranks and nodes read and wrote; sizes are bytes, times seconds."""

    per_rank: Annotated[list[RankIoJson], From("ranks")]
    over_time: Annotated[IoOverTimeJson | None, From(lambda io: io if io.bins else None)]
    nodes: list[NodeIoJson]
