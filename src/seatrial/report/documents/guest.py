"""`seatrial.vm/1`: the guest on this machine as one JSON object."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from seatrial.model.guest_topology import DeviceKind, GuestDevice
from seatrial.model.json_shape import Count, Keywords, NonNegative, shape
from seatrial.places.guest.state import GuestState
from seatrial.places.guest.status import Condition, GuestStatus


@shape(None)
class GuestNodeJson(TypedDict):
    """A NUMA node."""

    cpus: Count
    memory_B: Count


@shape(None)
class GuestDeviceJson(TypedDict):
    """A PCIe device. `behind_switch`: the position of its switch among the devices; null: it is on a root port."""

    kind: Annotated[str, Keywords(enum=[kind.value for kind in DeviceKind])]
    node: Count
    size_B: Annotated[int | None, "of the drive or memory; null: it has none"]
    functions: Annotated[int, "SR-IOV virtual functions"]
    behind_switch: int | None


@shape(None)
class GuestJson(TypedDict):
    """The guest on this machine. `incomplete`: it did not come up, or it has ended."""

    schema: Literal["seatrial.vm/1"]
    folder: str
    state: Condition
    accelerator: Annotated[Literal["kvm", "tcg"] | None, "tcg: its processors are emulated, and no time means anything"]
    why_emulated: str | None
    kernel: str | None
    boot_s: Annotated[NonNegative | None, "until it ran a command"]
    threads: Annotated[int | None, "hardware threads of a core"]
    nodes: list[GuestNodeJson]
    distances: list[list[int]] | None
    devices: list[GuestDeviceJson]
    console: Annotated[str, "the last lines that an incomplete guest printed"]


def guest_document(found: GuestStatus) -> GuestJson:
    """The document."""
    state = found.state
    topology = None if state is None else state.topology
    rows = None if topology is None else topology.distances
    return GuestJson(
        schema="seatrial.vm/1",
        folder=str(found.folder),
        state=found.condition,
        accelerator=_accelerator(state),
        why_emulated=(state.why_emulated or None) if state else None,
        kernel=state.kernel if state else None,
        boot_s=state.boot_s if state else None,
        threads=topology.threads if topology else None,
        nodes=[GuestNodeJson(cpus=one.cpus, memory_B=one.memory_B) for one in (topology.nodes if topology else ())],
        distances=None if rows is None else [list(row) for row in rows],
        devices=_devices(topology.devices if topology else ()),
        console=found.console,
    )


def _accelerator(state: GuestState | None) -> Literal["kvm", "tcg"] | None:
    if state is None:
        return None
    return "kvm" if state.accelerator == "kvm" else "tcg"


def _devices(devices: tuple[GuestDevice, ...]) -> list[GuestDeviceJson]:
    made: list[GuestDeviceJson] = []
    for device in devices:
        position = len(made)
        made.append(_device(device, device.node, None))
        made += [_device(below, device.node, position) for below in device.below]
    return made


def _device(device: GuestDevice, node: int, behind: int | None) -> GuestDeviceJson:
    return GuestDeviceJson(
        kind=device.kind.value, node=node, size_B=device.size_B, functions=device.functions, behind_switch=behind
    )
