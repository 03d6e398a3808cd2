"""Charliecloud: `ch-run IMAGE -- PROGRAM` in a user namespace, with the host's /dev, /proc, /sys and /tmp."""

from __future__ import annotations

import getpass
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from seatrial.model.environment.container import Device
from seatrial.places.containers.image import ContainerError, Image, ImageKind
from seatrial.places.containers.runtime import SHARED, Inside, Mount, Runtime
from seatrial.places.containers.tiny_root import holding_program

_POINTS = ("mnt/0", "mnt/1", "mnt/2", "mnt/3", "mnt", "srv", "media", "opt")
"""Folders that images have and that are usually empty (Filesystem Hierarchy Standard 3.0; mnt/0...: Charliecloud's own
images). ch-run cannot create mount points in an image that it mounts read-only."""
_USUAL = ("mnt", "srv", "media", "opt")


class Charliecloud(Runtime):
    """Charliecloud."""

    name: ClassVar[str] = "charliecloud"
    title: ClassVar[str] = "Charliecloud"
    command: ClassVar[str] = "ch-run"
    kinds: ClassVar[frozenset[ImageKind]] = frozenset({ImageKind.FOLDER, ImageKind.SQUASHFS})
    joins: ClassVar[bool] = holding_program() is not None
    join_option: ClassVar[str] = "--join-pid="
    can_mount_read_only: ClassVar[bool] = False
    package: ClassVar[str] = "the package charliecloud"

    def variables(self) -> Mapping[str, str]:
        """It looks up $USER."""
        return {"USER": getpass.getuser()}

    def mounts(self, image: Image, folders: Sequence[Path], added: Sequence[Mount] = ()) -> tuple[Mount, ...]:
        """The shared folder is there; the others go to folders of the image that are empty and not mounted at."""
        others = [folder for folder in folders if not folder.is_relative_to(SHARED)]
        points = [point for point in _points(image) if not any(_overlaps(mount.inside, point) for mount in added)]
        if len(points) < len(others):
            raise ContainerError(
                f"{image.given} has {len(points)} empty folders to mount {len(others)} folders at: "
                f"looked for {', '.join('/' + name for name in _USUAL)}",
                f"create them in the image, or use folders below {SHARED} for results and SEATRIAL_CACHE",
            )
        return tuple(Mount(folder, Path("/") / point) for folder, point in zip(others, points, strict=False))

    def prefix(self, inside: Inside) -> list[str]:
        """ch-run with its options."""
        words = [self.command]
        words += self.devices(inside)
        words += [f"--bind={mount.host}:{mount.inside}" for mount in inside.all_mounts]
        words += [f"--set-env={name}={value}" for name, value in inside.variables.items()]
        if inside.variables:
            words.append("--env-no-expand")
        if inside.works_in is not None:
            words.append(f"--cd={inside.works_in}")
        return [*words, inside.image.given, "--"]

    def device_words(self, device: Device) -> list[str] | None:
        """None are needed: all devices of the host are there. The driver's libraries are those of the image
        (`ch-fromhost` puts them there), or mounted."""
        return None if device.is_cdi else []


def _overlaps(inside: Path, point: str) -> bool:
    path = Path("/") / point
    return inside.is_relative_to(path) or path.is_relative_to(inside)


def _points(image: Image) -> list[str]:
    """The mount points of an image; of a file those that are usual."""
    if image.kind is not ImageKind.FOLDER:
        return list(_USUAL)
    found: list[str] = []
    for name in _POINTS:
        path = image.path / name
        if path.is_dir() and not path.is_symlink() and not any(path.iterdir()):
            found.append(name)
    return found
