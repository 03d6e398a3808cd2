"""What the site file says: the environments of a site, its systems and their partitions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from seatrial.errors import UnknownNameError, UsageError
from seatrial.model.mpi import MpiFamily


@dataclass(frozen=True, slots=True)
class SiteEnvironment:
    """What programs are built and run in, under a name of the site's own; None and () leave a thing as it is found.

    `mpi` is the prefix of a library or its compiler wrapper, `launcher` a program by name or path. `family` is for
    libraries that do not tell theirs. `flags` follow ours on the compiler's command line; `variables` are set where
    programs run.
    """

    name: str
    mpi: Path | None = None
    family: MpiFamily | None = None
    launcher: str | None = None
    compiler: str | None = None
    flags: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Partition:
    """Nodes that are alike. `environments` are names of the site's, the one to use first; none: all of them.

    `launcher` starts ranks on it ("mpirun" or "srun"; None: what the MPI library has). `hosts` are its nodes by name,
    `nodes` their number; () and None where the file does not say.
    """

    name: str
    environments: tuple[str, ...] = ()
    launcher: str | None = None
    hosts: tuple[str, ...] = ()
    nodes: int | None = None


@dataclass(frozen=True, slots=True)
class System:
    """One machine of the site, with at least one partition."""

    name: str
    partitions: tuple[Partition, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is to run: a partition of a system."""

    system: System
    partition: Partition


@dataclass(frozen=True, slots=True)
class Site:
    """A site file. `file` is its name for messages, "" where there is none."""

    environments: tuple[SiteEnvironment, ...] = ()
    systems: tuple[System, ...] = ()
    file: str = ""

    def place(self, text: str) -> Place:
        """The place that NAME[:PARTITION] names; the first partition where none is named.

        Raises UnknownNameError, and UsageError where the site has no systems at all.
        """
        if not self.systems:
            where = f"{self.file} has none" if self.file else "there is no site file"
            raise UsageError(
                f"the system {text!r} is not known: {where}",
                "describe it in a site file (docs/environments.md), ~/.config/seatrial/site.yaml or --site FILE",
            )
        name, _, wanted = text.partition(":")
        system = next((system for system in self.systems if system.name == name), None)
        if system is None:
            raise UnknownNameError("system", name, (system.name for system in self.systems))
        if not wanted:
            return Place(system, system.partitions[0])
        partition = next((partition for partition in system.partitions if partition.name == wanted), None)
        if partition is None:
            raise UnknownNameError(f"partition of {name}", wanted, (each.name for each in system.partitions))
        return Place(system, partition)

    def environments_at(self, place: Place | None) -> tuple[SiteEnvironment, ...]:
        """Those of a place, the one to use first; None: all, in the order of the file."""
        if place is None or not place.partition.environments:
            return self.environments
        return tuple(self._named(place.partition.environments))

    def _named(self, names: Iterable[str]) -> Iterable[SiteEnvironment]:
        known = {environment.name: environment for environment in self.environments}
        return (known[name] for name in names)
