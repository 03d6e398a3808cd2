"""What is known of a running cluster: its processes, and what was measured on its links. A JSON file in its folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from seatrial.model.frozen import Frozen
from seatrial.model.json_object import plain, record_of
from seatrial.model.json_shape import Finite
from seatrial.places.cluster.shape import Shape

STATE = "state.json"
_VERSION = 1


class Obtained(Frozen):
    """What was measured on a link, None: not measured. Rates are those of the payload of TCP. `round_trip_s` includes
    the other end's link."""

    out_Bps: Annotated[Finite, "away from the node or leaf switch"] = None
    in_Bps: Annotated[Finite, "towards it"] = None
    round_trip_s: Annotated[Finite, "of one byte, to the node at the other end and back"] = None
    against: Annotated[tuple[str, ...], "the nodes at the other end"] = ()


class State(Frozen):
    """`processes`: node -> role -> process id; the roles are `namespaces` (which keeps them alive), `slurmd`,
    `slurmctld`, `munged`. `obtained`: node or leaf switch -> what was measured on its link upwards."""

    name: str
    shape: Shape
    processes: Mapping[str, Mapping[str, int]]
    obtained: Mapping[str, Obtained] = {}

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {"v": _VERSION, **plain(self)}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> State:
        """The inverse. Raises KeyError or ValueError."""
        if document["v"] != _VERSION:
            raise ValueError(f"version {document['v']}")
        return record_of(cls, document)


def read_state(folder: Path) -> State | None:
    """The state of the cluster in this folder; None if it has not come up, or its file is damaged."""
    try:
        return State.from_document(json.loads((folder / STATE).read_text()))
    except (OSError, KeyError, TypeError, ValueError):
        return None
