"""Folders of one process: their names say which process they are of, so that a later one removes those of processes
that were killed. The name has the kernel since its start, the process namespace, the process id and when it started."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from seatrial.model.machine.host_list import host_in_names

OWNER = r".*-([0-9a-f]{8})-([0-9]+)-([0-9]+)-[0-9a-f]{8}"
"""What `own_name` makes: the kernel and process namespace, the process, and when it started."""
LEFTOVER_S = 30 * 86400.0
"""The age from which a folder of another host counts as one of a killed process."""


def own_name(prefix: str = "") -> str:
    """A new name for a folder of this process."""
    return f"{prefix}{host_in_names(platform.node())}-{owner_of_name()}-{secrets.token_hex(4)}"


def owner_of_name() -> str:
    """Which process the name of a folder is of."""
    return f"{kernel_and_namespace()}-{os.getpid()}-{process_start(os.getpid())}"


def sweep(top: Path, prefix: str, remove: Callable[[Path], None]) -> None:
    """Remove the folders in `top` whose names begin with `prefix` and whose processes are dead; of other hosts only
    what is very old. What cannot be removed stays."""
    with suppress(OSError):
        for path in top.iterdir():
            if not path.name.startswith(prefix):
                continue
            match = re.fullmatch(OWNER, path.name)
            if match and match[1] == kernel_and_namespace():
                is_over = process_start(int(match[2])) != int(match[3])
            else:
                is_over = time.time() - path.lstat().st_mtime > LEFTOVER_S
            if is_over:
                remove(path)


@contextmanager
def own_folder(
    place: Path, prefix: str, mode: int = 0o700, remove: Callable[[Path], None] | None = None
) -> Iterator[Path]:
    """A new folder of this process in `place`, removed at the end; those of killed processes are removed first. Raises
    OSError."""
    remove = remove or (lambda path: shutil.rmtree(path, ignore_errors=True))
    sweep(place, prefix, remove)
    folder = place / own_name(prefix)
    folder.mkdir(mode=0o700)
    try:
        folder.chmod(mode)
        yield folder
    finally:
        remove(folder)


@contextmanager
def temporary_folder(name: str) -> Iterator[Path]:
    """A new folder `seatrial-NAME-...` of this process and user in $TMPDIR or /tmp, removed at the end; those of killed
    processes of this user are removed first. Raises OSError."""
    prefix = f"seatrial-{name}-{os.geteuid()}-"
    with own_folder(Path(tempfile.gettempdir()), prefix, remove=_remove_own) as folder:
        yield folder


def _remove_own(path: Path) -> None:
    """Everybody may make a folder of that name: whose it is counts, and a link is not followed."""
    with suppress(OSError):
        if path.lstat().st_uid == os.geteuid():
            shutil.rmtree(path, ignore_errors=True)


def kernel_and_namespace() -> str:
    """Identifies this host, since its start, and the process namespace: where a process id means this process."""
    return _kernel_of(process_namespace())


@cache
def _kernel_of(namespace: str) -> str:
    return hashlib.sha256(f"{machine_id()} {boot_id()} {namespace}".encode()).hexdigest()[:8]


@cache
def machine_id() -> str:
    """The machine id (machine-id(5)), hashed since it is confidential; "" if it has none."""
    try:
        return hashlib.sha256(Path("/etc/machine-id").read_bytes().strip()).hexdigest()[:16]
    except OSError:
        return ""


def boot_id() -> str:
    """The boot id of the kernel."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def process_namespace() -> str:
    """The pid namespace; a container has its own."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def process_start(pid: int) -> int | None:
    """The start of a process in clock ticks since boot (field 22 of /proc/PID/stat); None if there is no such
    process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = stat.rpartition(b")")[2].split()
    return None if fields[0] in (b"Z", b"X") else int(fields[19])
