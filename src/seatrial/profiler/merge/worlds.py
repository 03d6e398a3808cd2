"""Groups processes into MPI worlds: a command may start several MPI programs, or one repeatedly."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from seatrial.profiler.tables.header import State
from seatrial.profiler.tables.process_table import ProcessTable

World = dict[int, ProcessTable]
"""Rank -> its table."""

_PARENT = "parent "
"""Prefix of the job id of a process of which only the parent is known; the ranks of a job on one host share it."""


def worlds(tables: Sequence[ProcessTable]) -> list[World]:
    """The processes that initialized MPI, world by world in order of start.

    A process joins the most recently started world of its job (with the same size and library) that does not have its
    rank yet. If only parents are known, a rank on another host joins the latest world without its rank and without
    ranks on its host; programs of the same size that run concurrently on the same hosts may then be mixed up.
    """
    found: list[_World] = []
    begun = [table for table in (*tables, *_numbered(tables)) if table.rank is not None]
    for table in sorted(begun, key=lambda one: (one.loaded_at_s, one.rank or 0)):
        joined = next((world for world in reversed(found) if world.has_same_job(table)), None)
        if joined is None:
            joined = next((world for world in reversed(found) if world.accepts(table)), None)
        if joined is None:
            joined = _World()
            found.append(joined)
        joined.ranks[table.rank or 0] = table
    return [world.ranks for world in found]


class _World(Struct):
    ranks: World = {}

    def has_same_job(self, table: ProcessTable) -> bool:
        """Whether it has processes of the same job, but not this rank."""
        return self._has_place_for(table) and any(_job(one) == _job(table) for one in self.ranks.values())

    def accepts(self, table: ProcessTable) -> bool:
        """Whether a process without a job id may belong to it, from a host without ranks in it."""
        return (
            self._has_place_for(table)
            and table.job.startswith(_PARENT)
            and all(one.job.startswith(_PARENT) and one.host != table.host for one in self.ranks.values())
        )

    def _has_place_for(self, table: ProcessTable) -> bool:
        first = next(iter(self.ranks.values()))
        return table.rank not in self.ranks and (first.size, first.library) == (table.size, table.library)


def _job(table: ProcessTable) -> tuple[str, str]:
    """A parent's pid identifies a job only on its host."""
    return table.job, table.host if table.job.startswith(_PARENT) else ""


def _numbered(tables: Sequence[ProcessTable]) -> list[ProcessTable]:
    """The processes of MPI libraries of an unknown family, which do not report a rank: numbered by host and process id
    within each job."""
    unnumbered = [table for table in tables if table.rank is None and table.state is not State.LOADED]
    ordered = sorted(unnumbered, key=lambda one: (_job(one), one.host, one.pid))
    numbered: list[ProcessTable] = []
    for job in dict.fromkeys(map(_job, ordered)):
        own = [table for table in ordered if _job(table) == job]
        numbered += [replace(table, rank=rank, size=len(own)) for rank, table in enumerate(own)]
    return numbered
