"""Standard streams that may be closed, full, or a pipe that nobody reads: no command fails halfway because of them.

The command runs to its end and its exit status keeps its meaning. Afterwards `output_error` says whether its output is
complete. A reader that stops early, as `head` does, wanted no more: that is not an error.
"""

from __future__ import annotations

import io
import os
import select
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Buffer


class _Raw(io.FileIO):
    """A file descriptor for output that accepts everything and remembers the first error."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self.error: OSError | None = None

    def write(self, data: Buffer, /) -> int:
        """Write; after an error, everything is dropped."""
        while self.error is None:
            try:
                written = super().write(data)
            except OSError as error:
                self.error = error
                break
            if written is not None:
                return written
            waiting = select.poll()  # another program has made the pipe non-blocking, and it is full
            waiting.register(self.fileno(), select.POLLOUT)
            waiting.poll()
        return memoryview(data).nbytes


_output: _Raw | None = None


def take_streams() -> None:
    """Replace this process's standard streams. Characters that they cannot show are printed as ?."""
    global _output
    _fill_closed()
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)))
    if sys.stdout is sys.__stdout__:  # not if a program that calls us has replaced it
        _output = _Raw(1)
        sys.stdout = _text(_output, sys.stdout, line_buffering=_output.isatty())
    if sys.stderr is sys.__stderr__:
        sys.stderr = _text(_Raw(2), sys.stderr, line_buffering=True)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def output_error() -> OSError | None:
    """Why stdout could not be written; None if all was written, or its reader wanted no more."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return None
    except OSError as error:
        return error
    seen = None if _output is None else _output.error
    return None if isinstance(seen, BrokenPipeError) else seen


def _fill_closed() -> None:
    """Occupy closed standard descriptors, which the next files that are opened would get otherwise. /dev/null for
    reading in place of stdout: what is written fails as on a closed one."""
    for number, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_RDWR)):
        try:
            os.fstat(number)
        except OSError:
            descriptor = os.open(os.devnull, mode)  # the lowest free number
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            os.set_inheritable(number, True)


def _text(raw: _Raw, before: io.TextIOBase | None, *, line_buffering: bool) -> io.TextIOWrapper:
    encoding = getattr(before, "encoding", None) or "utf-8"
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, "replace", line_buffering=line_buffering)
