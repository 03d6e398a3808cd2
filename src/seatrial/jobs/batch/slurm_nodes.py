"""What Slurm says of its nodes and switches: sinfo(1), scontrol(1) "show topology"."""

from __future__ import annotations

import re

from seatrial.errors import ParseError
from seatrial.model.machine.host_list import expand_hosts

_USABLE = frozenset({"idle", "mix", "mixed", "alloc", "allocated", "comp", "completing", "resv", "reserved"})
_MARKS = "*~#!%$@^-+"
"""Marks behind a state: not responding, powered down, and more (sinfo(1), "NODE STATE CODES")."""
_PAIR = re.compile(r"(?<!\w)(\w++)=(\S*)", re.ASCII)


def nodes_command(queue: str) -> list[str]:
    """The command that lists the nodes of a partition with their states."""
    return ["sinfo", "--noheader", "--Node", "--format=%N|%t", f"--partition={queue}"]


def read_nodes(output: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """The nodes that jobs can run on, in order, and the state of each other one. Raises ParseError."""
    usable: dict[str, None] = {}
    others: dict[str, str] = {}
    for number, line in enumerate(output.splitlines(), start=1):
        if not line.strip():
            continue
        name, bar, state = line.strip().partition("|")
        if not bar or not name or not state:
            raise ParseError("sinfo", number, line, "not NODE|STATE")
        word = state.rstrip(_MARKS)
        if word in _USABLE and not state.endswith("*"):
            usable[name] = None
        else:
            others[name] = state
    return tuple(usable), others


def read_idle(output: str) -> frozenset[str]:
    """The nodes of the same output that are free."""
    cells = (line.strip().partition("|") for line in output.splitlines())
    return frozenset(name for name, _, state in cells if state == "idle")


def topology_command() -> list[str]:
    """The command that shows the switches."""
    return ["scontrol", "show", "topology"]


def read_topology(output: str) -> dict[str, str]:
    """Node -> its leaf switch; empty if Slurm does not know the switches. Raises ParseError."""
    found: dict[str, str] = {}
    for number, line in enumerate(output.splitlines(), start=1):
        pairs = dict(_PAIR.findall(line))
        if pairs.get("Level") != "0" or "SwitchName" not in pairs:
            continue
        try:
            nodes = expand_hosts(pairs.get("Nodes", ""))
        except ValueError as error:
            raise ParseError("scontrol show topology", number, line, str(error)) from None
        for node in nodes:
            found[node] = pairs["SwitchName"]
    return found
