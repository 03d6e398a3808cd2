"""enroot, which starts squashfs files and unpacked images by name."""

from __future__ import annotations

from typing import ClassVar

from seatrial.model.environment.container import NVIDIA, Device
from seatrial.places.containers.image import ContainerError, ImageKind
from seatrial.places.containers.runtime import SHARED, Inside, Mount, Runtime


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
        words += self.devices(inside)
        for mount in inside.all_mounts:
            words += ["--mount", _mount(mount)]
        if inside.works_in is not None:
            raise ContainerError(
                "enroot cannot start a program in a folder that its image does not choose",
                "use another environment.container_runtime for applications",
            )
        for name, value in inside.variables.items():
            words += ["--env", f"{name}={value}"]
        return [*words, inside.image.given]

    def device_words(self, device: Device) -> list[str] | None:
        """NVIDIA's by its hook (98-nvidia.sh), which this variable asks for."""
        return ["--env", "NVIDIA_VISIBLE_DEVICES=all"] if device.name == NVIDIA else None

    def version_words(self) -> list[str]:
        """A subcommand."""
        return ["version"]


def _mount(mount: Mount) -> str:
    """HOST:INSIDE, with the escape of fstab(5) for blanks, and its options."""
    text = f"{mount.host}:{mount.inside}".replace(" ", r"\040")
    return f"{text}:none:x-create=auto,bind,ro" if mount.is_read_only else text
