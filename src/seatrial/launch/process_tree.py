"""The descendants of a process, as the kernel tells them, and how to end them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

_GRACE_S = 1.0


def children(pid: int) -> set[int]:
    """The direct children of a process; empty when it is gone.

    Linux tells them in /proc/PID/task/TID/children; where the kernel was built without that, every process is asked
    for its parent.
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
    """End processes: SIGTERM, a second of grace, then SIGKILL to them and to what they started meanwhile."""
    _signal(members, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE_S
    while time.monotonic() < deadline and any(is_alive(member) for member in members):
        time.sleep(0.02)
    late = [child for member in members for child in descendants(member)]
    _signal([*members, *late], signal.SIGKILL)


def ask_to_end(pid: int, limit_s: float) -> None:
    """SIGTERM to one process, and wait until it has ended, at most so long."""
    _signal([pid], signal.SIGTERM)
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline and is_alive(pid):
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Whether a process runs or could run; a zombie does not."""
    fields = _stat(pid)
    return fields is not None and fields[0] not in (b"Z", b"X")


def reap(pid: int) -> None:
    """Collect an orphan that became our child; somebody else's child is not ours to collect."""
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        return


def read_counters(pid: int) -> dict[str, int] | None:
    """/proc/PID/io of a process, or of one that has ended and was not yet waited for: name -> number; None where the
    kernel does not tell."""
    try:
        lines = Path(f"/proc/{pid}/io").read_text(encoding="ascii").splitlines()
        return {name: int(number) for name, _, number in (line.partition(":") for line in lines)}
    except (OSError, ValueError):
        return None


def _parent(pid: int) -> int | None:
    fields = _stat(pid)
    return None if fields is None else int(fields[1])


def _stat(pid: int) -> list[bytes] | None:
    """The fields of /proc/PID/stat from the third (state) on, or None: no such process."""
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
