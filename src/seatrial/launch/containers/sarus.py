"""Sarus, which starts images of its own store."""

from __future__ import annotations

from typing import ClassVar

from seatrial.launch.containers.image import ImageKind
from seatrial.launch.containers.runtime import SHARED, Inside, Runtime


class Sarus(Runtime):
    """Sarus."""

    name: ClassVar[str] = "sarus"
    title: ClassVar[str] = "Sarus"
    command: ClassVar[str] = "sarus"
    kinds: ClassVar[frozenset[ImageKind]] = frozenset({ImageKind.NAME})
    is_verified: ClassVar[bool] = False
    package: ClassVar[str] = "Sarus (the site's administrators do)"

    def prefix(self, inside: Inside) -> list[str]:
        """The command: sarus run."""
        words = [self.command, "run", _mount(str(SHARED), str(SHARED))]
        words += [_mount(str(mount.host), str(mount.inside)) for mount in inside.mounts]
        words += [f"--env={name}={value}" for name, value in inside.variables.items()]
        if inside.works_in is not None:
            words.append(f"--workdir={inside.works_in}")
        return [*words, inside.image.given]


def _mount(host: str, inside: str) -> str:
    return f"--mount=type=bind,source={host},destination={inside}"
