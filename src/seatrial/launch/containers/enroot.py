"""enroot, which starts squashfs files and unpacked images by name."""

from __future__ import annotations

from typing import ClassVar

from seatrial.launch.containers.error import ContainerError
from seatrial.launch.containers.image import ImageKind
from seatrial.launch.containers.runtime import SHARED, Inside, Runtime


class Enroot(Runtime):
    """enroot."""

    name: ClassVar[str] = "enroot"
    title: ClassVar[str] = "enroot"
    command: ClassVar[str] = "enroot"
    kinds: ClassVar[frozenset[ImageKind]] = frozenset({ImageKind.SQUASHFS, ImageKind.NAME})
    is_verified: ClassVar[bool] = False
    package: ClassVar[str] = "enroot"

    def prefix(self, inside: Inside) -> list[str]:
        """The command: enroot start; mounts are lines of fstab(5)."""
        words = [self.command, "start", "--mount", f"{SHARED}:{SHARED}"]
        for mount in inside.mounts:
            words += ["--mount", f"{mount.host}:{mount.inside}"]
        if inside.works_in is not None:
            raise ContainerError(
                "enroot cannot start a program in a folder that its image does not choose",
                "use another environment.container_runtime for applications",
            )
        for name, value in inside.variables.items():
            words += ["--env", f"{name}={value}"]
        return [*words, inside.image.given]

    def version_words(self) -> list[str]:
        """A subcommand."""
        return ["version"]
