"""The guests that programs can run in here, and the files that describe a guest."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

from seatrial.errors import SeatrialError
from seatrial.model.environment.site import SiteGuest
from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import OrNull, Text, published
from seatrial.model.machine.guest import RUNNING
from seatrial.places.guest.inside import pack, unpack
from seatrial.places.guest.kernel import KERNEL, find_busybox, find_kernel
from seatrial.places.guest.qemu import GuestError, find_emulator
from seatrial.places.guest.session import Channel, Streams

ANY_TOPOLOGY = "/FILE.yaml"
"""Stands for the path of a topology file."""


@published("Guest")
class OfferedGuest(Frozen):
    """A virtual machine that programs can run in.

    A value of `environment.vm`. `running`: it is up; `fails`: with the reason in `need`.
    """

    name: Annotated[Text, "The value of environment.vm that selects it; /FILE.yaml: the path of a topology file"]
    title: Annotated[str, "What it is, or is started from"]
    state: Annotated[
        Literal["running", "startable", "unreached", "fails"],
        "startable: what it is started from is here; unreached: ssh would reach it, which was not tried",
    ]
    need: Annotated[OrNull[str], "Why it cannot be used"] = ""


def offered_guests(of_site: Sequence[SiteGuest], home: Path) -> list[OfferedGuest]:
    """All of them; `home` is the folder of the guest that may be up. None is started or reached."""
    return [*_running(home), *map(_of_site, of_site), _startable(ANY_TOPOLOGY, "", None)]


def _running(home: Path) -> Iterator[OfferedGuest]:
    if not home.exists():
        return
    from seatrial.places.guest.up import running_guest  # few have a guest

    try:
        state = running_guest(home)
    except SeatrialError as error:
        yield OfferedGuest(RUNNING, "the guest that was started here", "fails", _need(error))
        return
    title = f"the guest that is up: {_processors(state.why_emulated)}, Linux {state.kernel}"
    yield OfferedGuest(RUNNING, title, "running")


def _of_site(guest: SiteGuest) -> OfferedGuest:
    if guest.ssh is not None:
        return OfferedGuest(guest.name, f"ssh {guest.ssh}", "unreached")
    return _startable(guest.name, f"{guest.topology}: ", guest.kernel)


def _startable(name: str, before: str, kernel: Path | None) -> OfferedGuest:
    """A guest that a run starts and ends."""
    named = kernel or (Path(os.environ[KERNEL]) if os.environ.get(KERNEL) else None)
    try:
        emulator, found = find_emulator(), find_kernel(named)
        find_busybox()
    except SeatrialError as error:
        return OfferedGuest(name, f"{before}started for a run", "fails", _need(error))
    title = f"{before}started for a run: {_processors(emulator.why_not_kvm)}, Linux {found.version}"
    return OfferedGuest(name, title, "startable")


def _processors(why_emulated: str) -> str:
    return f"emulated processors ({why_emulated})" if why_emulated else "KVM"


def _need(error: SeatrialError) -> str:
    return f"{error.message}; {error.todo}" if error.todo else error.message


_NAME = "copy_facts"


def copied_facts(channel: Channel, program: Path, patterns: Sequence[str]) -> bytes:
    """The archive of the files that match these patterns. `program` needs no libraries. Raises GuestError."""
    with channel.opened() as guest, tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as printed:
        with pack(program, _NAME) as archive:
            unpack(guest, archive, channel.there)
        given.write("".join(f"{pattern}\n" for pattern in patterns).encode())
        given.seek(0)
        copy = f"{channel.there}/{_NAME}"
        with tempfile.TemporaryFile() as said:
            streams = Streams(given.fileno(), printed.fileno(), said.fileno())
            status = guest.run([copy], streams, {}, "/")
        guest.run(["rm", "-f", "--", copy], Streams(None, 2, 2), {}, "/")
        if status:
            raise GuestError(f"the guest could not say what it is: exit status {status}", "seatrial vm status")
        printed.seek(0)
        return printed.read()
