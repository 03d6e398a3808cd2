"""The data size beyond the caches: the rule that all benchmarks and checks use."""

from __future__ import annotations

from collections.abc import Iterable

from seatrial.model.machine import Machine

CACHES_TIMES = 4
"""Data of this multiple of the last-level cache size count as beyond the caches: STREAM's rule for each of its arrays
(J. D. McCalpin). A cache with random replacement still holds a fifth of a ring of twice its size, and 2 % of one of
four times its size."""


def beyond_caches_B(machine: Machine, cpus: Iterable[int]) -> int | None:
    """The smallest size in bytes beyond the last-level caches of these CPUs; None if the caches are unknown."""
    caches_B = machine.last_level_cache_bytes(cpus)
    return None if caches_B is None else CACHES_TIMES * caches_B
