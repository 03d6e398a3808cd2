"""The guests that points choose: whether a program runs there, with which libraries, and whether its ranks meet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.environments.build import Built, Environment
from seatrial.environments.elf import interpreter
from seatrial.environments.loaded_libraries import Once
from seatrial.errors import BuildError, ParseError, ProtocolError
from seatrial.launch.ranks import rank_layout
from seatrial.model.benchmark.program import Hello, parse_record
from seatrial.model.environment.container import INSIDE
from seatrial.model.machine.guest import Guest
from seatrial.places.contained import Contained
from seatrial.places.containers.faults import last_words
from seatrial.places.containers.fitted import run_inside, tried_ranks
from seatrial.places.containers.image import ContainerError
from seatrial.places.guest.runtime import InGuest, guest_container
from seatrial.plan.points import Point

_Variables = tuple[tuple[str, str | None], ...]


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
        variables = (*(mpi.variables if mpi is not None else ()), *environment.variables)
        key = (guest.name, built.key, variables)
        found, hello = self._described.get(key, lambda: _described(guest, built, variables, mpi is not None))
        if mpi is None:
            return found, hello
        layout = rank_layout(point)
        try:
            ranks = self._ranks.get(
                (guest.name, mpi.library, variables, layout.ranks),
                lambda: tried_ranks(replace(found, placement=INSIDE), environment, mpi, layout, variables),
            )
        except ContainerError as error:
            why = f"ranks of {mpi.title} do not work in the guest {guest.name}: {error.message}"
            raise _unusable(why, f"install {mpi.title} with its launcher in the guest", error) from error
        return ranks, hello


def _described(guest: Guest, built: Built, variables: _Variables, has_ranks: bool) -> tuple[InGuest, Hello]:
    """With the libraries of the guest; if it does not start with these, with those of this machine. Ranks need the MPI
    library of the guest, which its launcher belongs to."""
    own, libraries = guest_container(guest), _libraries(built)
    try:
        return own, _hello(own, built, variables)
    except ContainerError as error:
        what = f"{built.path.name} does not start in the guest {guest.name}"
        if has_ranks:
            why = f"{what}, whose MPI library is missing or another: {last_words(error.output)}"
            raise _unusable(why, "install the same MPI library in the guest", error) from error
        if not libraries:
            raise _unusable(f"{what}: {last_words(error.output)}", "use a guest for this processor", error) from error
    brought = guest_container(guest, libraries)
    try:
        return brought, _hello(brought, built, variables)
    except ContainerError as error:
        why = f"{what}, neither with its libraries nor with those of this machine: {last_words(error.output)}"
        raise _unusable(why, "use a guest for this processor", error) from error


def _hello(guest: InGuest, built: Built, variables: _Variables) -> Hello:
    """A program's description of itself in a guest. Raises ContainerError."""
    try:
        hello = parse_record(run_inside(guest, [str(built.path), "--describe"], variables).encode()).hello
    except ProtocolError as error:
        raise ContainerError(f"{built.path.name} printed something else: {error}", output=str(error)) from error
    if hello is None:
        raise ContainerError(f"{built.path.name} does not describe itself", output="no description")
    return hello


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
