"""Guests as a part of the environment: virtual machines that programs of a study run in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from seatrial.model.frozen import Frozen

if TYPE_CHECKING:
    from seatrial.model.machine import Machine

VM = "vm"
NO_GUEST = "none"
"""The value of `environment.vm` for this machine itself."""
RUNNING = "running"
"""The value for the guest that `seatrial vm up` started."""


class Guest(Frozen):
    """A guest under the name that `environment.vm` has. `machine` is what it is; None if it cannot be used, for the
    reason in `problem`, with a remedy in `todo`.

    `channel` are the words by which its commands are sent (places/guest/channel.py). `facts` are recorded with every
    repeat: how it is reached, and, of one that was started here, what emulates or runs its processors.
    """

    name: str
    machine: Machine | None = None
    channel: tuple[str, ...] = ()
    facts: Mapping[str, Any] = {}
    problem: str = ""
    todo: str = ""
