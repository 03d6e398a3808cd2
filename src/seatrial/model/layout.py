"""The placement of ranks on hosts and CPUs."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.model.frozen import Frozen
from seatrial.model.parameter import Params, whole

RANKS, THREADS, NODES = "ranks", "threads", "nodes"
"""The parameters of an MPI program: its ranks, the threads of each, and its nodes (1 if it has no such parameter)."""

BINDING, UNBOUND = "binding", "none"
"""The setting of an environment for unbound ranks, which the kernel's scheduler may move."""


class Layout(Frozen):
    """`cpus` are the CPUs of each rank on its host, in rank order; empty if ranks are unbound. `hosts` are the nodes,
    filled one after another with equal numbers of ranks; empty: this one. `shares_cpus`: more ranks than CPUs, so
    waiting ranks must yield."""

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
        """Whether each rank is bound to its own CPUs."""
        return bool(self.cpus)

    @property
    def ranks_per_host(self) -> int:
        """The number of ranks on each node."""
        return self.ranks // max(1, len(self.hosts))

    @property
    def cpus_of_a_host(self) -> tuple[tuple[int, ...], ...] | None:
        """The CPUs of the ranks on one node if all nodes are alike; None if they differ. Empty: unbound."""
        each = self.ranks_per_host
        first = self.cpus[:each]
        alike = all(self.cpus[start : start + each] == first for start in range(0, len(self.cpus), each))
        return first if alike else None

    @property
    def threads(self) -> int:
        """The largest number of CPUs of a rank; 1 if unbound."""
        return max((len(rank) for rank in self.cpus), default=1)


def layout_of(params: Params, cpus: Sequence[int], binding: str | None = None, hosts: tuple[str, ...] = ()) -> Layout:
    """The layout for resolved parameters and the CPUs from a benchmark's `placement`: one CPU per thread, rank by rank.
    No CPUs: ranks share them. `binding` is the setting of a study; `none`: no binding. `hosts` are the nodes; empty:
    this one. Raises ValueError if the number of CPUs does not match."""
    ranks = whole(params[RANKS])
    threads = whole(params.get(THREADS, 1))
    if not cpus:
        return Layout(ranks, hosts=hosts, shares_cpus=True)
    if len(cpus) != ranks * threads:
        raise ValueError(f"{len(cpus)} CPUs for {ranks} ranks of {threads} threads")
    if binding == UNBOUND:
        return Layout(ranks, hosts=hosts)
    return Layout(ranks, tuple(tuple(cpus[r * threads : (r + 1) * threads]) for r in range(ranks)), hosts)
