"""Containers as a part of the environment: the runtimes that are known, where the launcher of ranks runs, where
programs are built; and devices and mounts, checked the same way wherever they are written."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from seatrial.errors import UsageError
from seatrial.model.frozen import Frozen

CONTAINER = "container"
CONTAINER_RUNTIME = "container_runtime"
CONTAINER_MPI = "container_mpi"
CONTAINER_MOUNTS = "container_mounts"
CONTAINER_DEVICES = "container_devices"
CONTAINER_BUILD = "container_build"
NO_CONTAINER = "none"

OUTSIDE, JOINED, INSIDE, BIND = "outside", "joined", "inside", "bind"
PLACEMENTS = (OUTSIDE, JOINED, INSIDE, BIND)
"""The launcher outside with each rank in its own container, the same with all ranks of a node in one container,
launcher and ranks inside of one container, or the launcher outside and the host's MPI library brought in."""

BROUGHT = "brought"
BUILDS = (OUTSIDE, INSIDE, BROUGHT)
"""Programs built on the host that use the libraries of the image, built by the image's compiler, or built on the host
and brought in with the host's C library, loader and other libraries."""

RUNTIMES = (
    "charliecloud",
    "apptainer",
    "singularity",
    "bubblewrap",
    "podman",
    "nspawn",
    "docker",
    "enroot",
    "sarus",
    "shifter",
    "pyxis",
)
"""In order of preference, where an image does not decide."""


NVIDIA, ROCM = "nvidia", "rocm"
ACCEPTED_DEVICE = (
    f"{NVIDIA}, {ROCM}, or a CDI name such as nvidia.com/gpu=all (Container Device Interface: vendor/class=device)"
)
_CDI = re.compile(
    r"(?P<vendor>[A-Za-z0-9][A-Za-z0-9.-]{0,126})/[A-Za-z0-9][A-Za-z0-9_-]{0,62}=[A-Za-z0-9][A-Za-z0-9_.:-]{0,126}"
)
"""Vendor, class and device (Container Device Interface specification, "CDI JSON Specification"), without what could
end the option that has them."""
_OF_VENDOR = {"nvidia.com": NVIDIA, "amd.com": ROCM}


class ContainerDevice(Frozen):
    """`is_cdi`: named as the Container Device Interface does; else `name` is `nvidia` or `rocm`."""

    name: str
    is_cdi: bool

    @property
    def kind(self) -> str | None:
        """`nvidia` or `rocm`; None for others."""
        return self.name if not self.is_cdi else _OF_VENDOR.get(self.name.partition("/")[0])


def devices_of(names: Iterable[str]) -> tuple[ContainerDevice, ...]:
    """The devices of these names. Raises UsageError for what is neither."""
    return tuple(map(_device, dict.fromkeys(names)))


def _device(name: str) -> ContainerDevice:
    if name in (NVIDIA, ROCM):
        return ContainerDevice(name, is_cdi=False)
    if not _CDI.fullmatch(name):
        raise UsageError(f"{name[:200]!r} is not a device", f"it takes {ACCEPTED_DEVICE}")
    return ContainerDevice(name, is_cdi=True)


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
    would hide what every container has, and for two of which one is inside the other."""
    mounts = tuple(map(_mount, texts))
    for number, mount in enumerate(mounts):
        for other in mounts[:number]:
            paths = PurePosixPath(mount.inside), PurePosixPath(other.inside)
            if paths[0].is_relative_to(paths[1]) or paths[1].is_relative_to(paths[0]):
                raise UsageError(
                    f"one of the mounts at {mount.inside} and {other.inside} is inside the other",
                    "mount one of them elsewhere",
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
