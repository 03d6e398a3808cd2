"""docker, whose daemon passes no variables on: ranks need their launcher inside."""

from __future__ import annotations

import os
from typing import ClassVar

from seatrial.model.environment.container import NVIDIA, Device
from seatrial.places.containers.image import ImageKind
from seatrial.places.containers.runtime import SHARED, Inside, Runtime


class Docker(Runtime):
    """docker."""

    name: ClassVar[str] = "docker"
    title: ClassVar[str] = "docker"
    command: ClassVar[str] = "docker"
    kinds: ClassVar[frozenset[ImageKind]] = frozenset({ImageKind.NAME})
    ranks_outside: ClassVar[bool] = False
    is_verified: ClassVar[bool] = False
    package: ClassVar[str] = "docker"

    def prefix(self, inside: Inside) -> list[str]:
        """The command: docker run as this user."""
        words = [self.command, "run", "--rm", "--pull=never", "--init", "--network=host", "--ipc=host", "--uts=host"]
        words += [f"--user={os.geteuid()}:{os.getegid()}", "-v", f"{SHARED}:{SHARED}"]
        words += self.devices(inside)
        for mount in inside.all_mounts:
            words += ["-v", mount.option]
        for name, value in inside.variables.items():
            words += ["-e", f"{name}={value}"]
        if inside.works_in is not None:
            words += ["--workdir", str(inside.works_in)]
        return [*words, inside.image.given]

    def device_words(self, device: Device) -> list[str] | None:
        """CDI names as they are; NVIDIA's by its hook; for ROCm the device files, as its images have the libraries."""
        if device.is_cdi:
            return ["--device", device.name]
        return ["--gpus", "all"] if device.name == NVIDIA else ["--device", "/dev/kfd", "--device", "/dev/dri"]
