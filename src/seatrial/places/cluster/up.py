"""Brings a cluster up with its Slurm, and takes it down. Nothing is left of one that does not come up.

munged and slurmctld run on the head, slurmd on each node, configured by files in the folder of the cluster.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import resources
from pathlib import Path

from seatrial.errors import UsageError
from seatrial.places.cluster.groups import (
    ControlGroups,
    end_members,
    join,
    make_group,
    make_groups,
    members,
    plan_groups,
    remove_groups,
)
from seatrial.places.cluster.namespaces import (
    TMP,
    ClusterError,
    Tools,
    entering,
    furnish,
    has_planted,
    is_holding,
    plain_environment,
    plant,
    start_holder,
    write_shared_files,
)
from seatrial.places.cluster.network import make_network, measure_links
from seatrial.places.cluster.shape import HEAD, HEAD_ADDRESS, ClusterShape, ClusterState, Home, existing_home, new_home
from seatrial.places.owned_folder import write_state
from seatrial.processes.start import start_detached
from seatrial.processes.tree import is_alive

IDLE = "idle"
PARTITION = "all"
"""The partition that has all nodes."""
_CONF = "slurm.conf"
_FIRST_LOOK_S = 0.1
_LIMIT_S = 60.0
_LIMIT_PER_NODE_S = 0.5
_SHOWN_LINES = 6


def configuration(shape: ClusterShape, folder: Path, memory_B: int) -> str:
    """slurm.conf(5). `memory_B`: that of the machine, which nodes without a limit have."""
    written = resources.files(__package__).joinpath(_CONF).read_text(encoding="utf-8")
    lines = [written.format(head=HEAD, address=HEAD_ADDRESS, folder=folder, tmp=TMP, width=len(shape.nodes))]
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


def topology(shape: ClusterShape) -> str:
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


def write_configuration(shape: ClusterShape, folder: Path, memory_B: int, *, is_v2: bool) -> None:
    """Write the files that Slurm reads, and its own key for munged, which only root can read."""
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
    tools: Tools, shape: ClusterShape, folder: Path, groups: ControlGroups, holders: Mapping[str, int]
) -> dict[str, dict[str, int]]:
    """Start the daemons: node -> name -> process id."""
    munge = folder / "munge"
    files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    conf = str(folder / _CONF)

    def start(node: str, words: Sequence[str], log: Path) -> int:
        command = [*entering(tools, holders[node]), tools.paths[words[0]], *words[1:]]
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
    shape: ClusterShape,
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


def _said(folder: Path, shape: ClusterShape) -> str:
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


_END_LIMIT_S = 20.0
_HOLDER_LIMIT_S = 20.0
_LOOK_AGAIN_S = 0.005
HOLDERS_LOG = "namespaces.printed"


def bring_up(
    path: Path,
    shape: ClusterShape,
    tools: Tools,
    probe: Path,
    progress: Callable[[str], None],
    memory_B: int,
    faults: Path | None = None,
) -> ClusterState:
    """Make a cluster in the folder `path`, and return when every node is idle and its links are measured.

    `probe` is the path of the program `link_probe`, `faults` of the library `node_faults`, where a node needs it;
    `memory_B` the memory of this machine. Raises UsageError if there
    is a cluster already, ClusterError or GroupsError if a part fails.
    """
    with new_home(path) as home:
        try:
            return _made(home, shape, tools, probe, progress, memory_B, faults)
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


def _made(
    home: Home,
    shape: ClusterShape,
    tools: Tools,
    probe: Path,
    progress: Callable[[str], None],
    memory_B: int,
    faults: Path | None,
) -> ClusterState:
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
    if faults is not None:  # before other files of /etc are mounted over it
        for node in filter(has_planted, shape.nodes):
            (home.path / node.name).mkdir()
            plant(tools, holders[node.name], node, faults, home.path)
    for node_name, holder in holders.items():
        furnish(tools, holder, node_name, home.path)
    make_network(tools, shape, holders)
    write_configuration(shape, home.path, memory_B, is_v2=groups.is_v2)
    daemons = start_slurm(tools, shape, home.path, groups, holders)
    processes = {n: {"namespaces": holders[n], **daemons[n]} for n in _names(shape)}
    wait_until_idle(tools, shape, home.path, processes, progress)
    progress("measuring the links")
    state = ClusterState(name, shape, processes, measure_links(tools, probe, shape, holders))
    write_state(home.path, state)
    return state


def _names(shape: ClusterShape) -> list[str]:
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
