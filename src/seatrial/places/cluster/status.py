"""A cluster as it is now, and commands on its nodes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from seatrial.errors import SeatrialError, UsageError
from seatrial.launch.local import run_attached
from seatrial.model.frozen import Frozen
from seatrial.places.cluster.groups import join, members
from seatrial.places.cluster.namespaces import SYSTEM_PATH, TMP, ClusterError, Tools, entering, find_tools
from seatrial.places.cluster.shape import FOLDER, HEAD, ClusterState, Home, NodeShape, existing_home
from seatrial.places.cluster.up import node_states, variables

Condition = Literal["up", "incomplete", "down"]


class Status(Frozen):
    """`condition` is up, incomplete (it did not come up, or a process of it has ended) or down (there is none). `slurm`
    is node -> state in Slurm, empty if the controller does not answer or this user cannot ask it. `running` are the
    processes that run, as (node, role)."""

    folder: Path
    condition: Condition
    state: ClusterState | None = None
    slurm: Mapping[str, str] = {}
    running: frozenset[tuple[str, str]] = frozenset()


def read_status(path: Path) -> Status:
    """The cluster in this folder."""
    if not path.is_dir():
        return Status(path, "down")
    home = Home(path)
    state, groups = home.read_state(), home.read_journal()
    if state is None or groups is None:
        return Status(path, "incomplete")
    alive = members(groups.tops)
    roles = [(node, role, pid) for node, of_node in state.processes.items() for role, pid in of_node.items()]
    running = frozenset((node, role) for node, role, pid in roles if pid in alive)
    condition: Condition = "up" if len(running) == len(roles) else "incomplete"
    return Status(path, condition, state, _asked(path, state) if (HEAD, "slurmctld") in running else {}, running)


def _asked(path: Path, state: ClusterState) -> dict[str, str]:
    if os.geteuid() != 0:  # the controller's network can be entered by root only
        return {}
    try:
        return node_states(find_tools(), path, state.processes[HEAD]["namespaces"])
    except SeatrialError:
        return {}


def run_on_node(path: Path, node: str, command: Sequence[str], tools: Tools, environment: Mapping[str, str]) -> int:
    """Run a command on a node ("2" or "n2") of the cluster in the folder `path`, with our standard streams, terminal,
    signals and working directory; its exit status as in a shell.

    This process moves into the node's control group for good. Raises UsageError if there is no such cluster or node,
    ClusterError if the node has ended.
    """
    with existing_home(path) as home:
        state = None if home is None else home.read_state()
        groups = None if home is None else home.read_journal()
    if state is None or groups is None:
        begun = ": starting it did not finish" if home is not None else " on this host"
        todo = "seatrial cluster down, then up" if home is not None else "seatrial cluster up --nodes 4 --link 10gbit"
        raise UsageError(f"no cluster is up{begun}", todo)
    chosen = node_named(state, node)
    holder = state.processes[chosen.name]["namespaces"]
    gone = ClusterError(f"{chosen.name} has ended: its process {holder} is gone", "seatrial cluster down, then up")
    if holder not in members(groups.of(chosen.name)):
        raise gone
    try:
        join(groups.of(chosen.name))
    except OSError as error:
        raise gone from error
    # The working directory is looked up on the node: it belongs to mounts, and these are the node's.
    inside = [*entering(tools, holder), tools.paths["env"], f"--chdir={Path.cwd()}"]
    return run_attached([*inside, *command], {**environment, **node_variables(path, environment)}).exit_status


def node_named(state: ClusterState, text: str) -> NodeShape:
    """The node with this number or name. Raises UsageError."""
    for node in state.shape.nodes:
        if text in (node.name, str(node.number)):
            return node
    last = len(state.shape.nodes)
    raise UsageError(f"the cluster has no node {text!r}", f"it has n1 to n{last}" if last > 1 else "it has n1")


def node_variables(path: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that a command on a node gets besides ours: Slurm's, and those for programs that root must be
    allowed to start, since the cluster belongs to root."""
    folders = [word for word in environment.get("PATH", "").split(os.pathsep) if word]
    folders += [word for word in SYSTEM_PATH.split(os.pathsep) if word not in folders]
    return {
        **variables(path),
        FOLDER: str(path),
        "PATH": os.pathsep.join(folders),
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_orte_tmpdir_base": str(path / TMP),
    }
