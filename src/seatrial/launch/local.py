"""Runs programs on this machine, with a time limit, and leaves no process of theirs running."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from seatrial.launch.process_tree import ask_to_end, children, descendants, end, read_counters, reap

EVIDENCE_BYTES = 4000
"""Bytes from the end of a program's output that are kept as evidence."""

_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True, slots=True)
class Completed:
    """How a program ended: `returncode` (negative for a signal, as in subprocess) and the end of its output. `io` are
    the final counters of /proc/PID/io, including its children; None if they cannot be read."""

    returncode: int
    wall_s: float
    limit_s: float
    timed_out: bool
    evidence: str
    io: Mapping[str, int] | None = None

    @property
    def died_of(self) -> str:
        """How it ended, for messages."""
        if self.returncode < 0:
            try:
                name = signal.Signals(-self.returncode).name
            except ValueError:
                name = f"signal {-self.returncode}"
            return f"was killed by {name}"
        return f"ended with exit status {self.returncode}"


def adopt_orphans() -> None:
    """Make this process the parent of its orphaned descendants (Linux `PR_SET_CHILD_SUBREAPER`), so that no
    process of a program escapes when its parent exits."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Program:
    """What to start: a command, its environment, the folder for its stdout and stderr, and its working directory (None:
    the current one). `grace_s`: the time that it has after SIGTERM to end its own descendants (launch/place.py); 0:
    they are ended with it."""

    command: Sequence[str]
    environment: Mapping[str, str]
    directory: Path
    runs_in: Path | None = None
    grace_s: float = 0.0


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    directory: Path,
    limit_s: float,
    runs_in: Path | None = None,
) -> Completed:
    """Run a command and wait for it; stdout and stderr go to files in `directory`.

    After `limit_s` seconds, and when this process is interrupted, the program is ended with all its descendants.
    Raises OSError if it cannot be started.
    """
    (completed,) = run_together([Program(command, environment, directory, runs_in)], limit_s)
    return completed


def run_together(programs: Sequence[Program], limit_s: float) -> list[Completed]:
    """Run programs concurrently and wait for all of them.

    Several programs are connected by a ring of pipes, the first one leads, and they take turns (native/turns.hpp),
    which all of them must support. They are waited for in the order given, so a `wall_s` may include waiting for an
    earlier one. Ended, and raising, as by `run`: all together.
    """
    started: list[subprocess.Popen[bytes]] = []
    expired = threading.Event()

    def end_all() -> None:
        for program, process in zip(programs, started, strict=False):
            if program.grace_s and process.returncode is None:
                ask_to_end(process.pid, program.grace_s)
        running = [process.pid for process in started if process.returncode is None]
        end([member for pid in running for member in (pid, *descendants(pid))])

    def expire() -> None:
        expired.set()
        end_all()

    children_before = children(os.getpid())
    start = time.perf_counter()
    # A timer and a plain wait: Popen.wait(timeout=) polls with sleeps of up to 50 ms, which would add to the time.
    timer = threading.Timer(limit_s, expire)
    timer.daemon = True
    wall_s: list[float] = []
    counters: list[dict[str, int] | None] = []
    try:
        _start(programs, started)
        timer.start()
        for process in started:
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            wall_s.append(time.perf_counter() - start)
            counters.append(read_counters(process.pid))  # including all children that it waited for
            process.wait()
    except BaseException:
        end_all()
        for process in started:
            process.wait()
        raise
    finally:
        timer.cancel()
        if timer.ident is not None:
            timer.join()  # an expiry in progress must not affect the next repeat
        _end_orphans(children_before | {process.pid for process in started})
    return [
        Completed(process.returncode, wall, limit_s, expired.is_set(), _evidence(program.directory), io)
        for process, wall, program, io in zip(started, wall_s, programs, counters, strict=True)
    ]


def _start(programs: Sequence[Program], started: list[subprocess.Popen[bytes]]) -> None:
    """Start all; each inherits only its two ends of the ring, so that the next one notices when it exits."""
    with ExitStack() as ours:
        ring = [_pipe(ours) for _ in programs] if len(programs) > 1 else []
        for k, program in enumerate(programs):
            stdout, stderr = (
                ours.enter_context(open(program.directory / name, "wb", opener=_private))
                for name in ("stdout", "stderr")
            )
            ends = (ring[k - 1][0], ring[k][1]) if ring else ()
            turns = ["--turns", f"{ends[0]}-{ends[1]}", "--leads", str(int(k == 0))] if ends else []
            started.append(
                subprocess.Popen(
                    [*program.command, *turns],
                    env=dict(program.environment),
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=stderr,
                    start_new_session=True,
                    cwd=program.runs_in,
                    pass_fds=ends,
                )
            )


def _private(path: str, flags: int) -> int:
    """Opens a file that only its owner may read: programs print what nobody else should see."""
    descriptor = os.open(path, flags, 0o600)
    os.fchmod(descriptor, 0o600)  # it may be left by a killed run of an earlier version
    return descriptor


def _pipe(owner: ExitStack) -> tuple[int, int]:
    """A pipe (read end, write end) that is closed in this process with its owner."""
    ends = os.pipe()
    for descriptor in ends:
        owner.callback(os.close, descriptor)
    return ends


def _end_orphans(known: set[int]) -> None:
    """End the processes that a finished program left behind: after `adopt_orphans`, all children not in `known`."""
    orphans = children(os.getpid()) - known
    if orphans:
        end([member for orphan in orphans for member in (orphan, *descendants(orphan))])
        for orphan in orphans:
            reap(orphan)


def _evidence(directory: Path) -> str:
    """The end of stderr, or of stdout if stderr is empty."""
    for name in ("stderr", "stdout"):
        path = directory / name
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - EVIDENCE_BYTES))
            text = stream.read().decode("utf-8", "replace").strip()
        if text:
            return text
    return ""
