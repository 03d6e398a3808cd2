"""`seatrial.vm/1`: the guest on this machine as one JSON object."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from seatrial.model.json_object import filled
from seatrial.model.json_shape import GIVEN, Count, From, Json, Keywords, NonNegative, shape
from seatrial.model.machine.guest import DeviceKind, GuestDevice, GuestNode
from seatrial.places.guest.home import GuestState
from seatrial.places.guest.up import Condition, GuestStatus


@shape(GuestDevice)
class GuestDeviceJson(TypedDict):
    """A PCIe device. `behind_switch`: the position of its switch among the devices; null: it is on a root port."""

    kind: Annotated[str, Keywords(enum=[kind.value for kind in DeviceKind]), From(lambda device: device.kind.value)]
    node: Count
    size_B: Annotated[int | None, "of the drive or memory; null: it has none"]
    functions: Annotated[int, "SR-IOV virtual functions"]
    behind_switch: Annotated[int | None, GIVEN]


@shape(GuestStatus)
class GuestJson(TypedDict):
    """The guest on this machine. `incomplete`: it did not come up, or it has ended."""

    schema: Literal["seatrial.vm/1"]
    folder: Annotated[str, From(lambda found: str(found.folder))]
    state: Annotated[Condition, From("condition")]
    accelerator: Annotated[
        Literal["kvm", "tcg"] | None,
        From("state.accelerator"),
        "tcg: its processors are emulated, and no time means anything",
    ]
    why_emulated: Annotated[str | None, From(lambda found: (found.state and found.state.why_emulated) or None)]
    kernel: Annotated[str | None, From("state.kernel")]
    boot_s: Annotated[NonNegative | None, From("state.boot_s"), "until it ran a command"]
    threads: Annotated[int | None, From("state.topology.threads"), "hardware threads of a core"]
    nodes: Annotated[list[GuestNode], From(lambda found: found.state.topology.nodes if found.state else ())]
    distances: Annotated[list[list[int]] | None, From("state.topology.distances")]
    devices: Annotated[list[GuestDeviceJson], From(lambda found: _devices(found.state))]
    console: Annotated[str, "the last lines that an incomplete guest printed"]


def guest_document(found: GuestStatus) -> Json:
    """The document."""
    return filled(GuestJson, found)


def _devices(state: GuestState | None) -> list[Json]:
    made: list[Json] = []
    for device in state.topology.devices if state else ():
        position = len(made)
        made.append(filled(GuestDeviceJson, device, behind_switch=None))
        made += [filled(GuestDeviceJson, below, node=device.node, behind_switch=position) for below in device.below]
    return made
