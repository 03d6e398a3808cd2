"""Runs a command in a guest, through one of its ports.

Files: QEMU's socket for a port takes one client at a time, so a lock beside it tells which ports are free.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import select
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from seatrial.errors import BusyError
from seatrial.places.guest import frames
from seatrial.places.guest.qemu import GuestError

PORTS = 4
"""Commands that can run at the same time."""
_PIECE_B = 1 << 16
_MOST_UNTAKEN_B = 1 << 18
"""Input that the guest has been sent and the command has not read."""
_SIGNALLED = 128
_NOT_FOUND, _NOT_RUNNABLE = 127, 126
_LOOK_AGAIN_S = 0.2


@dataclass(frozen=True, slots=True)
class Streams:
    """Descriptors of the command's standard streams on this side. `input` None: empty. `signals` is a descriptor from
    which numbers of signals for the command are read, a byte each; None: there are none."""

    input: int | None
    output: int
    errors: int
    signals: int | None = None


def port_path(folder: Path, number: int) -> Path:
    """The socket through which commands reach the guest."""
    return folder / f"port{number}"


@contextmanager
def free_port(folder: Path) -> Iterator[Path]:
    """Hold a port that no other command uses. Raises BusyError."""
    for number in range(PORTS):
        path = port_path(folder, number)
        lock = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield path
            return
        finally:
            os.close(lock)
    raise BusyError(f"{PORTS} commands run in the guest, and it takes no more", "wait until one of them has ended")


@contextmanager
def connected(port: Path) -> Iterator[socket.socket]:
    """A connection to a port. Raises GuestError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(str(port))
        except OSError as error:
            raise _gone(error.strerror or str(error)) from error
        yield connection


def talk(
    connection: socket.socket,
    words: Sequence[str],
    streams: Streams,
    variables: Mapping[str, str],
    folder: str,
    *,
    answer_within_s: float,
    is_alive: Callable[[], bool] = lambda: True,
) -> int:
    """Run a command over a stream to the guest's agent, which may be used for further commands afterwards; its exit
    status as in a shell (128 + number for a signal, 127 and 126 if it cannot be started).

    Raises GuestError if the guest does not answer within `answer_within_s` seconds, ends, or sends what it should not.
    """
    connection.setblocking(False)
    session = secrets.token_bytes(16)
    one = _Talk(connection, streams, frames.FrameReader(session))
    one.begin(session, frames.command_frames(folder, words, variables))
    return one.to_end(answer_within_s, is_alive, words[0])


def _gone(why: str) -> GuestError:
    return GuestError(f"the guest has ended: {why}", "seatrial vm down, then up; its console is shown by vm status")


class _Talk:
    def __init__(self, connection: socket.socket, streams: Streams, reader: frames.FrameReader) -> None:
        self._connection = connection
        self._streams = streams
        self._reader = reader
        self._waiting = bytearray()
        self._untaken_B = 0
        self._input = streams.input
        self._status: int | None = None

    def begin(self, session: bytes, command: bytes) -> None:
        self._waiting += frames.beginning(session) + command
        if self._input is None:
            self._waiting += frames.frame(frames.INPUT_ENDED)

    def to_end(self, answer_within_s: float, is_alive: Callable[[], bool], name: str) -> int:
        until = time.monotonic() + answer_within_s
        """The exit status. If nobody reads the output, the command is left here, and the guest ends it."""
        while self._status is None:
            if not self._reader.has_begun:
                if not is_alive():
                    raise _gone("its process has ended")
                if time.monotonic() > until:
                    raise GuestError(f"the guest did not answer within {answer_within_s:g} s", "seatrial vm status")
            self._step(name)
        return self._status

    def _step(self, name: str) -> None:
        takes_input = (
            self._input is not None and self._reader.has_begun and self._untaken_B + _PIECE_B <= _MOST_UNTAKEN_B
        )
        sources = [self._connection.fileno()]
        sources += [self._input] if takes_input and self._input is not None else []
        sources += [self._streams.signals] if self._streams.signals is not None else []
        targets = [self._connection.fileno()] if self._waiting else []
        ready, writable, _ = select.select(sources, targets, [], _LOOK_AGAIN_S)
        if self._streams.signals in ready and self._streams.signals is not None:
            for number in os.read(self._streams.signals, 64):
                self._waiting += frames.frame(frames.SIGNAL, bytes([number]))
        if takes_input and self._input in ready:
            self._read_input()
        if writable:
            try:
                del self._waiting[: self._connection.send(self._waiting[:_PIECE_B])]
            except BlockingIOError:
                pass
            except OSError as error:
                raise _gone(error.strerror or str(error)) from error
        if self._connection.fileno() in ready:
            self._read_guest(name)

    def _read_input(self) -> None:
        assert self._input is not None  # noqa: S101 - asked before
        try:
            data = os.read(self._input, frames.LONGEST_PAYLOAD_B)
        except OSError:  # a terminal that went away
            data = b""
        if data:
            self._untaken_B += len(data)
            self._waiting += frames.frame(frames.INPUT, data)
        else:
            self._input = None
            self._waiting += frames.frame(frames.INPUT_ENDED)

    def _read_guest(self, name: str) -> None:
        try:
            data = self._connection.recv(_PIECE_B)
        except BlockingIOError:
            return
        except OSError as error:
            raise _gone(error.strerror or str(error)) from error
        if not data:
            raise _gone("its channel is closed")
        try:
            for kind, payload in self._reader.add(data):
                self._handle(kind, payload, name)
        except ValueError as error:
            raise GuestError(f"the guest sent what is not of its agent: {error}", "seatrial vm down, then up") from None

    def _handle(self, kind: bytes, payload: bytes, name: str) -> None:
        if kind in (frames.OUTPUT, frames.ERRORS):
            if not _write(self._streams.output if kind == frames.OUTPUT else self._streams.errors, payload):
                self._status = _SIGNALLED + signal.SIGPIPE
        elif kind == frames.TAKEN:
            self._untaken_B = max(0, self._untaken_B - frames.number(payload))
        elif kind == frames.ENDED:
            how, number = payload[:1], frames.number(payload[1:])
            if how == b"n":
                why = f"seatrial vm exec: {name}: {os.strerror(number)} in the guest\n"
                _write(self._streams.errors, why.encode("utf-8", "surrogateescape"))
                self._status = _NOT_FOUND if number == 2 else _NOT_RUNNABLE  # errno ENOENT
            else:
                self._status = (_SIGNALLED + number if how == b"s" else number) & 0xFF
        else:
            raise ValueError(f"a frame of kind {kind!r}")


def _write(target: int, data: bytes) -> bool:
    """Write all; False if nobody reads it."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(target, view) :]
    except BrokenPipeError:
        return False
    return True
