"""Which processes belong together: one command may start several MPI programs, or one again and again."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.probes.mpi_tables import ProcessTable

World = dict[int, ProcessTable]
"""Rank -> its table."""


def worlds(tables: Sequence[ProcessTable]) -> list[World]:
    """The processes that began MPI, world by world in order of start.

    Tables name no job: a process joins the world of its size and MPI library that was started last before it and does
    not have its rank yet. Programs of one size that run beside each other may so be mixed; one after another never.
    """
    found: list[tuple[tuple[int, str], World]] = []
    begun = [table for table in tables if table.rank is not None]
    for table in sorted(begun, key=lambda one: (one.loaded_at_s, one.rank or 0)):
        rank, kind = table.rank or 0, (table.size, table.library)
        joined = next((world for key, world in reversed(found) if key == kind and rank not in world), None)
        if joined is None:
            found.append((kind, {rank: table}))
        else:
            joined[rank] = table
    return [world for _, world in found]
