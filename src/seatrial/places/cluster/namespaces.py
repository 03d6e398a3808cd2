"""The programs that a cluster is made with, and a node's namespaces: network, host name, mounts, System V IPC.

Namespaces exist as long as a process is in them. MPI libraries take two processes for neighbours on one node if they
share /dev/shm, System V IPC, or the kernel's boot_id; then they would pass messages through memory instead of the link.
So each node has its own.
"""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from seatrial.errors import SeatrialError
from seatrial.model.frozen import Frozen
from seatrial.places.cluster.groups import join
from seatrial.places.cluster.shape import HEAD, HEAD_ADDRESS, ClusterShape, NodeShape
from seatrial.processes.start import OutOfTimeError, ProgramOutput, output_of, start_detached

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PACKAGES = {
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "sinfo": "slurm-client",
    "srun": "slurm-client",
    "munged": "munge",
    "ip": "iproute2",
    "tc": "iproute2",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "mount": "mount",
    "hostname": "hostname",
    "sleep": "coreutils",
    "env": "coreutils",
}
"""Program -> the Debian package that has it."""
_LIMIT_S = 30.0


class ClusterError(SeatrialError):
    """A cluster cannot be made here, or a part of it failed."""


class Tools(Frozen):
    """The paths of the programs, by name."""

    paths: Mapping[str, str]

    def run(self, words: Sequence[str], text: str = "") -> str:
        """Run a short command; the first word is the name of a tool, `text` its standard input. What it printed.

        Raises ClusterError with what it said if it fails.
        """
        output = self.try_(words, text)
        if output.returncode != 0:
            said = output.stderr.decode("utf-8", "replace").strip() or f"exit status {output.returncode}"
            raise ClusterError(f"`{' '.join(words)}` failed: {said}")
        return output.stdout.decode("utf-8", "replace")

    def try_(self, words: Sequence[str], text: str = "", variables: Mapping[str, str] | None = None) -> ProgramOutput:
        """The same, whether it fails or not."""
        command = [self.paths.get(words[0], words[0]), *words[1:]]
        try:
            return output_of(command, plain_environment() | dict(variables or {}), _LIMIT_S, text.encode())
        except OutOfTimeError:
            raise ClusterError(f"`{' '.join(words)}` did not end within {_LIMIT_S:g} s") from None
        except OSError as error:
            raise ClusterError(f"`{' '.join(words)}` cannot be started: {error.strerror}") from error


def find_tools() -> Tools:
    """The programs, from the system's folders. Raises ClusterError with the packages of those that are missing."""
    found = {name: shutil.which(name, path=SYSTEM_PATH) for name in _PACKAGES}
    missing = [name for name, path in found.items() if path is None]
    if missing:
        packages = dict.fromkeys(_PACKAGES[name] for name in missing)
        raise ClusterError(
            f"a cluster needs {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed",
            f"on Debian: apt install {' '.join(packages)}",
        )
    return Tools({name: path for name, path in found.items() if path is not None})


def need_root(what: str) -> None:
    """Raises ClusterError unless this process is root."""
    if os.geteuid() != 0:
        raise ClusterError(
            f"{what} needs root, for namespaces, links and control groups; this is user {os.geteuid()}",
            "run it as root",
        )


def plain_environment() -> dict[str, str]:
    """The environment of the cluster's own processes: nothing of the user's."""
    return {"PATH": SYSTEM_PATH, "LC_ALL": "C.UTF-8", "HOME": "/root"}


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


def write_shared_files(folder: Path, shape: ClusterShape) -> None:
    """Write the files that all nodes show in place of the machine's own."""
    names = [f"{HEAD_ADDRESS} {HEAD}", *(f"{node.address} {node.name}" for node in shape.nodes)]
    _write(folder / _HOSTS, "\n".join(["127.0.0.1 localhost", "::1 localhost ip6-localhost", *names]) + "\n")


def furnish(tools: Tools, holder: int, name: str, folder: Path) -> None:
    """Give new namespaces their host name, and the mounts that make them a node. Raises ClusterError."""
    own = folder / name
    own.mkdir(exist_ok=True)
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


_FAULTS = "faults"
"""The library that plants faults, in the folder of the node."""


def plant(tools: Tools, holder: int, node: NodeShape, library: Path, folder: Path) -> None:
    """Let what runs on the node preload the library that plants its faults (native/launch/node_faults.c). Raises
    ClusterError."""
    own = folder / node.name
    for name in ("etc", "work"):
        (own / name).mkdir()
    shutil.copyfile(library, own / _FAULTS)
    (own / _FAULTS).chmod(0o755)
    numbers = (node.clock_s or 0.0, node.drift or 0.0, time.time(), node.files_s or 0.0)
    _write(own / f"{_FAULTS}.faults", " ".join(f"{number:.9f}" for number in numbers) + "\n")
    _write(own / "etc" / "ld.so.preload", f"{own / _FAULTS}\n")
    over = f"lowerdir=/etc,upperdir={own / 'etc'},workdir={own / 'work'}"
    tools.run([*entering(tools, holder), "mount", "-t", "overlay", "-o", over, "overlay", "/etc"])


def has_planted(node: NodeShape) -> bool:
    """Whether a node needs the library that plants faults."""
    return bool(node.clock_s or node.drift or node.files_s)


def _write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(_FILES)
