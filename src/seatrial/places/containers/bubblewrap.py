"""bubblewrap: a root put together from the folders of an image. As root without a user namespace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from seatrial.places.containers.image import Image, ImageKind
from seatrial.places.containers.runtime import SHARED, Inside, Mount, Runtime

_POINTS = Path("/.seatrial-mounts")
_OF_THE_HOST = frozenset({"dev", "proc", "sys", "tmp", "run"})


class Bubblewrap(Runtime):
    """bubblewrap."""

    name = title = "bubblewrap"
    command = "bwrap"
    kinds = frozenset({ImageKind.FOLDER})
    package = "the package bubblewrap"
    mount_words = ("--bind", "{mount.host}", "{mount.inside}")
    read_only_words = ("--ro-bind", "{mount.host}", "{mount.inside}")
    variable_words = ("--setenv", "{name}", "{value}")
    of_nvidia = of_rocm = ()  # all devices of the host are there; the driver's libraries are the image's, or mounted
    folder_words = ("--chdir", "{folder}")

    def mounts(self, image: Image, folders: Sequence[Path], added: Sequence[Mount] = ()) -> tuple[Mount, ...]:
        """At the same paths, but for those in folders of the image, where it cannot create any."""
        return tuple(
            mount if _is_free(image.path, mount.inside) else Mount(mount.host, _POINTS / str(number))
            for number, mount in enumerate(super().mounts(image, folders, added))
        )

    def prefix(self, inside: Inside) -> list[str]:
        """Its root is a file system in memory with the image's folders in it, so that it can create mount points. UCX
        needs /sys."""
        words = [self.command, *_image(inside.image.path)]
        words += ["--dev-bind", "/dev", "/dev", "--bind", "/proc", "/proc", "--ro-bind", "/sys", "/sys"]
        words += ["--bind", str(SHARED), str(SHARED), "--tmpfs", "/run"]
        return [*words, *self.options(inside), "--"]


def _is_free(top: Path, folder: Path) -> bool:
    """Whether the image has this folder, or nothing of its path."""
    first = folder.parts[1]
    return first not in _OF_THE_HOST and (not (top / first).exists() or (top / folder.relative_to("/")).is_dir())


def _image(top: Path) -> Iterator[str]:
    for path in sorted(top.iterdir()):
        if path.name in _OF_THE_HOST:
            continue
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), f"/{path.name}")
        else:
            yield from ("--ro-bind", str(path), f"/{path.name}")
