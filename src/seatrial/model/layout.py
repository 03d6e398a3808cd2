"""How ranks lie on hosts and CPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seatrial.model.parameter import Params, whole

RANKS, THREADS = "ranks", "threads"
"""The parameters of an MPI program: its ranks, and the threads of each (1 where it has no such parameter)."""


@dataclass(frozen=True, slots=True)
class Layout:
    """`cpus` has the CPUs of each rank on its host, one entry for each rank in their order; it is empty where ranks
    share what there is and none is bound. `hosts` are the nodes, filled one after another with equal numbers of ranks;
    none: this one."""

    ranks: int
    cpus: tuple[tuple[int, ...], ...] = ()
    hosts: tuple[str, ...] = ()

    @property
    def is_bound(self) -> bool:
        """Whether each rank has CPUs of its own."""
        return bool(self.cpus)


def layout_of(params: Params, cpus: Sequence[int]) -> Layout:
    """The layout of resolved parameters, and of the CPUs that a benchmark's `placement` gave: as many for each rank as
    it has threads, rank by rank. No CPUs: unbound. Raises ValueError where the numbers do not fit together."""
    ranks = whole(params[RANKS])
    threads = whole(params.get(THREADS, 1))
    if not cpus:
        return Layout(ranks)
    if len(cpus) != ranks * threads:
        raise ValueError(f"{len(cpus)} CPUs for {ranks} ranks of {threads} threads")
    return Layout(ranks, tuple(tuple(cpus[r * threads : (r + 1) * threads]) for r in range(ranks)))
