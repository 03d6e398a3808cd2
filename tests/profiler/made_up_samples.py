"""Made-up samples of input and output: the bytes that `profiler/native/io_file.h` describes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from seatrial.profiler.tables.io_samples import COUNTERS, FILE, MAGIC, NODE, NODE_COUNTERS, NONE, RANK, SAMPLES, VERSION


@dataclass(frozen=True)
class Series:
    """One process: sample number -> its seven counters; the other samples found it unreadable."""

    pid: int = 77
    rank: int = 0
    counters: Mapping[int, Sequence[int]] = field(default_factory=dict)
    loaded_at_s: float = 1.7e9
    error: int = 0

    def data(self) -> bytes:
        head = RANK.pack(self.pid, self.rank, round(self.loaded_at_s * 1e9), self.error, 0)
        rows = (self.counters.get(k, (NONE,) * COUNTERS) for k in range(SAMPLES))
        return head + b"".join(value.to_bytes(8, "little") for row in rows for value in row)


@dataclass(frozen=True)
class Samples:
    """One node's file. `at_s` counts from 1.7e9 s; `node` holds four counters for each sample."""

    at_s: Sequence[float] = ()
    node: Sequence[Sequence[int]] = ()
    ranks: Sequence[Series] = ()
    host: str = "node1"
    period_s: float = 0.2
    version: int = VERSION

    def data(self) -> bytes:
        """The whole file."""
        host = self.host.encode()
        head = FILE.pack(MAGIC, self.version, len(self.at_s), len(self.ranks), 0, self.period_s, host)
        none = (NONE,) * NODE_COUNTERS
        nodes = [NODE.pack(round((1.7e9 + at) * 1e9), *self._node(k, none)) for k, at in enumerate(self.at_s)]
        nodes += [bytes(NODE.size)] * (SAMPLES - len(nodes))
        return b"".join([head, *nodes, *(one.data() for one in self.ranks)])

    def _node(self, k: int, none: Sequence[int]) -> Sequence[int]:
        return self.node[k] if k < len(self.node) else none

    def but(self, **changes: Any) -> Samples:
        """The same with other fields."""
        return replace(self, **changes)


def counters(read: int = 0, written: int = 0, device_read: int = 0, device_written: int = 0) -> tuple[int, ...]:
    """The kernel's seven, in its order."""
    return (read, written, read // 4096, written // 4096, device_read, device_written, 0)


def io_fields(at_s: float, row: Sequence[int]) -> tuple[int, ...]:
    """As a table's header has them; `at_s` counts from 1.7e9 s."""
    return (round((1.7e9 + at_s) * 1e9), *row)
