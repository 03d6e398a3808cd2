"""Apptainer, and Singularity, which takes the same options."""

from __future__ import annotations

from typing import ClassVar

from seatrial.model.environment.container import NVIDIA, Device
from seatrial.places.containers.image import ImageKind
from seatrial.places.containers.runtime import SHARED, Inside, Runtime, is_root


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
        if inside.is_shared:
            words.append("--sharens")
        words += self.devices(inside)
        for mount in inside.all_mounts:
            words += ["--bind", mount.option]
        for name, value in inside.variables.items():
            words += ["--env", f"{name}={value}"]
        if inside.works_in is not None:
            words += ["--pwd", str(inside.works_in)]
        return [*words, inside.image.given]

    def device_words(self, device: Device) -> list[str] | None:
        """The vendor's devices, with the libraries that its list names."""
        if device.is_cdi:
            return None
        return ["--nv"] if device.name == NVIDIA else ["--rocm"]


class Singularity(Apptainer):
    """Singularity, which has no way to join."""

    name: ClassVar[str] = "singularity"
    title: ClassVar[str] = "Singularity"
    command: ClassVar[str] = "singularity"
    joins: ClassVar[bool] = False
    package: ClassVar[str] = "SingularityCE from sylabs.io"
