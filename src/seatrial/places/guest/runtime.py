"""A guest as what a program is started in; the guests that points choose: whether a program runs there, with which
libraries, and whether its ranks meet.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.environments.build import Built, Environment
from seatrial.environments.loaded_libraries import Once
from seatrial.environments.loader import interpreter
from seatrial.environments.modules import Changes
from seatrial.errors import BuildError, ParseError
from seatrial.launch.ranks import rank_layout
from seatrial.model.benchmark.program import Hello
from seatrial.model.environment.container import INSIDE
from seatrial.model.machine.guest import VM, Guest
from seatrial.places.contained import Contained
from seatrial.places.containers.faults import last_words
from seatrial.places.containers.fitted import hello_inside, tried_ranks
from seatrial.places.containers.image import ContainerError, Image, ImageKind
from seatrial.places.containers.runtime import SHARED, Inside, Mount, Runtime
from seatrial.places.guest.session import Channel
from seatrial.plan.points import Point

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
        """The folder of the repeat gets another one there; that with programs is the same for all of them."""
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


class GuestUnusableError(ContainerError):
    """A program cannot be measured in a guest."""

    need = "vm"


class Guests:
    """Each program is described once in each guest, each MPI library tried once."""

    def __init__(self) -> None:
        self._described: Once[Any, tuple[InGuest, Hello]] = Once()
        self._ranks: Once[Any, Contained] = Once()

    def of(self, point: Point, environment: Environment, built: Built, guest: Guest) -> tuple[Contained, Hello]:
        """The guest of a point, and the description of its program in it. Raises BuildError, GuestUnusableError if it
        does not work there."""
        if guest.machine is None:
            raise GuestUnusableError(guest.problem, guest.todo)
        mpi = environment.mpi
        variables = environment.of_all
        key = (guest.name, built.key, variables)
        found, hello = self._described.get(key, lambda: _described(guest, built, variables, mpi is not None))
        if mpi is None:
            return found, hello
        layout = rank_layout(point)
        try:
            ranks = self._ranks.get(
                (guest.name, mpi.library, variables, layout.ranks),
                lambda: tried_ranks(replace(found, placement=INSIDE), environment, layout),
            )
        except ContainerError as error:
            why = f"ranks of {mpi.title} do not work in the guest {guest.name}: {error.message}"
            raise _unusable(why, f"install {mpi.title} with its launcher in the guest", error) from error
        return ranks, hello


def _described(guest: Guest, built: Built, variables: Changes, has_ranks: bool) -> tuple[InGuest, Hello]:
    """With the libraries of the guest; if it does not start with these, with those of this machine. Ranks need the MPI
    library of the guest, which its launcher belongs to."""
    own, libraries = guest_container(guest), _libraries(built)
    try:
        return own, hello_inside(own, built.path, variables)
    except ContainerError as error:
        what = f"{built.path.name} does not start in the guest {guest.name}"
        if has_ranks:
            why = f"{what}, whose MPI library is missing or another: {last_words(error.output)}"
            raise _unusable(why, "install the same MPI library in the guest", error) from error
        if not libraries:
            raise _unusable(f"{what}: {last_words(error.output)}", "use a guest for this processor", error) from error
    brought = guest_container(guest, libraries)
    try:
        return brought, hello_inside(brought, built.path, variables)
    except ContainerError as error:
        why = f"{what}, neither with its libraries nor with those of this machine: {last_words(error.output)}"
        raise _unusable(why, "use a guest for this processor", error) from error


def _libraries(built: Built) -> tuple[Path, ...]:
    """The dynamic loader and the libraries of a program on this machine; () if it is linked statically."""
    try:
        loader = interpreter(built.path)
    except (ParseError, OSError):
        return ()
    if loader is None:
        return ()
    found = {Path(loader).name: Path(loader)}
    for path in map(Path, built.hello.lib_paths.values()):
        if path.is_absolute():
            found.setdefault(path.name, path)
    return tuple(found.values())


def _unusable(message: str, todo: str, error: BuildError) -> GuestUnusableError:
    return GuestUnusableError(message, todo, output=error.output)
