"""Apptainer, and Singularity, which takes the same options."""

from __future__ import annotations

from typing import ClassVar

from seatrial.launch.containers.image import ImageKind
from seatrial.launch.containers.runtime import SHARED, Inside, Runtime, is_root


class Apptainer(Runtime):
    """Apptainer."""

    name: ClassVar[str] = "apptainer"
    title: ClassVar[str] = "Apptainer"
    command: ClassVar[str] = "apptainer"
    kinds: ClassVar[frozenset[ImageKind]] = frozenset({ImageKind.FOLDER, ImageKind.SQUASHFS, ImageKind.SIF})
    joins: ClassVar[bool] = True
    is_verified: ClassVar[bool] = False
    package: ClassVar[str] = "Apptainer from apptainer.org"

    def prefix(self, inside: Inside) -> list[str]:
        """The command: apptainer exec; root without CAP_SYS_RESOURCE needs a user namespace."""
        words = [self.command, "exec", "--bind", f"{SHARED}:{SHARED}"]
        if is_root():
            words.append("--userns")
        if inside.ranks:
            words.append("--sharens")
        for mount in inside.mounts:
            words += ["--bind", f"{mount.host}:{mount.inside}"]
        for name, value in inside.variables.items():
            words += ["--env", f"{name}={value}"]
        if inside.works_in is not None:
            words += ["--pwd", str(inside.works_in)]
        return [*words, inside.image.given]


class Singularity(Apptainer):
    """Singularity, which has no way to join."""

    name: ClassVar[str] = "singularity"
    title: ClassVar[str] = "Singularity"
    command: ClassVar[str] = "singularity"
    joins: ClassVar[bool] = False
    package: ClassVar[str] = "SingularityCE from sylabs.io"
