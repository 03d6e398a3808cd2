"""The container of an experiment: what starts in it, which facts of it are recorded, and whether it works at all."""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from seatrial.environments.brought import Brought
from seatrial.launch.containers.image import Image
from seatrial.launch.containers.runtime import SHARED, Inside, Runtime
from seatrial.model.container import BIND, BROUGHT, INSIDE, OUTSIDE

_BUILT = {INSIDE: "built inside", BROUGHT: "with the host's C library"}


@dataclass(frozen=True, slots=True)
class Contained:
    """An image with its runtime. `placement` is where the launcher of ranks is ("" without ranks), `is_joined` whether
    ranks share one container, `launcher` the launcher of the image for ranks inside. `build` is where the program was
    built, `brought` what goes inside with it. `facts` are recorded with every repeat."""

    image: Image
    runtime: Runtime
    version: str
    placement: str = ""
    is_joined: bool = False
    launcher: Path | None = None
    build: str = OUTSIDE
    brought: Brought | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """What identifies it in an environment: an image by its content, not by its place."""
        return {
            "image": Path(self.image.given).name if self.image.digest else self.image.given,
            "digest": self.image.digest,
            "kind": self.image.kind.value,
            "runtime": self.runtime.title,
            "version": self.version,
            **({"mpi": self.placement} if self.placement else {}),
            **({"joined": self.is_joined} if self.placement == BIND else {}),
            **({"build": self.build} if self.build != OUTSIDE else {}),
            **({"brought": self.brought.document()} if self.brought is not None else {}),
        }

    @property
    def title(self) -> str:
        """For the name of an environment."""
        words = [self.runtime.title, *([self.placement] if self.placement else [])]
        words += [_BUILT[self.build]] if self.build in _BUILT else []
        return f"in {Path(self.image.given).name} ({', '.join(words)})"

    def inside(self, folders: Sequence[Path], variables: Mapping[str, str], ranks: int = 0, tag: str = "") -> Inside:
        """One start with these folders of the host. Raises ContainerError."""
        brought = [] if self.brought is None else [self.brought.folder.parent]
        needed = dict.fromkeys(folder for folder in (*folders, *brought) if not folder.is_relative_to(SHARED))
        own = {**self.runtime.variables(), "TMPDIR": str(SHARED)}
        return Inside(
            self.image,
            self.runtime.mounts(self.image, list(needed)),
            {**own, **(variables if self.brought is None else self.brought.set_for(variables))},
            ranks if self.is_joined else 0,
            tag,
        )

    @property
    def bare(self) -> Contained:
        """The same for programs of the image: without ranks, and with nothing brought."""
        return replace(self, placement="", is_joined=False, launcher=None, brought=None)

    @property
    def is_launcher_inside(self) -> bool:
        """Whether the launcher of ranks runs in the container."""
        return self.placement == INSIDE


def tag_of(directory: Path) -> str:
    """The name under which the ranks of a repeat join."""
    return f"seatrial-{os.getpid()}-{zlib.crc32(os.fsencode(directory)):08x}"
