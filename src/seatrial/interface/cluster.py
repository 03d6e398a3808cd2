"""A cluster on this machine: bring it up, run commands on its nodes, show it, end it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from seatrial.errors import UsageError
from seatrial.places.cluster.enter import run_on_node
from seatrial.places.cluster.home import already_there, home_path
from seatrial.places.cluster.shape import Wanted, shape_of
from seatrial.places.cluster.status import Status, read_status
from seatrial.places.cluster.tools import find_tools, need_root
from seatrial.places.cluster.up import bring_up, take_down


def cluster_up(wanted: Wanted, progress: Callable[[str], None] = lambda text: None) -> Status:
    """Bring a cluster up. Raises UsageError for what contradicts itself, or if there is a cluster already; ClusterError
    without root, or if a part is missing or fails; BuildError if the program that measures links cannot be built."""
    shape = shape_of(wanted, sorted(os.sched_getaffinity(0)))
    need_root("seatrial cluster up")
    tools, path = find_tools(), home_path(os.environ)
    if path.exists():  # said before anything is built; `bring_up` decides
        raise already_there(path)
    from seatrial.places.rank_helpers import link_probe  # late: `exec` should start fast, and builds nothing

    memory_B = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    bring_up(path, shape, tools, link_probe(), progress, memory_B)
    return read_status(path)


def cluster_exec(node: str, command: Sequence[str]) -> int:
    """Run a command on a node; its exit status. Raises UsageError, ClusterError."""
    if not command:
        raise UsageError("no command given", "for example: seatrial cluster exec -- srun -N 2 hostname")
    need_root("seatrial cluster exec")
    return run_on_node(home_path(os.environ), node, command, find_tools(), os.environ)


def cluster_status() -> Status:
    """The cluster of this machine as it is now."""
    return read_status(home_path(os.environ))


def cluster_down() -> bool:
    """End the cluster of this machine, whatever state it is in; False if there is none. Raises ClusterError."""
    path = home_path(os.environ)
    if not path.exists():
        return False
    need_root("seatrial cluster down")
    return take_down(path)
