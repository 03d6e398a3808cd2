"""Charliecloud: `ch-run IMAGE -- PROGRAM` in a user namespace, with the host's /dev, /proc, /sys and /tmp."""

from __future__ import annotations

import getpass
from collections.abc import Mapping, Sequence
from pathlib import Path

from seatrial.places.containers.image import ContainerError, Image, ImageKind
from seatrial.places.containers.runtime import SHARED, Inside, Mount, Runtime
from seatrial.places.containers.tiny_root import holding_program

_POINTS = ("mnt/0", "mnt/1", "mnt/2", "mnt/3", "mnt", "srv", "media", "opt")
"""Folders that images have and that are usually empty (Filesystem Hierarchy Standard 3.0; mnt/0...: Charliecloud's own
images). ch-run cannot create mount points in an image that it mounts read-only."""
_USUAL = ("mnt", "srv", "media", "opt")


class Charliecloud(Runtime):
    """Charliecloud."""

    name = "charliecloud"
    title = "Charliecloud"
    command = "ch-run"
    kinds = frozenset({ImageKind.FOLDER, ImageKind.SQUASHFS})
    joins = holding_program() is not None
    join_option = "--join-pid="
    can_mount_read_only = False
    package = "the package charliecloud"
    mount_words = ("--bind={mount.host}:{mount.inside}",)
    variable_words = ("--set-env={name}={value}",)
    of_nvidia = (
        of_rocm
    ) = ()  # all devices of the host are there; the drivers are in the image (ch-fromhost), or mounted
    folder_words = ("--cd={folder}",)

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
        literally = ["--env-no-expand"] if inside.variables else []
        return [self.command, *self.options(inside), *literally, inside.image.given, "--"]


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
