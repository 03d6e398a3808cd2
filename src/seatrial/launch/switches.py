"""The leaf switch of each node, as Slurm's topology.conf states it.

Format: topology.conf(5), and the same with more keys in what `scontrol show topology` prints. A block of nodes
(topology/block) counts as the nodes of a switch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from seatrial.model.machine.host_list import expand_hosts
from seatrial.processes.output import OutOfTimeError, output_of

_LIMIT_S = 10.0
_MOST_B = 16 << 20
_USUAL = Path("/etc/slurm/slurm.conf")
_PAIR = re.compile(r"([A-Za-z]+)\s*=\s*(\S+)", re.ASCII)
_OF_BATCH = ("SLURM_JOB_ID", "SLURM_CONF")


def leaf_switches(variables: Mapping[str, str]) -> dict[str, str]:
    """Node -> leaf switch: by `scontrol` where Slurm is there, else by the topology.conf beside its configuration;
    empty if neither states any."""
    if any(name in variables for name in _OF_BATCH):
        try:
            done = output_of(["scontrol", "show", "topology"], dict(variables), _LIMIT_S)
        except (OSError, OutOfTimeError):
            done = None
        if done is not None and done.returncode == 0 and (found := leaves_in(done.stdout.decode("utf-8", "replace"))):
            return found
    file = Path(variables.get("SLURM_CONF") or _USUAL).with_name("topology.conf")
    try:
        with file.open(encoding="utf-8", errors="replace") as stream:
            return leaves_in(stream.read(_MOST_B))
    except OSError:
        return {}


def leaves_in(text: str) -> dict[str, str]:
    """Node -> leaf switch, from the text of either form; lines that are not valid are ignored."""
    found: dict[str, str] = {}
    for line in _lines(text):
        pairs = {key.lower(): value for key, value in _PAIR.findall(line)}
        name = pairs.get("switchname") or pairs.get("blockname")
        if name is None or "switches" in pairs or "nodes" not in pairs:
            continue
        try:
            found.update(dict.fromkeys(expand_hosts(pairs["nodes"]), name))
        except ValueError:
            continue
    return found


def _lines(text: str) -> Iterator[str]:
    """Without comments, continued lines joined."""
    kept = ""
    for line in text.splitlines():
        own = line.partition("#")[0].rstrip()
        if own.endswith("\\"):
            kept += own[:-1] + " "
            continue
        yield kept + own
        kept = ""
