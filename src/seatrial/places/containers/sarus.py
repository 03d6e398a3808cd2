"""Sarus, which starts images of its own store."""

from __future__ import annotations

from typing import ClassVar

from seatrial.model.environment.container import Device
from seatrial.places.containers.image import ImageKind
from seatrial.places.containers.runtime import SHARED, Inside, Mount, Runtime


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
        words = [self.command, "run", _mount(Mount(SHARED, SHARED)), *self.devices(inside)]
        words += map(_mount, inside.all_mounts)
        words += [f"--env={name}={value}" for name, value in inside.variables.items()]
        if inside.works_in is not None:
            words.append(f"--workdir={inside.works_in}")
        return [*words, inside.image.given]

    def device_words(self, device: Device) -> list[str] | None:
        """None are needed: the site's hooks add what the job got of the batch system."""
        return None if device.is_cdi else []


def _mount(mount: Mount) -> str:
    only = ",readonly" if mount.is_read_only else ""
    return f"--mount=type=bind,source={mount.host},destination={mount.inside}{only}"
