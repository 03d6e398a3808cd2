"""The guests that programs can run in here: that which is up, those of the site file, and one of a topology file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from seatrial.errors import SeatrialError
from seatrial.model.frozen import Frozen
from seatrial.model.guest import RUNNING
from seatrial.model.site import SiteGuest
from seatrial.places.guest.initramfs import find_busybox
from seatrial.places.guest.kernel import KERNEL, find_kernel
from seatrial.places.guest.qemu import find_emulator

ANY_TOPOLOGY = "/FILE.yaml"
"""Stands for the path of a topology file."""


class OfferedGuest(Frozen):
    """A value of `environment.vm`, and what it stands for. `running`: it is up; `startable`: all that it is started
    from is here; `unreached`: ssh would reach it, which was not tried; `fails`: with the reason in `need`."""

    name: str
    title: str
    state: Literal["running", "startable", "unreached", "fails"]
    need: str = ""


def offered_guests(of_site: Sequence[SiteGuest], home: Path) -> list[OfferedGuest]:
    """All of them; `home` is the folder of the guest that may be up. None is started or reached."""
    return [*_running(home), *map(_of_site, of_site), _startable(ANY_TOPOLOGY, "", None)]


def _running(home: Path) -> Iterator[OfferedGuest]:
    if not home.exists():
        return
    from seatrial.places.guest.run import running_guest  # few have a guest

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
