"""Processes and their descendants, as reported by the kernel in /proc (proc(5)), and signals to them.

Imports little: the guard process loads it.
"""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def children(pid: int) -> set[int]:
    """The direct children of a process; empty if it has ended.

    Linux lists them in /proc/PID/task/TID/children; if the kernel was built without that file, the parents of all
    processes are read.
    """
    found: set[int] = set()
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found.update(map(int, file.read().split()))
    except (FileNotFoundError, ProcessLookupError):
        if exists(pid):
            every = (int(name) for name in os.listdir("/proc") if name.isdigit())
            return {one for one in every if (fields := _stat(one)) is not None and int(fields[1]) == pid}
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


def terminate(members: Iterable[int]) -> None:
    """Ask processes to end; a stopped one is continued, so that it can."""
    for member in members:
        _send(member, signal.SIGTERM)
        _send(member, signal.SIGCONT)


def kill(members: Iterable[int]) -> None:
    """End processes at once."""
    for member in members:
        _send(member, signal.SIGKILL)


def exists(pid: int) -> bool:
    """Whether there is such a process, a zombie included."""
    return os.path.exists(f"/proc/{pid}")


def is_alive(pid: int) -> bool:
    """Whether a process runs or could run; a zombie does not."""
    fields = _stat(pid)
    return fields is not None and fields[0] not in (b"Z", b"X")


def session(pid: int) -> int | None:
    """The session of a process; None if there is no such process."""
    fields = _stat(pid)
    return None if fields is None else int(fields[3])


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
        with open(f"/proc/{pid}/io", encoding="ascii") as file:
            return {name: int(number) for name, _, number in (line.partition(":") for line in file)}
    except (OSError, ValueError):
        return None


def calls_of(counters: dict[str, int] | None) -> dict[str, int]:
    """The number of reads and writes, of whatever descriptor, and the bytes that they moved, from these counters; empty
    if they are unknown."""
    try:
        return {name: (counters or {})[key] for name, key in _CALLS.items()}
    except KeyError:
        return {}


_CALLS = {"read_calls": "syscr", "write_calls": "syscw", "read_B": "rchar", "written_B": "wchar"}


def read_times(pid: int) -> dict[str, float]:
    """`leader_cpu_s` and `leader_delay_s` of a process that runs or was not yet waited for: the CPU time of its main
    thread, and the time that this thread was ready to run without running (proc_pid_schedstat(5)); empty if they cannot
    be read."""
    try:
        with open(f"/proc/{pid}/schedstat", "rb") as file:
            cpu_ns, delay_ns, _ = map(int, file.read().split())
    except (OSError, ValueError):
        return {}
    return {"leader_cpu_s": cpu_ns / 1e9, "leader_delay_s": delay_ns / 1e9}


def umask_here() -> int:
    """The file mode creation mask of this process, read without changing it; 0o022 if the kernel does not state it."""
    try:
        with open("/proc/self/status", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("Umask:"):
                    return int(line.split()[1], 8)
    except (OSError, ValueError):
        pass
    return 0o022


def _stat(pid: int) -> list[bytes] | None:
    """The fields of /proc/PID/stat from the third (state) on, or None if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return None


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return
