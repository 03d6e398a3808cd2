"""The Slurm of a cluster: munged and slurmctld on the head, slurmd on each node, configured by files in its folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from seatrial.places.cluster.groups import Groups, join
from seatrial.places.cluster.shape import HEAD, HEAD_ADDRESS, Shape
from seatrial.places.cluster.tools import TMP, ClusterError, Tools, entering, plain_environment
from seatrial.processes.start import start_detached
from seatrial.processes.tree import is_alive

IDLE = "idle"
PARTITION = "all"
"""The partition that has all nodes."""
_CONF = "slurm.conf"
_CONFIGURATION = """ClusterName=seatrial
SlurmctldHost={head}({address})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CryptoType=crypto/munge
StateSaveLocation={folder}/slurmctld
SlurmdSpoolDir={folder}/%n/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n/slurmd.log
TmpFS={folder}/{tmp}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
InactiveLimit=0
PropagateResourceLimits=NONE
MailProg=/bin/true
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
TreeWidth={width}
"""
_FIRST_LOOK_S = 0.1
_LIMIT_S = 60.0
_LIMIT_PER_NODE_S = 0.5
_SHOWN_LINES = 6


def configuration(shape: Shape, folder: Path, memory_B: int) -> str:
    """slurm.conf(5). `memory_B`: that of the machine, which nodes without a limit have."""
    lines = [_CONFIGURATION.format(head=HEAD, address=HEAD_ADDRESS, folder=folder, tmp=TMP, width=len(shape.nodes))]
    if len(shape.switches) > 1:
        lines.append("TopologyPlugin=topology/tree\n")
    for node in shape.nodes:
        lines.append(
            f"NodeName={node.name} NodeAddr={node.address} CPUs={len(node.cpus)} "
            f"RealMemory={(node.memory_B or memory_B) >> 20} State=UNKNOWN\n"
        )
    names = ",".join(node.name for node in shape.nodes)
    lines.append(f"PartitionName={PARTITION} Nodes={names} Default=YES MaxTime=INFINITE State=UP\n")
    return "".join(lines)


def topology(shape: Shape) -> str:
    """topology.conf(5)."""
    lines = []
    for switch in shape.switches:
        nodes = ",".join(node.name for node in shape.below(switch.name))
        switches = ",".join(below.name for below in shape.switches if below.above == switch.name)
        what = f"Switches={switches}" if switches else f"Nodes={nodes}"
        lines.append(f"SwitchName={switch.name} {what}\n")
    return "".join(lines)


def variables(folder: Path) -> dict[str, str]:
    """The variables with which Slurm's commands find this cluster."""
    return {"SLURM_CONF": str(folder / _CONF)}


def write_configuration(shape: Shape, folder: Path, memory_B: int, *, is_v2: bool) -> None:
    """Write the files that Slurm reads, and a key of its own for munged, which only root can read."""
    (folder / _CONF).write_text(configuration(shape, folder, memory_B))
    (folder / "cgroup.conf").write_text(
        f"CgroupPlugin=cgroup/v{2 if is_v2 else 1}\n" + ("IgnoreSystemd=yes\n" if is_v2 else "CgroupAutomount=no\n")
    )
    if len(shape.switches) > 1:
        (folder / "topology.conf").write_text(topology(shape))
    for path in folder.glob("*.conf"):
        path.chmod(0o644)
    (folder / "slurmctld").mkdir(mode=0o700)
    (folder / "munge").mkdir()
    (folder / "munge").chmod(0o755)
    key = os.open(folder / "munge" / "key", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(key, os.urandom(1024))
    finally:
        os.close(key)
    for node in shape.nodes:
        (folder / node.name / "spool").mkdir(mode=0o755)


def start_slurm(
    tools: Tools, shape: Shape, folder: Path, groups: Groups, holders: Mapping[str, int]
) -> dict[str, dict[str, int]]:
    """Start the daemons: node -> name -> process id."""
    munge = folder / "munge"
    files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    conf = str(folder / _CONF)

    def start(node: str, words: Sequence[str], log: Path) -> int:
        inside = entering(tools, holders[node])
        command = [*inside, tools.paths[words[0]], *words[1:]]
        return start_detached(command, plain_environment(), log, before=partial(join, groups.of(node)))

    munged = ["munged", "--foreground", *(f"--{option}={munge / name}" for option, name in files.items())]
    started = {HEAD: {"munged": start(HEAD, munged, munge / "printed")}}
    started[HEAD]["slurmctld"] = start(HEAD, ["slurmctld", "-D", "-f", conf], folder / "slurmctld.printed")
    for node in shape.nodes:
        log = folder / node.name / "slurmd.printed"
        started[node.name] = {"slurmd": start(node.name, ["slurmd", "-D", "-N", node.name, "-f", conf], log)}
    return started


def wait_until_idle(
    tools: Tools,
    shape: Shape,
    folder: Path,
    processes: Mapping[str, Mapping[str, int]],
    progress: Callable[[str], None],
) -> None:
    """Wait until Slurm calls every node idle. Raises ClusterError with the end of the logs."""
    until = time.monotonic() + _LIMIT_S + _LIMIT_PER_NODE_S * len(shape.nodes)
    pause_s = _FIRST_LOOK_S
    progress("waiting until Slurm calls every node idle")
    while True:
        dead = [
            f"{role} of {node}" for node, roles in processes.items() for role, pid in roles.items() if not is_alive(pid)
        ]
        if dead:
            raise ClusterError(f"{', '.join(dead[:4])} ended while Slurm was starting\n{_said(folder, shape)}")
        states = node_states(tools, folder, processes[HEAD]["namespaces"])
        waiting = [node.name for node in shape.nodes if states.get(node.name) != IDLE]
        if not waiting:
            return
        if time.monotonic() > until:
            seen = ", ".join(f"{name} {states.get(name, 'unknown')}" for name in waiting[:4])
            raise ClusterError(f"not every node became idle in Slurm: {seen}\n{_said(folder, shape)}")
        time.sleep(pause_s)
        pause_s = min(1.0, pause_s * 1.5)


def node_states(tools: Tools, folder: Path, head: int) -> dict[str, str]:
    """Node -> its state in Slurm, such as `idle`; {} if the controller does not answer."""
    words = [*entering(tools, head), tools.paths["sinfo"], "--noheader", "--Node", "--format=%N %t"]
    done = tools.try_(words, variables=variables(folder))
    if done.returncode != 0:
        return {}
    rows = (line.split() for line in done.stdout.decode("utf-8", "replace").splitlines())
    return {row[0]: row[1] for row in rows if len(row) == 2}


def _said(folder: Path, shape: Shape) -> str:
    """The last lines of what the daemons printed and logged."""
    logs = [folder / "munge" / "printed", folder / "slurmctld.printed", folder / "slurmctld.log"]
    logs += [folder / shape.nodes[0].name / name for name in ("slurmd.printed", "slurmd.log")]
    return "\n".join(_ends(logs))


def _ends(logs: Sequence[Path]) -> Iterator[str]:
    for log in logs:
        try:
            lines = log.read_text(errors="replace").strip().splitlines()
        except OSError:
            continue
        if lines:
            yield "\n".join([f"  {log.name}:", *(f"    {line}" for line in lines[-_SHOWN_LINES:])])
