"""The byte counters of a cluster's nodes."""

from __future__ import annotations

from pathlib import Path

from seatrial.machine.readers.net_dev import read_net_dev
from seatrial.model.link_traffic import Traffic
from seatrial.places.cluster.network import INTERFACE
from seatrial.places.cluster.state import State
from seatrial.places.cluster.tools import ClusterError


def count_traffic(state: State) -> dict[str, Traffic]:
    """Node -> what has passed its link so far, headers included; on the machine itself or on any node, by any user.

    Compare two of them with the payload by `model.link_traffic.traffic_missing`. Raises ClusterError if a node has
    ended.
    """
    found = {}
    for node in state.shape.nodes:
        holder = state.processes[node.name]["namespaces"]
        try:
            found[node.name] = read_net_dev(Path(f"/proc/{holder}/net/dev").read_text())[INTERFACE]
        except (OSError, KeyError) as error:
            raise ClusterError(f"the link of {node.name} cannot be counted: the node has ended") from error
    return found
