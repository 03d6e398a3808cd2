"""The programs that a cluster is made with."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence

from seatrial.errors import SeatrialError
from seatrial.model.frozen import Frozen
from seatrial.processes.output import OutOfTimeError, Output, output_of

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

    def try_(self, words: Sequence[str], text: str = "", variables: Mapping[str, str] | None = None) -> Output:
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
