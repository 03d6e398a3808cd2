"""`seatrial ...` in this process: what a child would answer, without the time that a new interpreter takes to load."""

from __future__ import annotations

import contextlib
import gc
import io
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.cli.ending import main
from seatrial.cli.process import STOPS
from seatrial.environments.settings.node import use_root
from seatrial.plan.site_in_force import use_site


def seatrial_here(
    *arguments: str, cwd: Path, stdin: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[str]:
    """The command with these arguments: its exit status and what it wrote, as `subprocess.run` gives them.

    Only what Python writes is caught, so it is for commands that start no program whose output is asked about.
    """
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    given = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch, _process_kept():
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.chdir(cwd)
        patch.setattr(sys, "argv", ["seatrial", *arguments])
        for name, stream in (("stdin", given), ("stdout", out), ("stderr", err)):
            patch.setattr(sys, name, stream)
        with pytest.raises(SystemExit) as end:
            main()
    assert isinstance(end.value.code, int)
    answers = []
    for stream in (out, err):
        stream.flush()
        answers.append(stream.buffer.getvalue().decode())
    return subprocess.CompletedProcess(["seatrial", *arguments], end.value.code, *answers)


@contextlib.contextmanager
def _process_kept() -> Iterator[None]:
    """What the command sets for its whole process is afterwards as it was."""
    thresholds, handlers = gc.get_threshold(), {number: signal.getsignal(number) for number in STOPS}
    standard = [(number, os.dup(number)) for number in (1, 2)]
    log = logging.getLogger("seatrial")
    level = log.level
    use_site(None)
    try:
        yield
    finally:
        use_site(None)
        use_root(Path("/"))
        log.setLevel(level)
        for number, kept in standard:
            os.dup2(kept, number)
            os.close(kept)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        gc.set_threshold(*thresholds)
