"""A guest as what a program of an experiment is started in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seatrial.model.guest import VM, Guest
from seatrial.places.contained import Contained
from seatrial.places.containers.image import Image, ImageKind
from seatrial.places.containers.runtime import SHARED, Inside

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
    from seatrial.places.guest.channel import Channel  # most runs have no guest
    from seatrial.places.guest.runtime import GuestRuntime

    runtime = GuestRuntime(Channel(*guest.channel), libraries)
    return InGuest(Image(guest.name, ImageKind.GUEST, ""), runtime, _BROUGHT if libraries else "", facts=guest.facts)


def guest_environment(document: Mapping[str, Any], guest: Contained) -> Mapping[str, Any]:
    """The document of an environment in a guest."""
    return {**document, "name": f"{document.get('name', '')} {guest.title}".strip(), VM: guest.document()}
