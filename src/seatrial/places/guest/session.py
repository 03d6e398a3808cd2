"""Runs commands in a guest: through a port of one that was started here, or by ssh.

Both ends are the same: the agent of the guest (native/launch/guest_agent.cpp) and `talk`, which exchange frames
(native/launch/guest_frames.hpp). Files: QEMU's socket for a port takes one client at a time, so a lock beside it tells
which ports are free.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from seatrial.errors import BusyError
from seatrial.places.guest.qemu import GuestError
from seatrial.processes.file_lock import lock
from seatrial.processes.working_folder import without_working_folder

LONGEST_PAYLOAD_B = 16384
_END = 0xA5
_HEADER = struct.Struct("<cI")
_NUMBER = struct.Struct("<I")

BEGIN, DESCRIBE, START, INPUT, INPUT_ENDED, SIGNAL = b"S", b"E", b"X", b"I", b"Z", b"K"
BEGUN, OUTPUT, ERRORS, TAKEN, ENDED = b"B", b"O", b"R", b"C", b"Q"


def frame(kind: bytes, payload: bytes = b"") -> bytes:
    """A frame."""
    return _HEADER.pack(kind, len(payload)) + payload + bytes([_END])


def beginning(name: bytes) -> bytes:
    """What begins a session: zeros, which complete what a killed client left unfinished, and the session's name."""
    return b"\0" * (LONGEST_PAYLOAD_B + _HEADER.size + 1) + frame(BEGIN, name)


def command_frames(folder: str, words: Sequence[str], variables: Mapping[str, str]) -> bytes:
    """What starts a command."""
    texts = [folder, str(len(words)), *words, *(f"{name}={value}" for name, value in variables.items())]
    data = b"".join(text.encode("utf-8", "surrogateescape") + b"\0" for text in texts)
    parts = [data[at : at + LONGEST_PAYLOAD_B] for at in range(0, len(data), LONGEST_PAYLOAD_B)]
    return b"".join(frame(DESCRIBE, part) for part in parts) + frame(START)


def number_in(payload: bytes) -> int:
    """The number in a payload. Raises ValueError."""
    if len(payload) != _NUMBER.size:
        raise ValueError(f"a number of {len(payload)} bytes")
    return int(_NUMBER.unpack(payload)[0])


class FrameReader:
    """Takes the frames of one session out of a stream of bytes.

    What a guest sends is not trusted: a damaged frame raises ValueError. What comes before the frame that begins the
    session is of an earlier one.
    """

    def __init__(self, session: bytes) -> None:
        self._wanted = frame(BEGUN, session)
        self._buffer = bytearray()
        self._has_begun = False

    @property
    def has_begun(self) -> bool:
        """Whether the guest has answered."""
        return self._has_begun

    def add(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Kind and payload of each frame that is now complete."""
        self._buffer += data
        if not self._has_begun:
            at = self._buffer.find(self._wanted)
            if at < 0:
                del self._buffer[: max(0, len(self._buffer) - len(self._wanted))]
                return
            del self._buffer[: at + len(self._wanted)]
            self._has_begun = True
        while len(self._buffer) >= _HEADER.size:
            kind, length = _HEADER.unpack_from(self._buffer)
            if length > LONGEST_PAYLOAD_B:
                raise ValueError(f"a frame of {length} bytes")
            end = _HEADER.size + length
            if len(self._buffer) <= end:
                return
            if self._buffer[end] != _END:
                raise ValueError("a frame without its end")
            payload = bytes(self._buffer[_HEADER.size : end])
            del self._buffer[: end + 1]
            yield kind, payload


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
        descriptor = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if lock(descriptor):
                yield path
                return
        finally:
            os.close(descriptor)
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
    one = _Talk(connection, streams, FrameReader(session))
    one.begin(session, command_frames(folder, words, variables))
    return one.to_end(answer_within_s, is_alive, words[0])


def _gone(why: str) -> GuestError:
    return GuestError(f"the guest has ended: {why}", "seatrial vm down, then up; its console is shown by vm status")


class _Talk:
    def __init__(self, connection: socket.socket, streams: Streams, reader: FrameReader) -> None:
        self._connection = connection
        self._streams = streams
        self._reader = reader
        self._waiting = bytearray()
        self._untaken_B = 0
        self._input = streams.input
        self._status: int | None = None

    def begin(self, session: bytes, command: bytes) -> None:
        self._waiting += beginning(session) + command
        if self._input is None:
            self._waiting += frame(INPUT_ENDED)

    def to_end(self, answer_within_s: float, is_alive: Callable[[], bool], name: str) -> int:
        """The exit status. If nobody reads the output, the command is left here, and the guest ends it."""
        until = time.monotonic() + answer_within_s
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
                self._waiting += frame(SIGNAL, bytes([number]))
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
            data = os.read(self._input, LONGEST_PAYLOAD_B)
        except OSError:  # a terminal that went away
            data = b""
        if data:
            self._untaken_B += len(data)
            self._waiting += frame(INPUT, data)
        else:
            self._input = None
            self._waiting += frame(INPUT_ENDED)

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
        if kind in (OUTPUT, ERRORS):
            if not _write(self._streams.output if kind == OUTPUT else self._streams.errors, payload):
                self._status = _SIGNALLED + signal.SIGPIPE
        elif kind == TAKEN:
            self._untaken_B = max(0, self._untaken_B - number_in(payload))
        elif kind == ENDED:
            how, number = payload[:1], number_in(payload[1:])
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


PORT, SSH = "port", "ssh"
AGENT = "agent"
"""The name of the agent in the folder of a guest that is reached by ssh."""
_OPTIONS = ("-T", "-a", "-x", "-o", "BatchMode=yes", "-o", "ConnectTimeout=20", "-o", "ClearAllForwardings=yes")
_ANSWER_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True)
class Channel:
    """`kind` is PORT with the guest's folder here in `place`, or SSH with a host. `there` is a folder of the guest for
    our files, `control` the socket of an ssh that is connected already ("": none)."""

    kind: str
    place: str
    there: str
    control: str = ""

    def words(self) -> tuple[str, ...]:
        """As arguments of a command."""
        return (self.kind, self.place, self.there, self.control)

    @contextmanager
    def opened(self) -> Iterator[Connection]:
        """A connection for commands, one after another. Raises GuestError, BusyError."""
        if self.kind == PORT:
            with free_port(Path(self.place)) as port:
                yield Connection(self, port)
            return
        ours, its = socket.socketpair()
        with ours:
            with its:
                # It ends with our end of its streams, whatever ends this process.
                process = subprocess.Popen(
                    self._ssh_words(),
                    env=without_working_folder(os.environ),
                    stdin=its.fileno(),
                    stdout=its.fileno(),
                )
            try:
                yield Connection(self, ours)
            finally:
                ours.close()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_ANSWER_WITHIN_S)

    def _ssh_words(self) -> list[str]:
        control = ("-S", self.control) if self.control else ()
        agent = str(PurePosixPath(self.there) / AGENT)
        return [*ssh_words(self.place, *control), f"exec {agent} --serve"]


@dataclass(frozen=True, slots=True)
class Connection:
    """An open channel: a port, which each command connects to anew, or the stream of an ssh."""

    channel: Channel
    through: Path | socket.socket

    def run(self, words: Sequence[str], streams: Streams, variables: Mapping[str, str], folder: str) -> int:
        """Run a command; its exit status as in a shell. Raises GuestError."""
        if isinstance(self.through, socket.socket):
            return talk(self.through, words, streams, variables, folder, answer_within_s=_ANSWER_WITHIN_S)
        with connected(self.through) as stream:
            return talk(stream, words, streams, variables, folder, answer_within_s=_ANSWER_WITHIN_S)


def ssh_words(host: str, *options: str) -> list[str]:
    """Ssh to a host, without anything that it could ask; a command for a shell of the host follows."""
    return ["ssh", *_OPTIONS, *options, "--", host]
