"""Which processes belong together: one command may start several MPI programs, or one again and again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from seatrial.profiler.tables.process_table import ProcessTable, State

World = dict[int, ProcessTable]
"""Rank -> its table."""

_PARENT = "parent "
"""Before the job of a process that knows only its parent, which the ranks of one job on one host share."""


def worlds(tables: Sequence[ProcessTable]) -> list[World]:
    """The processes that began MPI, world by world in order of start.

    A process joins the world of its job (size and library alike) that was started last before it and does not have its
    rank yet. Where only parents are known, ranks on other hosts join the latest world that lacks their rank and has no
    rank on their host; programs of one size that run beside each other on the same hosts may there be mixed.
    """
    found: list[_World] = []
    begun = [table for table in (*tables, *_numbered(tables)) if table.rank is not None]
    for table in sorted(begun, key=lambda one: (one.loaded_at_s, one.rank or 0)):
        joined = next((world for world in reversed(found) if world.has_sisters(table)), None)
        if joined is None:
            joined = next((world for world in reversed(found) if world.may_take(table)), None)
        if joined is None:
            joined = _World()
            found.append(joined)
        joined.ranks[table.rank or 0] = table
    return [world.ranks for world in found]


@dataclass(slots=True)
class _World:
    ranks: World = field(default_factory=dict)

    def has_sisters(self, table: ProcessTable) -> bool:
        """Whether processes of the same job are in it, and this rank is not."""
        return self._lacks(table) and any(_job(one) == _job(table) for one in self.ranks.values())

    def may_take(self, table: ProcessTable) -> bool:
        """Whether a process that names no job may belong here, from a host that has none yet."""
        return (
            self._lacks(table)
            and table.job.startswith(_PARENT)
            and all(one.job.startswith(_PARENT) and one.host != table.host for one in self.ranks.values())
        )

    def _lacks(self, table: ProcessTable) -> bool:
        first = next(iter(self.ranks.values()))
        return table.rank not in self.ranks and (first.size, first.library) == (table.size, table.library)


def _job(table: ProcessTable) -> tuple[str, str]:
    """A parent's number means something on its host only."""
    return table.job, table.host if table.job.startswith(_PARENT) else ""


def _numbered(tables: Sequence[ProcessTable]) -> list[ProcessTable]:
    """The processes of libraries of an unknown family, which tell no rank: numbered by host and process, those of each
    job by themselves."""
    untold = [table for table in tables if table.rank is None and table.state is not State.LOADED]
    ordered = sorted(untold, key=lambda one: (_job(one), one.host, one.pid))
    numbered: list[ProcessTable] = []
    for job in dict.fromkeys(map(_job, ordered)):
        own = [table for table in ordered if _job(table) == job]
        numbered += [replace(table, rank=rank, size=len(own)) for rank, table in enumerate(own)]
    return numbered
