"""docker, whose daemon passes no variables on: ranks need their launcher inside."""

from __future__ import annotations

import os
from typing import ClassVar

from seatrial.launch.containers.image import ImageKind
from seatrial.launch.containers.runtime import SHARED, Inside, Runtime


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
        words = [self.command, "run", "--rm", "--init", "--network=host", "--ipc=host", "--uts=host"]
        words += [f"--user={os.geteuid()}:{os.getegid()}", "-v", f"{SHARED}:{SHARED}"]
        for mount in inside.mounts:
            words += ["-v", f"{mount.host}:{mount.inside}"]
        for name, value in inside.variables.items():
            words += ["-e", f"{name}={value}"]
        if inside.works_in is not None:
            words += ["--workdir", str(inside.works_in)]
        return [*words, inside.image.given]
