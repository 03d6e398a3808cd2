"""A cluster as it is now."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from seatrial.errors import SeatrialError
from seatrial.model.frozen import Frozen
from seatrial.places.cluster.groups import members
from seatrial.places.cluster.home import Home
from seatrial.places.cluster.shape import HEAD
from seatrial.places.cluster.slurm import node_states
from seatrial.places.cluster.state import State
from seatrial.places.cluster.tools import find_tools

Condition = Literal["up", "incomplete", "down"]


class Status(Frozen):
    """`condition` is up, incomplete (it did not come up, or a process of it has ended) or down (there is none). `slurm`
    is node -> state in Slurm, empty if the controller does not answer or this user cannot ask it. `running` are the
    processes that run, as (node, role)."""

    folder: Path
    condition: Condition
    state: State | None = None
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


def _asked(path: Path, state: State) -> dict[str, str]:
    if os.geteuid() != 0:  # the controller's network can be entered by root only
        return {}
    try:
        return node_states(find_tools(), path, state.processes[HEAD]["namespaces"])
    except SeatrialError:
        return {}
