"""A node's namespaces: network, host name, mounts, System V IPC. They exist as long as a process is in them.

MPI libraries take two processes for neighbours on one node if they share /dev/shm, System V IPC, or the kernel's
boot_id; then they would pass messages through memory instead of the link. So each node has its own.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from seatrial.places.cluster.groups import join
from seatrial.places.cluster.shape import HEAD, HEAD_ADDRESS, Shape
from seatrial.places.cluster.tools import Tools, plain_environment
from seatrial.processes.start import start_detached

TMP = "tmp"
"""In the cluster's folder: each node has its own memory there, for sockets and the like."""
_HOSTS = "hosts"
_FILES = 0o644


def start_holder(tools: Tools, groups: Sequence[Path], log: Path) -> int:
    """Start the process that keeps new namespaces alive; its id. The other processes of the node enter them."""
    words = [tools.paths["unshare"], "--net", "--uts", "--mount", "--ipc", "--propagation", "private"]
    return start_detached(
        [*words, tools.paths["sleep"], "infinity"], plain_environment(), log, before=partial(join, groups)
    )


def is_holding(pid: int) -> bool:
    """Whether this process has its namespaces and waits in them."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() == "sleep"
    except OSError:
        return False


def entering(tools: Tools, holder: int) -> list[str]:
    """The command prefix that runs a command in the namespaces of this process."""
    return [tools.paths["nsenter"], f"--target={holder}", "--net", "--uts", "--mount", "--ipc", "--"]


def write_shared_files(folder: Path, shape: Shape) -> None:
    """Write the files that all nodes show in place of the machine's own."""
    names = [f"{HEAD_ADDRESS} {HEAD}", *(f"{node.address} {node.name}" for node in shape.nodes)]
    _write(folder / _HOSTS, "\n".join(["127.0.0.1 localhost", "::1 localhost ip6-localhost", *names]) + "\n")


def furnish(tools: Tools, holder: int, name: str, folder: Path) -> None:
    """Give new namespaces their host name, and the mounts that make them a node. Raises ClusterError."""
    own = folder / name
    own.mkdir()
    _write(own / "boot_id", f"{uuid.uuid4()}\n")
    _write(own / "hostname", f"{name}\n")
    for inner in (folder / TMP, own / "groups"):
        inner.mkdir(exist_ok=True)
    inside = entering(tools, holder)
    for words in (
        ["hostname", name],
        ["mount", "-t", "tmpfs", "-o", "mode=1777,nosuid,nodev", "tmpfs", "/dev/shm"],  # noqa: S108 - the mount point, not a file
        ["mount", "-t", "tmpfs", "-o", "mode=1777,nosuid,nodev", "tmpfs", str(folder / TMP)],
        ["mount", "--bind", str(own / "boot_id"), "/proc/sys/kernel/random/boot_id"],
        ["mount", "--bind", str(folder / _HOSTS), "/etc/hosts"],
        ["mount", "--bind", str(own / "hostname"), "/etc/hostname"],
        # /sys shows the interfaces of the namespaces in which it was mounted; slurmd needs the control groups in it.
        ["mount", "--rbind", "/sys/fs/cgroup", str(own / "groups")],
        ["mount", "-t", "sysfs", "-o", "nosuid,nodev,noexec", "sysfs", "/sys"],
        ["mount", "--move", str(own / "groups"), "/sys/fs/cgroup"],
    ):
        tools.run([*inside, *words])


def _write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(_FILES)
