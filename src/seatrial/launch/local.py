"""Run programs on this machine, with a time limit, and leave nothing of them running."""

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
"""How much of the end of a program's output is kept as evidence."""

_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True, slots=True)
class Completed:
    """How a program ended: `returncode` (negative for a signal, as in subprocess) and the end of its output. `io` are
    the counters of /proc/PID/io at its end, those of its children included; None where they cannot be read."""

    returncode: int
    wall_s: float
    limit_s: float
    timed_out: bool
    evidence: str
    io: Mapping[str, int] | None = None

    @property
    def died_of(self) -> str:
        """The way it ended, in words."""
        if self.returncode < 0:
            try:
                name = signal.Signals(-self.returncode).name
            except ValueError:
                name = f"signal {-self.returncode}"
            return f"was killed by {name}"
        return f"ended with exit status {self.returncode}"


def adopt_orphans() -> None:
    """Make this process the parent of its orphaned descendants (Linux `PR_SET_CHILD_SUBREAPER`), so that a child of a
    program cannot escape by letting its own parent exit."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Program:
    """What to start: a command, its environment, the folder that its stdout and stderr go to, and the folder that it
    runs in (None: the current one). `grace_s`: it ends its own descendants when it gets SIGTERM, and has so long for
    it (launch/place.py); 0: they are ended with it."""

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
    """Run a command to its end and wait for it; stdout and stderr go to files in `directory`.

    After `limit_s` seconds, and when this process is interrupted, the program is ended with all its descendants.
    Raises OSError where it cannot be started.
    """
    (completed,) = run_together([Program(command, environment, directory, runs_in)], limit_s)
    return completed


def run_together(programs: Sequence[Program], limit_s: float) -> list[Completed]:
    """Run programs at the same time, and wait for the end of all; one alone runs as it is.

    Several stand in a ring of pipes, the first leading, and take turns (native/turns.hpp); they must be such as can.
    A `wall_s` lasts until an end was seen, looked for in the order given. Ended and raised as by `run`: all together.
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
    # A timer and a plain wait: Popen.wait(timeout=) polls with sleeps of up to 50 ms, which would be our cost.
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
            counters.append(read_counters(process.pid))  # its own and those of all children that it waited for
            process.wait()
    except BaseException:
        end_all()
        for process in started:
            process.wait()
        raise
    finally:
        timer.cancel()
        if timer.ident is not None:
            timer.join()  # an expiry under way must not reach into the next repeat
        _end_orphans(children_before | {process.pid for process in started})
    return [
        Completed(process.returncode, wall, limit_s, expired.is_set(), _evidence(program.directory), io)
        for process, wall, program, io in zip(started, wall_s, programs, counters, strict=True)
    ]


def _start(programs: Sequence[Program], started: list[subprocess.Popen[bytes]]) -> None:
    """Start all; each inherits two ends of the ring and no others, so that its own end is seen by the next one."""
    with ExitStack() as ours:
        ring = [_pipe(ours) for _ in programs] if len(programs) > 1 else []
        for k, program in enumerate(programs):
            stdout = ours.enter_context((program.directory / "stdout").open("wb"))
            stderr = ours.enter_context((program.directory / "stderr").open("wb"))
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


def _pipe(owner: ExitStack) -> tuple[int, int]:
    """A pipe (read end, write end) that is closed here with its owner."""
    ends = os.pipe()
    for end_of_it in ends:
        owner.callback(os.close, end_of_it)
    return ends


def _end_orphans(known: set[int]) -> None:
    """End what a finished program left behind; after `adopt_orphans` that is every child that was not ours before."""
    orphans = children(os.getpid()) - known
    if orphans:
        end([member for orphan in orphans for member in (orphan, *descendants(orphan))])
        for orphan in orphans:
            reap(orphan)


def _evidence(directory: Path) -> str:
    """The end of stderr, or of stdout where stderr is empty."""
    for name in ("stderr", "stdout"):
        path = directory / name
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - EVIDENCE_BYTES))
            text = stream.read().decode("utf-8", "replace").strip()
        if text:
            return text
    return ""
