"""How ranks lie on hosts and CPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seatrial.model.parameter import Params, whole

RANKS, THREADS = "ranks", "threads"
"""The parameters of an MPI program: its ranks, and the threads of each (1 where it has no such parameter)."""

BINDING, UNBOUND = "binding", "none"
"""The setting of an environment that asks for ranks without binding, which the system's scheduler may move."""


@dataclass(frozen=True, slots=True)
class Layout:
    """`cpus` has the CPUs of each rank on its host, one entry for each rank in their order; it is empty where none is
    bound. `hosts` are the nodes, filled one after another with equal numbers of ranks; none: this one. `shares_cpus`:
    there are more ranks than CPUs, so those that wait must yield."""

    ranks: int
    cpus: tuple[tuple[int, ...], ...] = ()
    hosts: tuple[str, ...] = ()
    shares_cpus: bool = False

    def __post_init__(self) -> None:
        if self.cpus and len(self.cpus) != self.ranks:
            raise ValueError(f"{len(self.cpus)} lists of CPUs for {self.ranks} ranks")
        if self.hosts and self.ranks % len(self.hosts):
            raise ValueError(f"{self.ranks} ranks do not fill {len(self.hosts)} nodes evenly")

    @property
    def is_bound(self) -> bool:
        """Whether each rank has CPUs of its own."""
        return bool(self.cpus)

    @property
    def ranks_per_host(self) -> int:
        """How many ranks each node has."""
        return self.ranks // max(1, len(self.hosts))

    @property
    def cpus_of_a_host(self) -> tuple[tuple[int, ...], ...] | None:
        """The CPUs of the ranks of one node where all nodes are alike; None where they differ. Empty: unbound."""
        each = self.ranks_per_host
        first = self.cpus[:each]
        alike = all(self.cpus[start : start + each] == first for start in range(0, len(self.cpus), each))
        return first if alike else None

    @property
    def threads(self) -> int:
        """How many CPUs a rank has at most; 1 where none is bound."""
        return max((len(rank) for rank in self.cpus), default=1)


def layout_of(params: Params, cpus: Sequence[int], binding: str | None = None) -> Layout:
    """The layout of resolved parameters, and of the CPUs that a benchmark's `placement` gave: as many for each rank as
    it has threads, rank by rank. No CPUs: ranks share them. `binding` is what a study asks for; `none`: no binding.
    Raises ValueError where the numbers do not fit together."""
    ranks = whole(params[RANKS])
    threads = whole(params.get(THREADS, 1))
    if not cpus:
        return Layout(ranks, shares_cpus=True)
    if len(cpus) != ranks * threads:
        raise ValueError(f"{len(cpus)} CPUs for {ranks} ranks of {threads} threads")
    if binding == UNBOUND:
        return Layout(ranks)
    return Layout(ranks, tuple(tuple(cpus[r * threads : (r + 1) * threads]) for r in range(ranks)))
