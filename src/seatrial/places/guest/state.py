"""What is known of a running guest: a JSON file in its folder, written when it has come up."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from seatrial.model.frozen import Frozen
from seatrial.model.guest_topology import DeviceKind, GuestDevice, GuestNode, GuestTopology

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
        return {"v": _VERSION, **to_builtins(self)}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> GuestState:
        """The inverse. Raises KeyError, TypeError or ValueError."""
        if document["v"] != _VERSION:
            raise ValueError(f"version {document['v']}")
        topology = document["topology"]
        rows = topology["distances"]
        return cls(
            GuestTopology(
                tuple(GuestNode(**node) for node in topology["nodes"]),
                topology["threads"],
                None if rows is None else tuple(map(tuple, rows)),
                tuple(map(_device, topology["devices"])),
            ),
            *(document[name] for name in ("pid", "accelerator", "why_emulated", "kernel", "boot_s")),
        )


def _device(one: Mapping[str, Any]) -> GuestDevice:
    return GuestDevice(**{**one, "kind": DeviceKind(one["kind"]), "below": tuple(map(_device, one["below"]))})


def state_text(state: GuestState) -> str:
    """The text of the file."""
    return json.dumps(state.document(), indent=1, default=lambda kind: kind.value)


def read_guest_state(folder: Path) -> GuestState | None:
    """The state of the guest in this folder; None if it has not come up, or its file is damaged."""
    try:
        return GuestState.from_document(json.loads((folder / STATE).read_text()))
    except (OSError, KeyError, TypeError, ValueError, AttributeError):
        return None
