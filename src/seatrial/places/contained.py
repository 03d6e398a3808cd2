"""The container of an experiment: what starts in it, which facts of it are recorded, and whether it works at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.model.environment.container import BIND, BROUGHT, INSIDE, OUTSIDE, ContainerMount, Device, is_unmistakable
from seatrial.model.frozen import Frozen
from seatrial.places.brought import Brought
from seatrial.places.containers.image import ContainerError, Image
from seatrial.places.containers.runtime import SHARED, Inside, Mount, Runtime

_BUILT = {INSIDE: "built inside", BROUGHT: "with the host's C library"}


class Contained(Frozen):
    """An image with its runtime. `placement` is where the launcher of ranks is ("" without ranks), `is_joined` whether
    ranks share one container, `launcher` the launcher of the image for ranks inside. `build` is where the program was
    built, `brought` what goes inside with it. `mounts`, `devices` and `variables` are what the user gives it besides
    the image. `facts` are recorded with every repeat."""

    image: Image
    runtime: Runtime
    version: str
    placement: str = ""
    is_joined: bool = False
    launcher: Path | None = None
    build: str = OUTSIDE
    brought: Brought | None = None
    mounts: tuple[ContainerMount, ...] = ()
    devices: tuple[Device, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    facts: Mapping[str, Any] = {}

    def document(self) -> dict[str, Any]:
        """What identifies it in an environment: an image by its content, not by its place."""
        return {
            "image": self.image.name,
            "digest": self.image.digest,
            "kind": self.image.kind.value,
            "runtime": self.runtime.title,
            "version": self.version,
            **({"mpi": self.placement} if self.placement else {}),
            **({"mounts": sorted(map(str, self.mounts))} if self.mounts else {}),
            **({"devices": [device.name for device in self.devices]} if self.devices else {}),
            **({"variables_set": dict(self.variables)} if self.variables else {}),
            **({"joined": self.is_joined} if self.placement == BIND else {}),
            **({"build": self.build} if self.build != OUTSIDE else {}),
            **({"brought": self.brought.document()} if self.brought is not None else {}),
        }

    @property
    def title(self) -> str:
        """For the name of an environment."""
        words = [self.runtime.title, *([self.placement] if self.placement else [])]
        words += [_BUILT[self.build]] if self.build in _BUILT else []
        return f"in {self.image.name} ({', '.join(words)})"

    def inside(self, folders: Sequence[Path], variables: Mapping[str, str], *, of_ranks: bool = False) -> Inside:
        """One start with these folders of the host, of one program or of each rank. Raises ContainerError."""
        brought = [] if self.brought is None else [self.brought.folder.parent]
        needed = dict.fromkeys(folder for folder in (*folders, *brought) if not folder.is_relative_to(SHARED))
        # What lies in another one is mounted with it.
        tops = [folder for folder in needed if not any(above in needed for above in folder.parents)]
        for folder in tops:
            if not is_unmistakable(str(folder)):
                raise ContainerError(
                    f"the path {str(folder)!r} has a character that runtimes take for the end of a path",
                    "use another folder for results and SEATRIAL_CACHE: without : , ; \\ and quotes",
                )
        own = {**self.runtime.variables(), "TMPDIR": str(SHARED)}
        given = {**dict(self.variables), **variables}
        added = tuple(Mount(Path(mount.source), Path(mount.inside), mount.is_read_only) for mount in self.mounts)
        return Inside(
            self.image,
            self.runtime.mounts(self.image, tops, added),
            {**own, **(given if self.brought is None else self.brought.set_for(given))},
            of_ranks and self.is_joined,
            added=added,
            devices=self.devices,
        )

    @property
    def bare(self) -> Contained:
        """The same for programs of the image: without ranks, and with nothing brought."""
        return replace(self, placement="", is_joined=False, launcher=None, brought=None)

    @property
    def is_launcher_inside(self) -> bool:
        """Whether the launcher of ranks runs in the container."""
        return self.placement == INSIDE
