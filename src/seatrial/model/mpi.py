"""An MPI library of a machine: programs are built with it, and its launcher starts their ranks."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.model.frozen import Frozen


class MpiFamily(StrEnum):
    """Libraries with the same launcher and settings. Cray MPICH and MVAPICH are MPICH with further settings."""

    OPENMPI = "openmpi"
    MPICH = "mpich"
    INTEL = "intel"
    MVAPICH = "mvapich"
    CRAY = "cray"


class Mpi(Frozen):
    """One library. `name` is its name in `environment.mpi`: its family for the first of each, else with its version,
    else its path.

    `library` is the file of libmpi, `build_id` identifies it (GNU build id, or "sha256:" and the hash of the file).
    `compile_flags` and `link_flags` are passed to the compiler. `launcher` starts ranks; None if only a batch system
    can. `variables` are those that it needs if it was moved from the path it was built for, and those of the site file.
    `is_generic`: a build for any machine, without support for this one's network. `is_runtime_only`: mpi.h is missing,
    so it can run existing programs, but none can be built with it.
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
    """Where it was found, for messages: PATH, a module, the site file, ..."""
    is_runtime_only: bool = False

    def document(self) -> dict[str, Any]:
        """As stored in environments and shown by `list`."""
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
        """Only what affects programs compiled with it, without its name, launcher and place, so that another node with
        the same library can use the same build."""
        return replace(self, name="", launcher=None, variables=(), found="", is_generic=False)

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names for it: its family, and its family with its version."""
        return (self.family.value, f"{self.family}-{self.version}")

    @property
    def title(self) -> str:
        """Name and version for messages, such as "Open MPI 4.1.4" or "MPICH 5.0.2 (generic)"."""
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
