"""What is known of a running guest: a JSON file in its folder, written when it has come up."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seatrial.model.frozen import Frozen
from seatrial.model.json_object import plain, record_of
from seatrial.model.machine.guest import GuestTopology

STATE = "state.json"
_VERSION = 1


class GuestState(Frozen):
    """`accelerator`: kvm, or tcg if the processors are emulated, and then `why_emulated`. `boot_s`: from the start of
    QEMU until the guest ran a command. `kernel`: its version."""

    topology: GuestTopology
    pid: int
    accelerator: str
    why_emulated: str
    kernel: str
    boot_s: float

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {"v": _VERSION, **plain(self)}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> GuestState:
        """The inverse. Raises KeyError or ValueError."""
        if document["v"] != _VERSION:
            raise ValueError(f"version {document['v']}")
        return record_of(cls, document)


def state_text(state: GuestState) -> str:
    """The text of the file."""
    return json.dumps(state.document(), indent=1)


def read_guest_state(folder: Path) -> GuestState | None:
    """The state of the guest in this folder; None if it has not come up, or its file is damaged."""
    try:
        return GuestState.from_document(json.loads((folder / STATE).read_text()))
    except (OSError, KeyError, TypeError, ValueError, AttributeError):
        return None
