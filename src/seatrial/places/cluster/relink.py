"""Other rates of the nodes' links of a running cluster, for as long as something is measured.

The rates that the cluster was made with come back afterwards. While they are changed, a file in the cluster's folder
says so: after a kill, whoever changes them next, or asks, knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from seatrial.places.cluster.home import FOLDER
from seatrial.places.cluster.namespaces import entering
from seatrial.places.cluster.network import INTERFACE, reshape
from seatrial.places.cluster.shape import HEAD, Link
from seatrial.places.cluster.state import State, read_state
from seatrial.places.cluster.tools import ClusterError, find_tools, need_root
from seatrial.places.cluster.wanted import read_rate

_CHANGED = "links-changed"


@contextmanager
def links_at(rate: str | None, variables: Mapping[str, str]) -> Iterator[None]:
    """The links of all nodes at this rate ("1gbit") within the block; None: as the cluster was made, also where a
    killed process had changed them.

    Raises ClusterError outside of `seatrial cluster exec` and its jobs, and where links cannot be changed; UsageError
    for an invalid rate.
    """
    folder = variables.get(FOLDER)
    mark = None if folder is None else Path(folder) / _CHANGED
    if rate is None and (mark is None or not mark.exists()):
        yield
        return
    state = None if folder is None else read_state(Path(folder))
    if mark is None or state is None:
        todo = "run inside: seatrial cluster exec -- salloc -N 2 seatrial run ..."
        raise ClusterError("cluster.link is set, but this process is on no node of a cluster", todo)
    need_root("changing the links of a cluster")
    if rate is None:
        _set(state, None)
        mark.unlink(missing_ok=True)
        yield
        return
    rate_Bps = read_rate(rate)
    mark.write_text(f"{rate}\n")
    try:
        _set(state, rate_Bps)
        yield
    finally:
        _set(state, None)
        mark.unlink(missing_ok=True)


def _set(state: State, rate_Bps: float | None) -> None:
    """Set both ends of each node's link, with its own delay."""
    tools = find_tools()
    head = entering(tools, state.processes[HEAD]["namespaces"])
    for node in state.shape.nodes:
        link: Link = node.link if rate_Bps is None else replace(node.link, rate_Bps=rate_Bps)
        inside = entering(tools, state.processes[node.name]["namespaces"])
        reshape(tools, inside, INTERFACE, link)
        reshape(tools, head, f"port{node.number}", link)
