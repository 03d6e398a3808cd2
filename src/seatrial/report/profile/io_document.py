"""The key `io` of `seatrial.profile/1`: what the ranks and nodes read and wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seatrial.profiler.profile_io import NodeIo, ProfileIo, RankIo


def io_document(io: ProfileIo) -> dict[str, Any]:
    """Sizes in bytes, times in seconds; `over_time` is a sum over ranks, null if nothing was sampled."""
    return {
        "per_rank": [_rank(one) for one in io.ranks],
        "over_time": _over_time(io) if io.bins else None,
        "nodes": [_node(one) for one in io.nodes],
    }


def _rank(one: RankIo) -> dict[str, Any]:
    t = one.totals
    return {
        "rank": one.rank,
        "host": one.host,
        "read_bytes": t.read_B if t else None,
        "written_bytes": t.written_B if t else None,
        "read_calls": t.read_calls if t else None,
        "write_calls": t.write_calls if t else None,
        "device_read_bytes": t.device_read_B if t else None,
        "device_written_bytes": t.device_written_B if t else None,
        "cancelled_bytes": t.cancelled_B if t else None,
        "start_read_bytes": t.start_read_B if t else None,
        "start_written_bytes": t.start_written_B if t else None,
        "to_end": t.is_to_end if t else None,
        "error": one.error or None,
    }


def _over_time(io: ProfileIo) -> dict[str, Any]:
    return {
        "width_s": io.width_s,
        "read_bytes": list(io.over_time("read_B")),
        "written_bytes": list(io.over_time("written_B")),
        "device_read_bytes": list(io.over_time("device_read_B")),
        "device_written_bytes": list(io.over_time("device_written_B")),
    }


def _node(one: NodeIo) -> dict[str, Any]:
    def listed(series: Sequence[float] | None) -> list[float] | None:
        return None if series is None else list(series)

    return {
        "host": one.host,
        "disk_read_bytes": listed(one.disk_read_B),
        "disk_written_bytes": listed(one.disk_written_B),
        "nfs_read_bytes": listed(one.nfs_read_B),
        "nfs_written_bytes": listed(one.nfs_written_B),
    }
