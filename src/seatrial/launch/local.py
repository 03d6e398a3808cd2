"""Run one program on this machine, with a time limit, and leave nothing of it running."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from seatrial.launch.process_tree import children, descendants, end, reap

EVIDENCE_BYTES = 4000
"""How much of the end of a program's output is kept as evidence."""

_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True, slots=True)
class Completed:
    """How a program ended: `returncode` (negative for a signal, as in subprocess) and the end of its output."""

    returncode: int
    wall_s: float
    limit_s: float
    timed_out: bool
    evidence: str

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


def run(command: Sequence[str], environment: Mapping[str, str], directory: Path, limit_s: float) -> Completed:
    """Run a command to its end and wait for it; stdout and stderr go to files in `directory`.

    After `limit_s` seconds, and when this process is interrupted, the program is ended with all its descendants.
    Raises OSError where it cannot be started.
    """
    with (directory / "stdout").open("wb") as stdout, (directory / "stderr").open("wb") as stderr:
        children_before = children(os.getpid())
        start = time.perf_counter()
        process = subprocess.Popen(
            list(command),
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            end([process.pid, *descendants(process.pid)])

        # A timer and a plain wait: Popen.wait(timeout=) polls with sleeps of up to 50 ms, which would be our cost.
        timer = threading.Timer(limit_s, expire)
        timer.daemon = True
        timer.start()
        try:
            process.wait()
            wall_s = time.perf_counter() - start
        except BaseException:
            expire()
            process.wait()
            raise
        finally:
            timer.cancel()
            timer.join()  # an expiry under way must not reach into the next repeat
            _end_orphans(children_before | {process.pid})
    return Completed(process.returncode, wall_s, limit_s, expired.is_set(), _evidence(directory))


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
