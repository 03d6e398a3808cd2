"""Mounts of a container: a file or folder of the host and where it is inside, checked the same way wherever they are
written."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from seatrial.errors import UsageError
from seatrial.model.frozen import Frozen

ACCEPTED_MOUNT = (
    "SOURCE, SOURCE:INSIDE or SOURCE:INSIDE:ro, with absolute paths of letters, digits and ._@%~-; without INSIDE, the "
    "path is the same inside"
)
READ_ONLY = "ro"
SEPARATOR = "+"
"""Between several mounts, or devices, in one value of an axis."""

_PATH = re.compile(r"(?:/[A-Za-z0-9_.@%~-]{1,255}){1,64}")
"""Runtimes give a meaning to : , ; = + and \\ in their options, and to blanks in lines of fstab(5)."""
_ABOVE = tuple(map(PurePosixPath, ("/", "/usr", "/etc", "/lib", "/lib64", "/bin", "/sbin")))
_BELOW = tuple(map(PurePosixPath, ("/proc", "/sys", "/dev")))
_SHARED = PurePosixPath("/tmp")  # noqa: S108  the folder that every container shares with the host


class ContainerMount(Frozen):
    """A file or folder of the host, and its path inside."""

    source: str
    inside: str
    is_read_only: bool = False

    def __str__(self) -> str:
        """As it is written in a file."""
        return f"{self.source}:{self.inside}{f':{READ_ONLY}' if self.is_read_only else ''}"


def is_unmistakable(path: str) -> bool:
    """Whether no runtime takes a part of this path, that of an image or of a folder of ours, for an option."""
    return path.isprintable() and not set(":,;\\\"'") & set(path)


def mounts_of(texts: Iterable[str]) -> tuple[ContainerMount, ...]:
    """The mounts that these texts state. Raises UsageError for a path that a runtime could misunderstand, for one that
    would hide what every container has, and for two that lie in each other."""
    mounts = tuple(map(_mount, texts))
    for number, mount in enumerate(mounts):
        for other in mounts[:number]:
            paths = PurePosixPath(mount.inside), PurePosixPath(other.inside)
            if paths[0].is_relative_to(paths[1]) or paths[1].is_relative_to(paths[0]):
                raise UsageError(
                    f"the mounts at {mount.inside} and {other.inside} lie in each other", "mount one of them elsewhere"
                )
    return mounts


def _is_path(text: str) -> bool:
    return _PATH.fullmatch(text) is not None and not {".", ".."} & set(text.split("/"))


def _mount(text: str) -> ContainerMount:
    source, *rest = text.split(":")
    is_read_only = len(rest) == 2 and rest[1] == READ_ONLY
    inside = rest[0] if rest else source
    if len(rest) > (2 if is_read_only else 1) or not _is_path(source) or not _is_path(inside):
        raise UsageError(f"{text[:200]!r} is not a mount", f"it takes {ACCEPTED_MOUNT}")
    path = PurePosixPath(inside)
    if path in _ABOVE or any(path.is_relative_to(above) for above in _BELOW):
        raise UsageError(f"nothing can be mounted at {inside}", "choose another path inside")
    if path.is_relative_to(_SHARED):
        raise UsageError(f"{inside} is in {_SHARED}, which is that of the host", "choose another path inside")
    return ContainerMount(source, inside, is_read_only)
