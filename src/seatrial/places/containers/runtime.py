"""The interface of a container runtime: an argument prefix, facts, and a way for ranks to join; and short-lived folders
that are the same inside and outside of a container, or on all nodes.

A runtime is one class. Nothing above `launch` knows which one is used.
"""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import ClassVar

from seatrial.environments.cached_files import fresh_folder
from seatrial.model.environment.container import NVIDIA, ContainerDevice, is_unmistakable
from seatrial.model.frozen import Frozen
from seatrial.places.containers.image import ContainerError, Image, ImageKind
from seatrial.processes.own_folder import own_folder
from seatrial.processes.working_folder import on_path

SHARED = Path("/tmp")  # noqa: S108  launchers and ranks meet there, inside and outside
"""The folder that is the same inside and outside."""


class Mount(Frozen):
    """A folder of the host, and where it is inside."""

    host: Path
    inside: Path
    is_read_only: bool = False

    @property
    def option(self) -> str:
        """HOST:INSIDE, with `:ro` if it is read-only, as several runtimes take it."""
        return f"{self.host}:{self.inside}{':ro' if self.is_read_only else ''}"

    def mapped(self, text: str) -> str:
        """`text` with the path inside, if it is the folder or begins with it."""
        host = str(self.host)
        return str(self.inside) + text[len(host) :] if text == host or text.startswith(f"{host}/") else text


class Inside(Frozen):
    """What one start needs: the image, what is mounted for it, the variables that are set only inside. `is_shared`:
    with the other ranks of this node. `works_in` is the current folder, as it is inside; None: that of the runtime.
    `added` are the mounts that the user asks for, and `devices` the devices."""

    image: Image
    mounts: tuple[Mount, ...] = ()
    variables: Mapping[str, str] = {}
    is_shared: bool = False
    works_in: Path | None = None
    added: tuple[Mount, ...] = ()
    devices: tuple[ContainerDevice, ...] = ()

    @property
    def all_mounts(self) -> tuple[Mount, ...]:
        """Those of the user first: ours may be inside them."""
        return (*self.added, *self.mounts)

    def mapped(self, text: str) -> str:
        """A word with host paths as they are inside; those that the user mounts are named as they are inside."""
        for mount in self.mounts:
            if (changed := mount.mapped(text)) != text:
                return changed
        return text


class Runtime(ABC):
    """A container runtime."""

    name: ClassVar[str]
    title: ClassVar[str]
    command: ClassVar[str]
    kinds: ClassVar[frozenset[ImageKind]]
    joins: ClassVar[bool] = False
    """Whether the ranks of a node can share one container."""
    join_option: ClassVar[str] = ""
    """The option, before a process id, that enters the container of this process; "" if the runtime lets ranks meet
    by itself (`Inside.is_shared`)."""
    ranks_outside: ClassVar[bool] = True
    """Whether a launcher outside reaches the ranks: its variables and descriptors go inside."""
    launcher: ClassVar[str] = ""
    """The launcher that starts its ranks, if it is a plug-in of that; "" for any."""
    can_mount_read_only: ClassVar[bool] = True
    is_verified: ClassVar[bool] = True
    """Whether it was ever run by its tests; the others are only tested on the commands that they build."""
    package: ClassVar[str]
    """How to get it."""
    mount_words: ClassVar[tuple[str, ...]] = ("--bind", "{mount.option}")
    read_only_words: ClassVar[tuple[str, ...]] = ()
    """The same for what cannot be written, if `Mount.option` does not say it."""
    variable_words: ClassVar[tuple[str, ...]] = ("--env", "{name}={value}")
    folder_words: ClassVar[tuple[str, ...]] = ("--workdir", "{folder}")
    """The option for the current folder."""
    of_nvidia: ClassVar[tuple[str, ...] | None] = None
    """The options that give a container NVIDIA's devices with their driver; None: there are none."""
    of_rocm: ClassVar[tuple[str, ...] | None] = None
    of_cdi: ClassVar[tuple[str, ...] | None] = None
    """Those for a device by its CDI name."""

    @abstractmethod
    def prefix(self, inside: Inside) -> list[str]:
        """The words before a program and its arguments."""

    def options(self, inside: Inside) -> list[str]:
        """The options for what the container gets: devices, mounts, variables, the current folder. Raises
        ContainerError."""
        words = self.devices(inside)
        for mount in inside.all_mounts:
            words += self.mount_option(mount)
        for name, value in inside.variables.items():
            words += [word.format(name=name, value=value) for word in self.variable_words]
        if inside.works_in is not None:
            words += [word.format(folder=inside.works_in) for word in self.folder_words]
        return words

    def mount_option(self, mount: Mount) -> list[str]:
        """The option for one mount."""
        forms = self.read_only_words if mount.is_read_only and self.read_only_words else self.mount_words
        return [word.format(mount=mount) for word in forms]

    def of_ranks(self, launcher: Sequence[str], placing: Sequence[str], inside: Inside) -> list[str]:
        """The words before the program of a rank that a launcher outside starts: it is placed there as well."""
        return [*launcher, *placing, *self.prefix(inside)]

    def variables(self) -> Mapping[str, str]:
        """The variables that the runtime itself needs."""
        return {}

    def mounts(self, image: Image, folders: Sequence[Path], added: Sequence[Mount] = ()) -> tuple[Mount, ...]:
        """Where these folders of the host are inside, beside the mounts of the user: at the same paths, unless a
        runtime cannot create these. Raises ContainerError."""
        for folder in folders:
            for mount in added:
                if folder.is_relative_to(mount.inside) and mount.host != mount.inside:
                    raise ContainerError(
                        f"{folder} would be inside {mount.host}, which is mounted at {mount.inside}",
                        "mount it at another path, or use another folder for results and SEATRIAL_CACHE",
                    )
        return tuple(Mount(folder, folder) for folder in folders)

    def devices(self, inside: Inside) -> list[str]:
        """The options for all devices. Raises ContainerError."""
        words: list[str] = []
        for device in inside.devices:
            added = self.of_cdi if device.is_cdi else self.of_nvidia if device.name == NVIDIA else self.of_rocm
            if added is None:
                raise ContainerError(
                    f"{self.title} cannot give a container the device {device.name}",
                    "choose another environment.container_runtime, or another name of the device",
                )
            words += [word.format(device=device) for word in added]
        return words

    def path(self) -> str | None:
        """The runtime's program; None if it is not installed."""
        return on_path(self.command)

    def version_words(self) -> list[str]:
        """The arguments that print the version."""
        return ["--version"]

    def require(self, image: Image) -> None:
        """Raise ContainerError unless it is installed and starts images of this kind."""
        if self.path() is None:
            raise ContainerError(f"{self.title} is not installed: no {self.command} on PATH", f"install {self.package}")
        if image.kind is not ImageKind.NAME and not is_unmistakable(image.given):
            raise ContainerError(
                f"the path {image.given!r} has a character that runtimes take for the end of a path",
                "rename it: without : , ; \\ and quotes",
            )
        if image.kind not in self.kinds:
            known = ", ".join(sorted(self.kinds))
            raise ContainerError(
                f"{self.title} does not start {image.given}, which is a {image.kind}; it starts: {known}",
                "choose another environment.container_runtime, or convert the image",
            )


def is_root() -> bool:
    """Whether this user is root."""
    return os.geteuid() == 0


def shared_folder(prefix: str) -> AbstractContextManager[Path]:
    """A new folder of this process, removed at the end; those of killed processes of this user are removed first.
    Raises OSError."""
    return own_folder(SHARED, prefix, remove=_remove_own)


@contextmanager
def folder_of_all_nodes() -> Iterator[Path]:
    """A new folder of this process in the cache, which nodes share, removed at the end. Raises CacheError, OSError."""
    folder = fresh_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_own(path: Path) -> None:
    """Anybody can make folders of this name there."""
    with suppress(OSError):
        if path.lstat().st_uid == os.geteuid():
            shutil.rmtree(path, ignore_errors=True)
