"""The descendants of a process, as reported by the kernel, and how to end them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

_GRACE_S = 1.0


def children(pid: int) -> set[int]:
    """The direct children of a process; empty if it has ended.

    Linux lists them in /proc/PID/task/TID/children; if the kernel was built without that file, the parents of all
    processes are read.
    """
    found: set[int] = set()
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found.update(int(child) for child in (thread / "children").read_text().split())
    except (FileNotFoundError, ProcessLookupError):
        if Path(f"/proc/{pid}").exists():
            return {int(e.name) for e in Path("/proc").iterdir() if e.name.isdigit() and _parent(int(e.name)) == pid}
    return found


def descendants(pid: int) -> list[int]:
    """Children, their children, and so on."""
    found: list[int] = []
    waiting = list(children(pid))
    while waiting:
        member = waiting.pop()
        found.append(member)
        waiting += children(member)
    return found


def end(members: Sequence[int]) -> None:
    """End processes: SIGTERM, a second of grace, then SIGKILL to them and to processes that they started meanwhile."""
    _signal(members, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE_S
    while time.monotonic() < deadline and any(is_alive(member) for member in members):
        time.sleep(0.02)
    late = [child for member in members for child in descendants(member)]
    _signal([*members, *late], signal.SIGKILL)


def ask_to_end(pid: int, limit_s: float) -> None:
    """Send SIGTERM to one process and wait until it has ended, at most `limit_s` seconds."""
    _signal([pid], signal.SIGTERM)
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline and is_alive(pid):
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Whether a process runs or could run; a zombie does not."""
    fields = _stat(pid)
    return fields is not None and fields[0] not in (b"Z", b"X")


def reap(pid: int) -> None:
    """Wait for an orphan that became our child; the child of another process is ignored."""
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        return


def read_counters(pid: int) -> dict[str, int] | None:
    """The counters of /proc/PID/io (name -> number) of a process that runs or was not yet waited for; None if they
    cannot be read."""
    try:
        lines = Path(f"/proc/{pid}/io").read_text(encoding="ascii").splitlines()
        return {name: int(number) for name, _, number in (line.partition(":") for line in lines)}
    except (OSError, ValueError):
        return None


def _parent(pid: int) -> int | None:
    fields = _stat(pid)
    return None if fields is None else int(fields[1])


def _stat(pid: int) -> list[bytes] | None:
    """The fields of /proc/PID/stat from the third (state) on, or None if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None


def _signal(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue
