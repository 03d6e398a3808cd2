"""systemd-nspawn, for root: an overlay in memory over the image, and process numbers of its own."""

from __future__ import annotations

from typing import ClassVar

from seatrial.places.containers.image import ImageKind
from seatrial.places.containers.runtime import SHARED, Inside, Runtime, host_name


class Nspawn(Runtime):
    """systemd-nspawn. It passes no variables on, so a launcher outside cannot reach its ranks."""

    name: ClassVar[str] = "nspawn"
    title: ClassVar[str] = "systemd-nspawn"
    command: ClassVar[str] = "systemd-nspawn"
    kinds: ClassVar[frozenset[ImageKind]] = frozenset({ImageKind.FOLDER})
    ranks_outside: ClassVar[bool] = False
    package: ClassVar[str] = "the package systemd-container (it needs root)"

    def prefix(self, inside: Inside) -> list[str]:
        """Without a journal, a machine's registration and a unit of its own."""
        words = [self.command, "-q", "-D", inside.image.given, "--volatile=overlay", "--as-pid2", "--register=no"]
        words += ["--keep-unit", "--link-journal=no", "--resolv-conf=off", "--timezone=off"]
        words += ["--console=pipe", f"--hostname={host_name()}", f"--bind={SHARED}"]
        words += self.devices(inside)
        words += [
            f"--bind{'-ro' if mount.is_read_only else ''}={mount.host}:{mount.inside}" for mount in inside.all_mounts
        ]
        words += [f"--setenv={name}={value}" for name, value in inside.variables.items()]
        if inside.works_in is not None:
            words.append(f"--chdir={inside.works_in}")
        return [*words, "--"]
