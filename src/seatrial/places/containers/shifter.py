"""Shifter, which starts images that its gateway has prepared."""

from __future__ import annotations

from typing import ClassVar

from seatrial.model.environment.container import NVIDIA, Device
from seatrial.places.containers.image import ImageKind
from seatrial.places.containers.runtime import SHARED, Inside, Runtime


class Shifter(Runtime):
    """Shifter."""

    name: ClassVar[str] = "shifter"
    title: ClassVar[str] = "Shifter"
    command: ClassVar[str] = "shifter"
    kinds: ClassVar[frozenset[ImageKind]] = frozenset({ImageKind.NAME})
    is_verified: ClassVar[bool] = False
    package: ClassVar[str] = "Shifter (the site's administrators do)"

    def prefix(self, inside: Inside) -> list[str]:
        """The command: shifter."""
        words = [self.command, f"--image={inside.image.given}", f"--volume={SHARED}:{SHARED}"]
        words += self.devices(inside)
        words += [f"--volume={mount.option}" for mount in inside.all_mounts]
        words += [f"--env={name}={value}" for name, value in inside.variables.items()]
        if inside.works_in is not None:
            words.append(f"--workdir={inside.works_in}")
        return [*words, "--"]

    def device_words(self, device: Device) -> list[str] | None:
        """NVIDIA's by the module of that name."""
        return ["--module=gpu"] if device.name == NVIDIA else None
