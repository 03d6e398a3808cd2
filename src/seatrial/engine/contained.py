"""The container of an experiment: what starts in it, which facts of it are recorded, and whether it works at all."""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seatrial.launch.containers.image import Image
from seatrial.launch.containers.runtime import SHARED, Inside, Runtime
from seatrial.model.container import INSIDE, JOINED


@dataclass(frozen=True, slots=True)
class Contained:
    """An image with its runtime. `placement` is where the launcher of ranks is ("" without ranks), `launcher` the
    launcher of the image for ranks inside. `facts` are recorded with every repeat."""

    image: Image
    runtime: Runtime
    version: str
    placement: str = ""
    launcher: Path | None = None
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
        }

    @property
    def title(self) -> str:
        """For the name of an environment."""
        words = [self.runtime.title, *([self.placement] if self.placement else [])]
        return f"in {Path(self.image.given).name} ({', '.join(words)})"

    def inside(self, folders: Sequence[Path], variables: Mapping[str, str], ranks: int = 0, tag: str = "") -> Inside:
        """One start with these folders of the host. Raises ContainerError."""
        needed = dict.fromkeys(folder for folder in folders if not folder.is_relative_to(SHARED))
        own = {**self.runtime.variables(), "TMPDIR": str(SHARED)}
        return Inside(
            self.image,
            self.runtime.mounts(self.image, list(needed)),
            {**own, **variables},
            ranks if self.placement == JOINED else 0,
            tag,
        )

    @property
    def is_launcher_inside(self) -> bool:
        """Whether the launcher of ranks runs in the container."""
        return self.placement == INSIDE


def tag_of(directory: Path) -> str:
    """The name under which the ranks of a repeat join."""
    return f"seatrial-{os.getpid()}-{zlib.crc32(os.fsencode(directory)):08x}"
