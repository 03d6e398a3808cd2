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

    `library` is the file of libmpi, `build_id` what tells it from others (GNU build id, or the hash of the file).
    `compile_flags` and `link_flags` follow a compiler's own. `launcher` starts ranks; None where only a batch system
    does. `variables` are what it needs to find itself, where it does not lie where it was made for. `is_generic`: a
    build for any machine, which knows nothing of this one's network.
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
        )

    def named(self, name: str) -> Mpi:
        """The same under another name."""
        return replace(self, name=name)

    @property
    def title(self) -> str:
        """Name and version for people, such as "Open MPI 4.1.4" or "MPICH 5.0.2 (generic)"."""
        family = {
            MpiFamily.OPENMPI: "Open MPI",
            MpiFamily.MPICH: "MPICH",
            MpiFamily.INTEL: "Intel MPI",
            MpiFamily.MVAPICH: "MVAPICH",
            MpiFamily.CRAY: "Cray MPICH",
        }[self.family]
        return f"{family} {self.version}{' (generic)' if self.is_generic else ''}"
