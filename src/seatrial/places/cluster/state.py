"""What is known of a running cluster: its processes, and what was measured on its links. A JSON file in its folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from seatrial.model.frozen import Frozen
from seatrial.places.cluster.shape import Link, Node, Shape, Switch

STATE = "state.json"
_VERSION = 1


class Obtained(Frozen):
    """What was measured on a link, None: not measured. `out_Bps` is away from the node or leaf switch, `in_Bps` towards
    it, both the payload of TCP. `round_trip_s` includes the other end's link. `against`: the nodes at the other end."""

    out_Bps: float | None = None
    in_Bps: float | None = None
    round_trip_s: float | None = None
    against: tuple[str, ...] = ()


class State(Frozen):
    """`processes`: node -> role -> process id; the roles are `namespaces` (which keeps them alive), `slurmd`,
    `slurmctld`, `munged`. `obtained`: node or leaf switch -> what was measured on its link upwards."""

    name: str
    shape: Shape
    processes: Mapping[str, Mapping[str, int]]
    obtained: Mapping[str, Obtained] = {}

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {"v": _VERSION, **to_builtins(self)}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> State:
        """The inverse. Raises KeyError, TypeError or ValueError."""
        if document["v"] != _VERSION:
            raise ValueError(f"version {document['v']}")
        shape = document["shape"]
        return cls(
            document["name"],
            Shape(
                tuple(Node(**{**n, "link": Link(**n["link"]), "cpus": tuple(n["cpus"])}) for n in shape["nodes"]),
                tuple(Switch(**{**s, "uplink": s["uplink"] and Link(**s["uplink"])}) for s in shape["switches"]),
                shape["ratio"],
            ),
            document["processes"],
            {name: Obtained(**{**one, "against": tuple(one["against"])}) for name, one in document["obtained"].items()},
        )


def read_state(folder: Path) -> State | None:
    """The state of the cluster in this folder; None if it has not come up, or its file is damaged."""
    try:
        return State.from_document(json.loads((folder / STATE).read_text()))
    except (OSError, KeyError, TypeError, ValueError):
        return None
