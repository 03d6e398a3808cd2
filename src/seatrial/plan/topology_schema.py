"""The structure of a topology file (`seatrial vm up --topology FILE`) as pydantic models, and its JSON schema.

`python -m seatrial.plan.topology_schema` prints the schema.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr

from seatrial.model.guest_topology import DeviceKind

MOST_NODES = 8
MOST_CPUS = 64
MOST_DEVICES = 24
MOST_FUNCTIONS = 16
_KINDS = tuple(kind.value for kind in DeviceKind)

ACCEPTED = {
    "": "a mapping: nodes, and any of threads, distances, devices",
    "nodes": f"a list of 1 to {MOST_NODES} NUMA nodes, such as `[{{cpus: 2, memory: 512MiB}}, {{cpus: 2, memory: "
    "512MiB}]`",
    "nodes.*": "a mapping with memory and cpus",
    "nodes.*.cpus": "the number of CPUs of the node, 0 (memory only) or more",
    "nodes.*.memory": "the memory of the node, such as 512MiB",
    "threads": "the number of hardware threads of a core: 1 (the default) or 2",
    "distances": "a square list of lists with the distance of each node to each: 10 to itself, 11 to 254 to others",
    "distances.*": "the distances of one node, such as [10, 21]",
    "distances.*.*": "10 to itself, 11 to 254 to others",
    "devices": f"a list of up to {MOST_DEVICES} PCIe devices, such as `[{{kind: nvme, node: 1}}]`",
    "devices.*": "a mapping with kind, and any of node, size, functions, devices",
    "devices.*.kind": ", ".join(_KINDS),
    "devices.*.node": "the NUMA node of the device's root port (default: 0)",
    "devices.*.size": "the size of a drive or memory: 1MiB or more",
    "devices.*.functions": f"the number of SR-IOV virtual functions of an nvme device: 1 to {MOST_FUNCTIONS}",
    "devices.*.devices": "the devices below a switch",
    "devices.*.devices.*": "a mapping with kind, and any of size, functions",
    "devices.*.devices.*.kind": ", ".join(kind for kind in _KINDS if kind not in ("switch", "cxl-memory")),
    "devices.*.devices.*.size": "the size of a drive or memory: 1MiB or more",
    "devices.*.devices.*.functions": f"the number of SR-IOV virtual functions of an nvme device: 1 to {MOST_FUNCTIONS}",
}
"""Key of a topology file ("*": any position) -> what it accepts, for messages and schema descriptions."""

_Size = Annotated[StrictStr, Field(min_length=1, max_length=40)]


def _described(place: str, **more: Any) -> Any:
    return Field(description=ACCEPTED[place], **more)


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class NodeModel(_Closed):
    """A NUMA node."""

    memory: Annotated[_Size, _described("nodes.*.memory")]
    cpus: Annotated[StrictInt, _described("nodes.*.cpus", ge=0, le=MOST_CPUS)]


class InnerDeviceModel(_Closed):
    """A device below a switch."""

    kind: Annotated[
        DeviceKind,
        _described("devices.*.devices.*.kind", strict=False),
    ]
    size: Annotated[_Size | None, _described("devices.*.devices.*.size")] = None
    functions: Annotated[StrictInt | None, _described("devices.*.devices.*.functions", ge=1, le=MOST_FUNCTIONS)] = None


class DeviceModel(_Closed):
    """A device on a root port, or a switch."""

    kind: Annotated[DeviceKind, _described("devices.*.kind", strict=False)]
    node: Annotated[StrictInt | None, _described("devices.*.node", ge=0, lt=MOST_NODES)] = None
    size: Annotated[_Size | None, _described("devices.*.size")] = None
    functions: Annotated[StrictInt | None, _described("devices.*.functions", ge=1, le=MOST_FUNCTIONS)] = None
    devices: Annotated[
        list[InnerDeviceModel] | None, _described("devices.*.devices", min_length=1, max_length=MOST_DEVICES)
    ] = None


class TopologyModel(_Closed):
    """A guest."""

    nodes: Annotated[list[NodeModel], _described("nodes", min_length=1, max_length=MOST_NODES)]
    threads: Annotated[StrictInt | None, _described("threads", ge=1, le=2)] = None
    distances: Annotated[list[list[StrictInt]] | None, _described("distances", min_length=1, max_length=MOST_NODES)] = (
        None
    )
    devices: Annotated[list[DeviceModel] | None, _described("devices", max_length=MOST_DEVICES)] = None


def topology_schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of a topology file."""
    schema = TopologyModel.model_json_schema()
    for model in (schema, *schema["$defs"].values()):
        model.pop("title", None)
        for place in model.get("properties", {}).values():
            place.pop("title", None)
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "seatrial topology file, version 1",
    }
    return head | schema


if __name__ == "__main__":
    print(json.dumps(topology_schema(), indent=1, ensure_ascii=False))
