"""Starts processes that outlive this one; whoever starts one records how it is ended."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


def start_detached(
    words: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    before: Callable[[], None] = lambda: None,
    keep: Sequence[int] = (),
) -> int:
    """Start a process in a session of its own, in the root folder, without standard input; what it prints is appended
    to `log`. `before` runs in it first, in a copy of this process. It also gets the descriptors `keep`. Returns its id.

    Not through the guard, which would end it with this process. Raises OSError, and subprocess.SubprocessError if
    `before` raises.
    """
    # Python ignores what a signal handler raises while it forks, so a signal would be lost.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())

    def first() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        before()

    try:
        with log.open("ab") as printed:
            process = subprocess.Popen(
                list(words),
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                cwd="/",
                start_new_session=True,
                preexec_fn=first,
                pass_fds=keep,
            )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    process.returncode = 0  # nobody waits for it
    return process.pid
