"""Brings a cluster up, and takes it down. Nothing is left of one that does not come up."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from seatrial.errors import UsageError
from seatrial.places.cluster.groups import end_members, make_group, make_groups, members, plan_groups, remove_groups
from seatrial.places.cluster.home import Home, State, existing_home, new_home
from seatrial.places.cluster.network import make_network, measure_links
from seatrial.places.cluster.shape import HEAD, Shape
from seatrial.places.cluster.slurm import start_slurm, wait_until_idle, write_configuration
from seatrial.places.cluster.tools import ClusterError, Tools, furnish, is_holding, start_holder, write_shared_files
from seatrial.places.owned_folder import write_state
from seatrial.processes.tree import is_alive

_END_LIMIT_S = 20.0
_HOLDER_LIMIT_S = 20.0
_LOOK_AGAIN_S = 0.005
HOLDERS_LOG = "namespaces.printed"


def bring_up(
    path: Path, shape: Shape, tools: Tools, probe: Path, progress: Callable[[str], None], memory_B: int
) -> State:
    """Make a cluster in the folder `path`, and return when every node is idle and its links are measured.

    `probe` is the path of the program `link_probe`; `memory_B` the memory of this machine. Raises UsageError if there
    is a cluster already, ClusterError or GroupsError if a part fails.
    """
    with new_home(path) as home:
        try:
            return _made(home, shape, tools, probe, progress, memory_B)
        except BaseException:
            _remove(home)
            raise


def take_down(path: Path) -> bool:
    """End the cluster in this folder, whatever state it is in; False if there is none. Raises ClusterError if a process
    cannot be ended."""
    with existing_home(path) as home:
        if home is None:
            return False
        _remove(home)
        return True


def _made(home: Home, shape: Shape, tools: Tools, probe: Path, progress: Callable[[str], None], memory_B: int) -> State:
    name = f"seatrial-{secrets.token_hex(4)}"
    groups = plan_groups(name, Path("/proc/self/mountinfo").read_text())
    home.make_journal(groups)
    make_groups(groups)
    make_group(groups, HEAD, None, None, None)
    for node in shape.nodes:
        make_group(groups, node.name, node.cpus, node.quota, node.memory_B)
    write_shared_files(home.path, shape)
    holders = {n: start_holder(tools, groups.of(n), home.path / HOLDERS_LOG) for n in _names(shape)}
    _wait_for_namespaces(home, holders)
    for node_name, holder in holders.items():
        furnish(tools, holder, node_name, home.path)
    make_network(tools, shape, holders)
    write_configuration(shape, home.path, memory_B, is_v2=groups.is_v2)
    daemons = start_slurm(tools, shape, home.path, groups, holders)
    processes = {n: {"namespaces": holders[n], **daemons[n]} for n in _names(shape)}
    wait_until_idle(tools, shape, home.path, processes, progress)
    progress("measuring the links")
    state = State(name, shape, processes, measure_links(tools, probe, shape, holders))
    write_state(home.path, state)
    return state


def _names(shape: Shape) -> list[str]:
    return [HEAD, *(node.name for node in shape.nodes)]


def _wait_for_namespaces(home: Home, holders: Mapping[str, int]) -> None:
    """Wait until each holder has its namespaces: it then runs the next program. Raises ClusterError."""
    until = time.monotonic() + _HOLDER_LIMIT_S
    for name, pid in holders.items():
        while not is_holding(pid):
            if not is_alive(pid) or time.monotonic() > until:
                said = (home.path / HOLDERS_LOG).read_text(errors="replace").strip()
                raise ClusterError(
                    f"the namespaces of {name} cannot be made: {said or 'unshare does not end'}",
                    "containers without CAP_SYS_ADMIN and CAP_NET_ADMIN refuse it; run it on the host",
                )
            time.sleep(_LOOK_AGAIN_S)


def _remove(home: Home) -> None:
    groups = home.read_journal()
    if groups is not None:
        if os.getpid() in members(groups.tops):
            raise UsageError("a cluster cannot be ended from one of its own nodes", "run seatrial cluster down outside")
        left = end_members(groups.tops, _END_LIMIT_S)
        if left:
            raise ClusterError(f"processes {sorted(left)} of the cluster do not end", "try again")
        remove_groups(groups.tops, groups.enabled if groups.is_v2 else (), _END_LIMIT_S)
    home.remove()
