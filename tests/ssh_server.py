"""A real sshd for one test, with its own keys and port, and an `ssh` on PATH that reaches it without asking."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

SSHD = "/usr/sbin/sshd"


@dataclass(frozen=True)
class SshPlace:
    """`variables` have the `ssh` of the test first on PATH."""

    folder: Path
    port: int

    def variables(self) -> dict[str, str]:
        return {**os.environ, "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}


def prepared(folder: Path, port: int) -> SshPlace:
    """Keys, configuration and the `ssh` of the test; nothing is started."""
    for program in (SSHD, "ssh", "ssh-keygen"):
        if shutil.which(program) is None:
            pytest.skip(f"needs {Path(program).name} (on Debian: openssh-server)")
    if os.geteuid() != 0:
        pytest.skip("needs root: sshd changes to the user that logs in")
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    shutil.copy(folder / "user.pub", folder / "authorized")
    (folder / "sshd_config").write_text(
        f"Port {port}\nHostKey {folder / 'host'}\nAuthorizedKeysFile {folder / 'authorized'}\nStrictModes no\n"
        "UsePAM no\nPidFile none\nPermitRootLogin yes\nPasswordAuthentication no\nAcceptEnv *\n"
    )
    (folder / "ssh_config").write_text(
        f"Host *\n Port {port}\n IdentityFile {folder / 'user'}\n StrictHostKeyChecking no\n"
        f" UserKnownHostsFile /dev/null\n LogLevel ERROR\n"
    )
    (folder / "bin").mkdir()
    real, place = shutil.which("ssh"), folder / "bin" / "ssh"
    place.write_text(f'#!/bin/sh\nexec {shlex.quote(str(real))} -F {shlex.quote(str(folder / "ssh_config"))} "$@"\n')
    place.chmod(0o755)
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    return SshPlace(folder, port)


@contextmanager
def serving(
    place: SshPlace, before: Sequence[str] = (), variables: Mapping[str, str] | None = None
) -> Iterator[SshPlace]:
    """With an sshd; `before` are words before its command, which is then not waited for."""
    words = [*before, SSHD, "-D", "-e", "-f", str(place.folder / "sshd_config")]
    log = place.folder / "sshd.log"
    with log.open("ab") as said, subprocess.Popen(words, stdout=said, stderr=said, env=variables) as server:
        try:
            until = time.monotonic() + 30
            while not before and not _answers(place.port) and time.monotonic() < until:
                assert server.poll() is None, log.read_text()
                time.sleep(0.05)
            yield place
        finally:
            server.terminate()


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


def free_port() -> int:
    """A port that nothing listens at."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
