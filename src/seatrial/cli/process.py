"""The process of a command: the signals that end it, and its standard streams.

Signals are Ctrl-C, SIGTERM, SIGHUP and SIGQUIT. The first one ends it: programs are ended, finished repeats are kept,
and the exit status is 128 + its number. Further ones do not change that; they end the programs without the rest of
their time of grace. If seatrial itself does not get on, the fourth leaves at once: the guard process then ends what
still runs, and the next command takes over the repeat that was being recorded.

Standard streams may be closed, full, or a pipe that nobody reads: no command fails halfway because of them. The command
runs to its end and its exit status keeps its meaning. Afterwards `output_error` says whether its output is complete. A
reader that stops early, as `head` does, wanted no more: that is not an error.
"""

from __future__ import annotations

import io
import os
import select
import signal
import sys

TYPE_CHECKING = False  # importing typing takes longer than the rest
if TYPE_CHECKING:
    from types import FrameType

    from typing_extensions import Buffer

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

_SIGNALLED = 128
_PATIENCE = 4
_RETRY_S = 0.01


class _Seen:
    first: int | None = None
    count = 0
    is_over = False


def take_signals() -> None:
    """Handle the signals from now on; those that are ignored (nohup) stay ignored."""
    _Seen.first, _Seen.count, _Seen.is_over = None, 0, False
    for number in STOPS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)


def stopped_status() -> int | None:
    """The exit status if a signal ended this command, else None."""
    return None if _Seen.first is None else _SIGNALLED + _Seen.first


def all_done() -> None:
    """The result is complete: a signal from now on changes nothing."""
    _Seen.is_over = True


def ignore_signals() -> None:
    """The process is about to end with its status. Python takes our handlers away before it exits, and a signal would
    then end it by another status."""
    for number in STOPS:
        signal.signal(number, signal.SIG_IGN)


def _stop(number: int, frame: FrameType | None) -> None:
    if _loads_native_module(frame):
        from threading import Timer

        Timer(_RETRY_S, signal.raise_signal, [number]).start()
        return
    _Seen.count += 1
    if _Seen.count >= _PATIENCE:
        os._exit(_SIGNALLED + (_Seen.first or number))
    if _Seen.first is not None:
        started = sys.modules.get("seatrial.processes.start")
        if started is not None:
            started.hurry()
    elif not _Seen.is_over:
        _Seen.first = number
        raise SystemExit(_SIGNALLED + number)


def _loads_native_module(frame: FrameType | None) -> bool:
    """Whether a compiled module is being initialized. Some (those that nanobind makes) abort on an exception then."""
    while frame is not None:
        if frame.f_code.co_qualname in ("ExtensionFileLoader.create_module", "ExtensionFileLoader.exec_module"):
            return True
        frame = frame.f_back
    return False


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


def is_unread() -> bool:
    """Whether nobody gets what is written to stdout from now on: its reader has ended, or it cannot be written."""
    return _output is not None and _output.error is not None


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


class Shown(io.TextIOWrapper):
    """A stream for people: without what acts on a terminal (`seatrial.printable`), whoever said it."""

    def write(self, text: str, /) -> int:
        """Write what is printable of the text."""
        if not text.replace("\n", "").isprintable():
            from seatrial.printable import shown

            text = shown(text, is_terminal=self.isatty())
        return super().write(text)

    def write_data(self, text: str) -> None:
        """Write for another program, unchanged; on a terminal as any text."""
        if self.isatty():
            self.write(text)
        else:
            super().write(text)


def _text(raw: _Raw, before: io.TextIOBase | None, *, line_buffering: bool) -> Shown:
    encoding = getattr(before, "encoding", None) or "utf-8"
    return Shown(io.BufferedWriter(raw), encoding, "replace", line_buffering=line_buffering)
