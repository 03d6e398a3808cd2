"""Runs a command again and again, killed at each of its calls that change the disk, or with a disk that is full after
so many bytes (an import then once more), and prints what it left: one JSON object on each line.

`python interrupted.py kill|full FOLDER ARGUMENTS...`; in the arguments, OUT is a new folder for each time.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from seatrial.cli.ending import main

_CHANGING = ("open", "mkdir", "rename", "replace", "unlink", "rmdir", "write", "ftruncate")
_MOST_CALLS = 200
_FULL_AFTER_B = (0, 100, 700, 5000)
_STEP = 1 if os.environ.get("SEATRIAL_KILLS") else 4
"""SEATRIAL_KILLS is set: killed at every call, else at each fourth."""


def _killed_at(number: int) -> None:
    """End this process without warning before the so-manieth call."""
    left = number

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal left
            if real is not opened or _writes(arguments):
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **named)

        return call

    opened = os.open
    for name in _CHANGING:
        setattr(os, name, counted(getattr(os, name)))


def _writes(arguments: tuple[Any, ...]) -> bool:
    return len(arguments) > 1 and bool(arguments[1] & (os.O_WRONLY | os.O_RDWR))


def _run(arguments: list[str], limit: Callable[[], None]) -> int:
    """The wait status of the command in a child."""
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (1, 2):
            os.dup2(null, stream)
        limit()
        sys.argv = ["seatrial", *arguments]
        main()
    return os.waitpid(pid, 0)[1]


def _try(name: str, folder: Path, arguments: list[str], limit: Callable[[], None]) -> bool:
    out = folder / name
    out.mkdir()
    words = [word.replace("OUT", str(out)) for word in arguments]
    status = _run(words, limit)
    left = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    again = os.waitstatus_to_exitcode(_run(words, lambda: None)) if words[0] == "import" else 0
    print(json.dumps({"out": str(out), "status": os.waitstatus_to_exitcode(status), "left": left, "again": again}))
    sys.stdout.flush()
    return os.WIFSIGNALED(status)


def _preload() -> None:
    """Load once what every child needs."""
    import jinja2
    import numpy as np
    import vl_convert

    import seatrial.cli.import_
    import seatrial.cli.profile
    import seatrial.cli.report
    from seatrial.applications.readers import readers
    from seatrial.benchmarks import registry

    assert jinja2 and np and vl_convert and seatrial.cli and registry() and readers()


if __name__ == "__main__":
    _preload()
    how, where, words = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    if how == "kill":
        for count in range(0, _MOST_CALLS, _STEP):
            if not _try(f"kill-{count}", where, words, lambda count=count: _killed_at(count)):
                break
    else:
        for most in _FULL_AFTER_B:
            hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            _try(
                f"full-{most}",
                where,
                words,
                lambda most=most, hard=hard: resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard)),
            )
