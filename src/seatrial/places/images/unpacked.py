"""Archives of images as folders in the cache, which every runtime for folders starts: unpacked once, whole or not at
all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from msgspec.structs import replace

from seatrial.environments.cache import check_folder, make_folder, own_cache
from seatrial.errors import SeatrialError
from seatrial.places.containers.image import ContainerError, Image, ImageKind
from seatrial.places.images.entries import LeftOut
from seatrial.places.images.given import add_given
from seatrial.places.images.private import move_into_place, private_folder
from seatrial.places.images.tree import Tree, add_mount_points
from seatrial.places.images.tree import folder as folder_entry
from seatrial.places.images.write import write_folder

_FOLDER = "images"
_LATEST_S = (1 << 33) - 1  # the largest time of a plain tar: times stay as they are
_SPARE_B = 256 << 20
_POINTS = ("mnt", "srv", "media", "opt")
"""Empty folders, where Charliecloud mounts what is not in the image."""


def unpacked(image: Image) -> Image:
    """The folder of an archive: a tar of a root, one of `podman save` or `docker save`, or an OCI layout.

    Nothing of an archive leads out of its folder, and nothing in it gives rights: devices and setuid bits stay out
    (places/images/tree.py). Raises ContainerError.
    """
    try:
        top = own_cache().path / _FOLDER
        folder = top / image.digest.partition(":")[2][:32]
        if not folder.exists():
            make_folder(top)
            check_folder(top)
            _unpack(image.path, folder)
    except (SeatrialError, OSError) as error:
        why = error.message if isinstance(error, SeatrialError) else str(error.strerror or error)
        todo = error.todo if isinstance(error, SeatrialError) else "give another SEATRIAL_CACHE"
        raise ContainerError(f"{image.given} cannot be unpacked: {why}", todo) from error
    return replace(image, given=str(folder), kind=ImageKind.FOLDER, archive=image.given)


def _unpack(archive: Path, folder: Path) -> None:
    with private_folder(folder.parent) as work:
        tree = Tree(_LATEST_S)
        add_given(tree, archive, work, LeftOut())
        add_mount_points(tree)
        for name in _POINTS:
            if name not in tree:
                tree.add(name, folder_entry(tree.mtime_s))
        needed = sum({id(entry): entry.size for _, entry in tree.sorted()}.values()) + _SPARE_B
        free = shutil.disk_usage(work).free
        if needed > free:
            raise ContainerError(
                f"it needs {needed >> 20} MiB, and {folder.parent} has {free >> 20} MiB",
                "free some space, or give another SEATRIAL_CACHE",
            )
        write_folder(tree, work / "root", with_owners=os.geteuid() == 0)
        if not folder.exists():  # another process may have been first
            move_into_place(work / "root", folder, replace=False)
