"""A guest as what a program, also that of an experiment, is started in."""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial.model.machine.guest import VM, Guest
from seatrial.places.contained import Contained
from seatrial.places.containers.image import Image, ImageKind
from seatrial.places.containers.runtime import SHARED, Inside, Mount, Runtime
from seatrial.places.guest.channel import Channel

_MAIN = "import sys; sys.path.insert(0, sys.argv.pop(1)); from seatrial.places.guest.inside import main; main()"


@dataclass(frozen=True)
class GuestRuntime(Runtime):
    """Commands in one guest. With `libraries`, programs use these of this machine, the dynamic loader first."""

    channel: Channel
    libraries: tuple[Path, ...] = ()
    name = "guest"
    title = "the guest"
    command = sys.executable
    kinds = frozenset({ImageKind.GUEST})
    ranks_outside = False
    package = "the package openssh-client"

    def mounts(self, image: Image, folders: Sequence[Path], added: Sequence[Mount] = ()) -> tuple[Mount, ...]:
        """The folder of the repeat gets one of its own there; that with programs is the same for all of them."""
        there = Path(self.channel.there)
        if len(folders) < 2:
            return tuple(Mount(folder, there / "programs" / _key(folder)) for folder in folders)
        first, *others = folders
        own = Mount(first, there / f"repeat-{os.getpid()}-{_key(first)}")
        return (own, *(Mount(folder, there / "programs" / _key(folder)) for folder in others))

    def prefix(self, inside: Inside) -> list[str]:
        """The command of `inside.py`."""
        home = str(Path(__file__).absolute().parents[3])
        words = [self.command, "-I", "-S", "-c", _MAIN, home, *self.channel.words()]
        mounts = inside.mounts if len(inside.mounts) > 1 else (None, *inside.mounts)
        for mount in mounts:
            places = ("", self.channel.there) if mount is None else (str(mount.host), str(mount.inside))
            words += ["--folder", *places]
        for library in self.libraries:
            words += ["--library", str(library)]
        for name, value in inside.variables.items():
            words += ["--set", name, value]
        return [*words, "--"]


def _key(folder: Path) -> str:
    return f"{zlib.crc32(os.fsencode(folder)):08x}"


_BROUGHT = "those of this machine"
"""The `version` of a guest in which programs use libraries that come with them."""


class InGuest(Contained):
    """A virtual machine in place of a container: nothing is shared with it, and it is another machine."""

    def document(self) -> dict[str, Any]:
        """What identifies it beside its machine, which the experiment names."""
        return {
            "name": self.image.given,
            **({"libraries": self.version} if self.version else {}),
            **({"mpi": self.placement} if self.placement else {}),
        }

    @property
    def title(self) -> str:
        """For the name of an environment."""
        return f"in the guest {self.image.given}"

    def inside(self, folders: Sequence[Path], variables: Mapping[str, str], *, of_ranks: bool = False) -> Inside:
        """One start with copies of these folders."""
        needed = list(dict.fromkeys(folders))
        set_inside = {"TMPDIR": str(SHARED), **variables}
        return Inside(self.image, self.runtime.mounts(self.image, needed), set_inside)


def guest_container(guest: Guest, libraries: tuple[Path, ...] = ()) -> InGuest:
    """A guest; with `libraries`, programs use these of this machine, the dynamic loader first."""
    runtime = GuestRuntime(Channel(*guest.channel), libraries)
    return InGuest(Image(guest.name, ImageKind.GUEST, ""), runtime, _BROUGHT if libraries else "", facts=guest.facts)


def guest_environment(document: Mapping[str, Any], guest: Contained) -> Mapping[str, Any]:
    """The document of an environment in a guest."""
    return {**document, "name": f"{document.get('name', '')} {guest.title}".strip(), VM: guest.document()}
