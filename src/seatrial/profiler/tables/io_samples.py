"""The reader of HOST.io: a node's input and output over time, written by the MPI profiler's collector.

The format is defined in `profiler/native/io_file.h`; version and magic are checked. Counters only grow; a missing
sample is NaN.
"""

from __future__ import annotations

import struct
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from seatrial.errors import ParseError
from seatrial.model.frozen import Frozen
from seatrial.profiler.tables.header import text_of
from seatrial.store.files import opened_file

if TYPE_CHECKING:
    import numpy.typing as npt

    Real = npt.NDArray[np.float64]

MAGIC = 0x4F49464F52504153
VERSION = 1
SAMPLES = 512
MOST_RANKS = 1024
COUNTERS = 7
NODE_COUNTERS = 4
NONE = 0xFFFFFFFFFFFFFFFF

FILE = struct.Struct("<QIIIId256s")
NODE = struct.Struct(f"<q{NODE_COUNTERS}Q")
RANK = struct.Struct("<iiqiI")
RANK_B = RANK.size + 8 * COUNTERS * SAMPLES
RANKS_AT = FILE.size + NODE.size * SAMPLES
_LARGEST_B = RANKS_AT + MOST_RANKS * RANK_B

_TOOL = "I/O samples"


class RankSamples(Frozen):
    """One process. `rank` is None before MPI_Init; `error` is the errno if its counters are unreadable, else 0.
    `counters` (samples, 7) are those of `proc_pid_io(5)`, in that order."""

    pid: int
    rank: int | None
    loaded_at_s: float
    error: int
    counters: Real


class IoSamples(Frozen):
    """One node. `at_s` (samples,) is seconds since the epoch; `period_s` is the sampling interval at the end.

    `node` (samples, 4) is bytes since the machine was booted: read from and written to its disks, read from and
    written to NFS servers. `left_out` counts processes beyond the capacity of the file.
    """

    host: str
    period_s: float
    left_out: int
    at_s: Real
    node: Real
    ranks: tuple[RankSamples, ...]


def read_io_samples(path: Path) -> IoSamples:
    """The samples in a file. Raises ParseError for a truncated file, another version, or inconsistent numbers, OSError
    if the file cannot be read."""
    with opened_file(path.parent, path.name) as file:
        return parse_io_samples(file.read(_LARGEST_B), str(path))


def parse_io_samples(data: bytes, name: str = "") -> IoSamples:
    """The samples in the content of a file. Raises ParseError (`name` is the file's)."""

    def require(condition: bool, why: str, text: str = "") -> None:
        if not condition:
            raise ParseError(_TOOL, None, text, why, name)

    require(len(data) >= RANKS_AT, f"the file is truncated: {len(data)} of {RANKS_AT} bytes")
    magic, version, samples, ranks, left_out, period_s, host = FILE.unpack_from(data)
    require(magic == MAGIC, "not a file of I/O samples", f"it begins with {data[:8].hex(' ')}")
    require(version == VERSION, f"the file has version {version}; this seatrial reads version {VERSION}")
    require(samples <= SAMPLES and ranks <= MOST_RANKS, f"it claims {samples} samples of {ranks} processes")
    require(isfinite(period_s) and period_s > 0, f"invalid sampling interval: {period_s:g} s")
    whole = RANKS_AT + ranks * RANK_B
    require(len(data) >= whole, f"the file is truncated: {len(data)} of {whole} bytes")
    node = np.frombuffer(data, "<u8", SAMPLES * (1 + NODE_COUNTERS), FILE.size).reshape(SAMPLES, -1)[:samples]
    return IoSamples(
        host=text_of(host),
        period_s=period_s,
        left_out=left_out,
        at_s=node[:, 0].astype("<i8") / 1e9,
        node=_numbers(node[:, 1:]),
        ranks=tuple(_rank(data, RANKS_AT + k * RANK_B, samples) for k in range(ranks)),
    )


def _rank(data: bytes, at: int, samples: int) -> RankSamples:
    pid, rank, loaded_at_ns, error, _ = RANK.unpack_from(data, at)
    counters = np.frombuffer(data, "<u8", COUNTERS * samples, at + RANK.size).reshape(samples, COUNTERS)
    return RankSamples(pid, rank if rank >= 0 else None, loaded_at_ns / 1e9, error, _numbers(counters))


def _numbers(counters: npt.NDArray[np.uint64]) -> Real:
    numbers: Real = counters.astype(np.float64)
    numbers[counters == np.uint64(NONE)] = np.nan
    return numbers
