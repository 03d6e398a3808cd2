"""A guest as it is now."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from seatrial.model.frozen import Frozen
from seatrial.places.guest.home import check_guest_home
from seatrial.places.guest.state import GuestState, read_guest_state
from seatrial.places.guest.up import console_end

Condition = Literal["up", "incomplete", "down"]


class GuestStatus(Frozen):
    """`condition` is up, incomplete (it did not come up, or has ended) or down (there is none). `console`: the last
    lines that an incomplete one printed."""

    folder: Path
    condition: Condition
    state: GuestState | None = None
    console: str = ""


def read_guest_status(path: Path) -> GuestStatus:
    """The guest in this folder. Raises UsageError if others could have written there."""
    home = check_guest_home(path)
    if home is None:
        return GuestStatus(path, "down")
    state = read_guest_state(path)
    if state is not None and state.pid in home.members():
        return GuestStatus(path, "up", state)
    return GuestStatus(path, "incomplete", state, console_end(path))
