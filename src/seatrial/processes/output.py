"""What a tool prints."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from seatrial.model.frozen import Frozen
from seatrial.processes.start import Running


class Output(Frozen):
    """What a tool printed, and its return code as in subprocess."""

    returncode: int
    stdout: bytes
    stderr: bytes


class OutOfTimeError(Exception):
    """A tool did not finish in time and was killed."""


def output_of(
    command: Sequence[str],
    environment: Mapping[str, str],
    limit_s: float,
    text: bytes = b"",
    started: Callable[[Running], None] = lambda tool: None,
) -> Output:
    """Run a tool with `text` as its standard input. It is killed, with its descendants, when the time limit passes and
    when this process is interrupted. Raises OSError if it cannot be started, OutOfTimeError."""
    files = [os.memfd_create(name) for name in ("stdin", "stdout", "stderr")]  # a pipe would need a reader beside it
    try:
        os.write(files[0], text)
        os.lseek(files[0], 0, os.SEEK_SET)
        tool = Running(command, environment, files)
        try:
            started(tool)
            ending = tool.wait(limit_s)
        except BaseException:
            tool.kill()
            tool.wait()
            raise
        if ending is None:
            tool.kill()
            tool.wait()
            raise OutOfTimeError
        return Output(ending.returncode, _content(files[1]), _content(files[2]))
    finally:
        for file in files:
            os.close(file)


def _content(file: int) -> bytes:
    return os.pread(file, os.fstat(file).st_size, 0)
