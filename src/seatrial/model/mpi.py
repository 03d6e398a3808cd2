"""An MPI library of a machine: what programs are built against, and what starts their ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any


class MpiFamily(StrEnum):
    """Libraries whose launchers and settings are alike. Cray MPICH and MVAPICH are MPICH with settings of their own."""

    OPENMPI = "openmpi"
    MPICH = "mpich"
    INTEL = "intel"
    MVAPICH = "mvapich"
    CRAY = "cray"


@dataclass(frozen=True, slots=True)
class Mpi:
    """One library. `name` is what `environment.mpi` takes for it: its family for the first of each, else with its
    version, else its path.

    `library` is the file of libmpi, `build_id` what tells it from others (GNU build id, or "sha256:" and the hash of
    the file). `compile_flags` and `link_flags` follow a compiler's own. `launcher` starts ranks; None where only a
    batch system does. `variables` are what it needs to find itself, where it does not lie where it was made for, and
    what the site file sets. `is_generic`: a build for any machine, which knows nothing of this one's network.
    `is_runtime_only`: it has no mpi.h, so it runs programs that are there and none can be built with it.
    """

    name: str
    family: MpiFamily
    version: str
    library: Path
    build_id: str
    compile_flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    launcher: Path | None
    variables: tuple[tuple[str, str], ...] = ()
    is_generic: bool = False
    found: str = "PATH"
    """Where it was found, for people: PATH, a module, the site file, ..."""
    is_runtime_only: bool = False

    def document(self) -> dict[str, Any]:
        """As stored in environments, and shown."""
        return {
            "name": self.name,
            "family": self.family.value,
            "version": self.version,
            "library": str(self.library),
            "build_id": self.build_id,
            "compile_flags": list(self.compile_flags),
            "link_flags": list(self.link_flags),
            "launcher": None if self.launcher is None else str(self.launcher),
            "variables": dict(self.variables),
            "generic": self.is_generic,
            "found": self.found,
            **({"runtime_only": True} if self.is_runtime_only else {}),
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Mpi:
        """The library that `document()` described."""
        return cls(
            document["name"],
            MpiFamily(document["family"]),
            document["version"],
            Path(document["library"]),
            document["build_id"],
            tuple(document["compile_flags"]),
            tuple(document["link_flags"]),
            None if document["launcher"] is None else Path(document["launcher"]),
            tuple(document["variables"].items()),
            document["generic"],
            document["found"],
            document.get("runtime_only", False),
        )

    def named(self, name: str) -> Mpi:
        """The same under another name."""
        return replace(self, name=name)

    def for_builds(self) -> Mpi:
        """Only what decides about a program that is compiled with it: where it was found, what it is called here and
        what starts its ranks do not, so a node that has the library runs what was built on another."""
        return replace(self, name="", launcher=None, variables=(), found="", is_generic=False)

    @property
    def aliases(self) -> tuple[str, ...]:
        """What else it answers to: its family, and its family with its version."""
        return (self.family.value, f"{self.family}-{self.version}")

    @property
    def title(self) -> str:
        """Name and version for people, such as "Open MPI 4.1.4" or "MPICH 5.0.2 (generic)"."""
        labels = [
            name for name, holds in (("generic", self.is_generic), ("runtime only", self.is_runtime_only)) if holds
        ]
        return f"{_TITLES[self.family]} {self.version}" + (f" ({', '.join(labels)})" if labels else "")


_TITLES = {
    MpiFamily.OPENMPI: "Open MPI",
    MpiFamily.MPICH: "MPICH",
    MpiFamily.INTEL: "Intel MPI",
    MpiFamily.MVAPICH: "MVAPICH",
    MpiFamily.CRAY: "Cray MPICH",
}
