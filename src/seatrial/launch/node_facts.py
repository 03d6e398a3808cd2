"""Asks the nodes of an allocation what they are, and keeps those that are like this one."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from seatrial.launch.allocation import Allocated
from seatrial.launch.node_probe import machines_in
from seatrial.launch.switches import leaf_switches
from seatrial.model.allocation import Allocation, LeftOut, Node
from seatrial.model.machine import Machine
from seatrial.model.unlike_nodes import unlike
from seatrial.processes.output import OutOfTimeError, Output, output_of

_LIMIT_S = 90.0
_MOST_AT_ONCE = 32
"""Connections of ssh at a time."""
_MODULE = "seatrial.launch.node_probe"
_LONGEST_SAID = 300


def like_nodes(found: Allocated, this: Machine, variables: Mapping[str, str]) -> Allocation:
    """The nodes of an allocation that are like this one, which is the first.

    A node that does not answer is left out, with what was said. Raises UsageError if the description of one is damaged.
    """
    name = found.this or this.name
    others = tuple(node for node in found.nodes if node != found.this)
    machines, problems = _asked(found, others, variables) if others else ({}, {})
    switches = leaf_switches(variables) if others else {}
    nodes, left_out = [Node(name, this, switches.get(name))], []
    for node in others:
        machine = machines.get(node)
        if machine is None:
            left_out.append(LeftOut(node, problems.get(node) or "it did not say what it is"))
        elif differences := unlike(machine, this):
            left_out.append(LeftOut(node, ", ".join(differences)))
        else:
            nodes.append(Node(node, machine, switches.get(node)))
    return Allocation(found.source, tuple(nodes), tuple(left_out))


def _asked(
    found: Allocated, nodes: Sequence[str], variables: Mapping[str, str]
) -> tuple[dict[str, Machine], dict[str, str]]:
    """Node -> its machine, and node -> why there is none."""
    if found.starter == "srun":
        text, problem = _run(srun_words(nodes, probe_words()), variables)
        return machines_in(text), dict.fromkeys(nodes, problem)
    with ThreadPoolExecutor(min(_MOST_AT_ONCE, len(nodes))) as pool:
        outputs = list(pool.map(lambda node: _run(ssh_words(node, probe_words(node)), variables), nodes))
    return machines_in("\n".join(text for text, _ in outputs)), {
        node: problem for node, (_, problem) in zip(nodes, outputs, strict=True)
    }


def probe_words(node: str = "") -> list[str]:
    """The command that prints what a node is, with this Python and this version of seatrial."""
    home = Path(__file__).absolute().parents[2]
    return ["/usr/bin/env", f"PYTHONPATH={home}", sys.executable, "-P", "-m", _MODULE, *([node] if node else [])]


def srun_words(nodes: Sequence[str], command: Sequence[str]) -> list[str]:
    """One task on each of these nodes, beside what runs there, with all CPUs that the job has on them."""
    count = len(nodes)
    return [
        *("srun", f"--nodes={count}", f"--ntasks={count}", "--ntasks-per-node=1", f"--nodelist={','.join(nodes)}"),
        *("--overlap", "--cpu-bind=none", "--mpi=none", "--input=none", "--distribution=block", "--", *command),
    ]


def ssh_words(node: str, command: Sequence[str]) -> list[str]:
    """The same by ssh, which asks nothing. Its words are quoted: a shell of the other host reads them."""
    import shlex

    return ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=20", "--", node, shlex.join(command)]


def _run(words: Sequence[str], variables: Mapping[str, str]) -> tuple[str, str]:
    """What a command printed, and why it failed ("" if it did not)."""
    try:
        done = output_of(words, dict(variables), _LIMIT_S)
    except OutOfTimeError:
        return "", f"{words[0]} did not end within {_LIMIT_S:g} s"
    except OSError as error:
        return "", f"{words[0]} cannot be started: {os.strerror(error.errno) if error.errno else error}"
    text = done.stdout.decode("utf-8", "replace")
    return text, "" if done.returncode == 0 else _failure(words[0], done)


def _failure(name: str, done: Output) -> str:
    said = " ".join(done.stderr.decode("utf-8", "replace").split())[-_LONGEST_SAID:]
    return f"{name}: {said or f'exit status {done.returncode}'}"
