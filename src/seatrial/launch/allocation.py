"""The nodes of the allocation that this process runs in, what they are, and this machine with those that are like it.

Slurm: sbatch(1), srun(1), "OUTPUT ENVIRONMENT VARIABLES". PBS: qsub(1), `PBS_NODEFILE`. LSF: `LSB_DJOB_HOSTFILE`.
Flux: flux-environment(7), `FLUX_ENCLOSING_ID`.
The leaf switch of each node is as Slurm's topology.conf(5) states it, and the same with more keys in what `scontrol
show topology` prints. A block of nodes (topology/block) counts as the nodes of a switch.
"""

from __future__ import annotations

import logging
import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.launch.node_probe import machines_in
from seatrial.machine.live import discover_live
from seatrial.model.frozen import Frozen
from seatrial.model.machine.host_list import expand_hosts, fold_hosts
from seatrial.model.machine.identity import unlike
from seatrial.model.machine.machine import Allocation, LeftOut, Machine, Node
from seatrial.plan.site_in_force import place_in_force
from seatrial.processes.start import OutOfTimeError, output_of

_TOPOLOGY_LIMIT_S = 10.0
_MOST_B = 16 << 20
_USUAL = Path("/etc/slurm/slurm.conf")
_PAIR = re.compile(r"([A-Za-z]+)\s*=\s*(\S+)", re.ASCII)
_OF_BATCH = ("SLURM_JOB_ID", "SLURM_CONF")


def leaf_switches(variables: Mapping[str, str]) -> dict[str, str]:
    """Node -> leaf switch: by `scontrol` where Slurm is there, else by the topology.conf beside its configuration;
    empty if neither states any."""
    if any(name in variables for name in _OF_BATCH):
        try:
            done = output_of(["scontrol", "show", "topology"], dict(variables), _TOPOLOGY_LIMIT_S)
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
    for line in _joined_lines(text):
        pairs = {key.lower(): value for key, value in _PAIR.findall(line)}
        name = pairs.get("switchname") or pairs.get("blockname")
        if name is None or "switches" in pairs or "nodes" not in pairs:
            continue
        try:
            found.update(dict.fromkeys(expand_hosts(pairs["nodes"]), name))
        except ValueError:
            continue
    return found


def _joined_lines(text: str) -> Iterator[str]:
    """Without comments, continued lines joined."""
    kept = ""
    for line in text.splitlines():
        own = line.partition("#")[0].rstrip()
        if own.endswith("\\"):
            kept += own[:-1] + " "
            continue
        yield kept + own
        kept = ""


class Allocated(Frozen):
    """The nodes as the batch system names them. `source` names the allocation, for messages. `starter` is what runs a
    command on each of them: srun or ssh. `this` is the name of the node of this process; None: it is on none of them.
    """

    source: str
    nodes: tuple[str, ...]
    starter: str
    this: str | None


def allocated(variables: Mapping[str, str], host: str | None = None) -> Allocated | None:
    """The allocation of this process; None without one, and if this process is one of several of a job step, which each
    measure their own node. `host` is this node's host name. Raises UsageError for an invalid list of nodes."""
    host = platform.node() if host is None else host
    if job := variables.get("SLURM_JOB_ID"):
        if _is_one_of_many(variables):
            return None
        listed = variables.get("SLURM_JOB_NODELIST") or variables.get("SLURM_NODELIST") or ""
        try:
            nodes = expand_hosts(listed)
        except ValueError as error:
            raise UsageError(
                f"SLURM_JOB_NODELIST: {error}", "run inside salloc or sbatch, or unset SLURM_JOB_ID"
            ) from None
        return _allocated(f"Slurm job {job}", nodes, "srun", variables.get("SLURMD_NODENAME") or host)
    if (job := variables.get("FLUX_ENCLOSING_ID")) and not _is_one_of_several_in_flux(variables):
        return _allocated(f"Flux job {job}", _hosts_of_flux(variables), "ssh", host)
    for source, name, file in (("PBS job", "PBS_JOBID", "PBS_NODEFILE"), ("LSF job", "LSB_JOBID", "LSB_DJOB_HOSTFILE")):
        if name in variables and file in variables:
            return _allocated(f"{source} {variables[name]}", _lines(file, Path(variables[file])), "ssh", host)
    return None


def _is_one_of_several_in_flux(variables: Mapping[str, str]) -> bool:
    tasks = variables.get("FLUX_JOB_SIZE", "1")
    return "FLUX_TASK_RANK" in variables and tasks.isdecimal() and int(tasks) > 1


def _hosts_of_flux(variables: Mapping[str, str]) -> tuple[str, ...]:
    """The nodes of the Flux instance that this process is in: flux-broker-attributes(7), `hostlist`."""
    command = ["flux", "getattr", "hostlist"]
    try:
        done = output_of(command, dict(variables), _TOPOLOGY_LIMIT_S)
        said = done.stderr.decode("utf-8", "replace").strip()[:200] or f"exit status {done.returncode}"
        if done.returncode == 0:
            return expand_hosts(done.stdout.decode("utf-8", "replace").strip())
    except OutOfTimeError:
        said = f"no answer within {_TOPOLOGY_LIMIT_S:g} s"
    except OSError as error:
        said = error.strerror or str(error)
    except ValueError as error:
        said = str(error)
    raise UsageError(
        f"the nodes of this Flux job are unknown: {' '.join(command)}: {said}",
        "run inside flux alloc or flux batch, or unset FLUX_ENCLOSING_ID",
    )


def named_hosts(hosts: Sequence[str], source: str, host: str | None = None) -> Allocated | None:
    """Hosts of the site file that are reached by ssh; None if there are none."""
    return _allocated(source, tuple(hosts), "ssh", platform.node() if host is None else host)


def _is_one_of_many(variables: Mapping[str, str]) -> bool:
    tasks = variables.get("SLURM_STEP_NUM_TASKS", "1")
    return "SLURM_PROCID" in variables and tasks.isdigit() and int(tasks) > 1


def _lines(name: str, file: Path) -> tuple[str, ...]:
    """The hosts of a file that has a line for each slot."""
    try:
        with file.open(encoding="utf-8", errors="replace") as stream:
            words = stream.read(_MOST_B).split()
    except OSError as error:
        raise UsageError(
            f"{name}: {file} cannot be read: {error.strerror}",
            "run on the first node of the job, or unset the variable",
        ) from None
    return tuple(words)


def _allocated(source: str, listed: Sequence[str], starter: str, host: str) -> Allocated | None:
    nodes = tuple(dict.fromkeys(listed))
    if not nodes:
        return None
    same = [node for node in nodes if node == host or node.partition(".")[0] == host.partition(".")[0]]
    return Allocated(source, nodes, starter, same[0] if same else None)


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
    return Allocation(found.source, tuple(nodes), tuple(left_out), found.nodes)


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
    said = " ".join(done.stderr.decode("utf-8", "replace").split())[-_LONGEST_SAID:] or f"exit status {done.returncode}"
    return done.stdout.decode("utf-8", "replace"), "" if done.returncode == 0 else f"{words[0]}: {said}"


_log = logging.getLogger(__name__)


def machine_here() -> Machine:
    """The machine of this process. Inside an allocation, and on a partition with `hosts`, it has the nodes that are
    like it: one that does not answer or is unlike is left out, with a warning.

    Raises UsageError if this process is on none of the nodes."""
    machine = discover_live()
    found = allocated(os.environ) or _hosts_of_site()
    if found is None:
        return machine
    if found.this is None:
        first = found.nodes[0]
        start = f"srun --nodes=1 --ntasks=1 --overlap --nodelist={first}" if found.starter == "srun" else f"ssh {first}"
        raise UsageError(
            f"this process runs on {machine.name}, which is not a node of {found.source} ({fold_hosts(found.nodes)})",
            f"run seatrial on its first node: {start} seatrial ...",
        )
    allocation = like_nodes(found, machine, os.environ)
    for one in allocation.left_out:
        _log.warning("%s is left out: %s", one.name, one.why)
    return replace(machine, allocation=allocation if len(found.nodes) > 1 else None)


def _hosts_of_site() -> Allocated | None:
    place = place_in_force()
    if place is None or place.system.batch is not None or not place.partition.hosts:
        return None
    return named_hosts(place.partition.hosts, f"partition {place.system.name}:{place.partition.name}")
