"""How large data must be to be in memory and not in caches: the one rule of all benchmarks and of what judges them."""

from __future__ import annotations

from collections.abc import Iterable

from seatrial.model.machine import Machine

CACHES_TIMES = 4
"""Data of this multiple of the last-level caches are beyond them. It is STREAM's rule for each of its arrays (J. D.
McCalpin). A cache that replaces lines at random still holds a fifth of a ring of twice its size, and 2 % of one of four
times."""


def beyond_caches_B(machine: Machine, cpus: Iterable[int]) -> int | None:
    """The least bytes that the last-level caches which these CPUs reach cannot hold; None where no source reports the
    caches."""
    caches_B = machine.last_level_cache_bytes(cpus)
    return None if caches_B is None else CACHES_TIMES * caches_B
