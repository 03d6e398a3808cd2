"""Runs a command in the guest with our standard streams and signals, with files brought in before and out after it."""

from __future__ import annotations

import os
import signal
import stat
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import FrameType
from typing import IO

from seatrial.errors import UsageError
from seatrial.launch.guest.home import GuestHome, check_guest_home
from seatrial.launch.guest.initramfs import BUSYBOX
from seatrial.launch.guest.qemu import GuestError
from seatrial.launch.guest.session import Streams, free_port, run_in_guest
from seatrial.launch.guest.state import GuestState, read_guest_state

WORK = "/root"
"""The working folder of commands, and that of files without a place."""
_FORWARDED = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_ANSWER_WITHIN_S = 60.0
_MOST_OUT_B = 1 << 33
_TAR = f"/{BUSYBOX}"


@dataclass(frozen=True, slots=True)
class Transfer:
    """A file or folder, and its place on the other side."""

    source: str
    target: str


def running_guest(path: Path) -> GuestState:
    """The state of the guest in the folder `path`. Raises UsageError if none is up, GuestError if it has ended."""
    home = check_guest_home(path)
    state = None if home is None else read_guest_state(path)
    if home is None or state is None:
        begun = ": starting it did not finish" if home is not None else ""
        todo = "seatrial vm down, then up" if home is not None else "seatrial vm up --topology FILE"
        raise UsageError(f"no guest is up{begun}", todo)
    if not _is_alive(home, state):
        raise GuestError("the guest has ended", "seatrial vm down, then up")
    return state


def run_command(
    path: Path,
    command: Sequence[str],
    bring: Sequence[Transfer] = (),
    fetch: Sequence[Transfer] = (),
    variables: Mapping[str, str] | None = None,
) -> int:
    """Run a command in the guest, and return its exit status as in a shell.

    `bring` are files and folders of this machine that are copied there first, `fetch` those of the guest that are
    copied here afterwards, whatever the exit status. Raises UsageError for a file that is not there, GuestError.
    """
    running_guest(path)
    packed = [_pack(one) for one in bring]
    with free_port(path) as port:
        for one, archive in zip(bring, packed, strict=True):
            with archive:
                _unpack_in_guest(port, one, archive)
        with _streams() as streams:
            status = run_in_guest(
                port, command, streams, variables=variables, folder=WORK, answer_within_s=_ANSWER_WITHIN_S
            )
        for one in fetch:
            _fetch(port, one)
    return status


def output_in_guest(path: Path, command: Sequence[str], bring: Sequence[Transfer], text: bytes) -> tuple[int, bytes]:
    """Exit status and output of a short command, with `text` as its standard input. Raises as `run_command`."""
    running_guest(path)
    with free_port(path) as port, tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as printed:
        for one in bring:
            with _pack(one) as archive:
                _unpack_in_guest(port, one, archive)
        given.write(text)
        given.seek(0)
        streams = Streams(given.fileno(), printed.fileno(), 2)
        status = run_in_guest(port, command, streams, folder=WORK, answer_within_s=_ANSWER_WITHIN_S)
        printed.seek(0)
        return status, printed.read()


def _is_alive(home: GuestHome, state: GuestState) -> bool:
    return state.pid in home.members()


def _pack(one: Transfer) -> IO[bytes]:
    """A tar archive with the file or folder under the name that it gets. Raises UsageError."""
    archive = tempfile.TemporaryFile()  # noqa: SIM115 - closed by whoever asked for it
    try:
        with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as tar:
            tar.add(one.source, one.target.lstrip("/"), filter=_ours)
    except OSError as error:
        archive.close()
        raise UsageError(f"{one.source} cannot be brought into the guest: {error.strerror or error}") from error
    archive.seek(0)
    return archive


def _ours(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member


def _unpack_in_guest(port: Path, one: Transfer, archive: IO[bytes]) -> None:
    with tempfile.TemporaryFile() as said:
        streams = Streams(archive.fileno(), said.fileno(), said.fileno())
        status = run_in_guest(
            port, [_TAR, "tar", "-x", "-f", "-", "-C", "/"], streams, folder="/", answer_within_s=_ANSWER_WITHIN_S
        )
        if status:
            raise GuestError(f"{one.source} cannot be brought into the guest: {_said(said)}")


def _fetch(port: Path, one: Transfer) -> None:
    with tempfile.TemporaryFile() as archive, tempfile.TemporaryFile() as said:
        name = PurePosixPath(one.source)
        streams = Streams(None, archive.fileno(), said.fileno())
        status = run_in_guest(
            port,
            [_TAR, "tar", "-c", "-f", "-", "-C", str(name.parent), "--", name.name],
            streams,
            folder=WORK,
            answer_within_s=_ANSWER_WITHIN_S,
        )
        if status:
            raise GuestError(f"{one.source} of the guest cannot be fetched: {_said(said)}")
        archive.seek(0)
        unpack_fetched(archive, name.name, Path(one.target))


def unpack_fetched(archive: IO[bytes], name: str, target: Path) -> None:
    """Write the files and folders of an archive from a guest to `target`, which must not be there.

    The guest is not trusted: links, devices and names outside are refused. Raises UsageError, GuestError.
    """
    if target.exists() or target.is_symlink():
        raise UsageError(f"{target} is already there", "name another place for what is fetched, or remove it")
    try:
        with tarfile.open(fileobj=archive, mode="r:") as tar:
            for member in tar:
                path = PurePosixPath(member.name)
                if path.is_absolute() or ".." in path.parts or path.parts[:1] != (name,):
                    raise GuestError(f"the guest sent a file {member.name[:200]!r}, which was not asked for")
                place = target.joinpath(*path.parts[1:])
                if member.isdir():
                    place.mkdir()
                elif member.isreg() and member.size <= _MOST_OUT_B:
                    _write_file(tar, member, place)
                else:
                    raise GuestError(f"{member.name[:200]!r} of the guest is neither a file nor a folder")
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise GuestError(f"what the guest sent is damaged: {error}", "try again") from error
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror}") from error


def _write_file(tar: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    source = tar.extractfile(member)
    assert source is not None  # noqa: S101 - it is a regular file
    with place.open("xb") as file:
        while piece := source.read(1 << 20):
            file.write(piece)
    place.chmod(0o755 if member.mode & stat.S_IXUSR else 0o644)


def _said(file: IO[bytes]) -> str:
    file.seek(0)
    return " ".join(file.read(2000).decode("utf-8", "replace").split()) or "no reason given"


@contextmanager
def _streams() -> Iterator[Streams]:
    """Our standard streams; signals go to the command while this lasts, except those that this process ignores."""
    nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    taken = [number for number in _FORWARDED if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, _passed_on) for number in taken}
    wakeup = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        own = [number if _is_open(number) else nowhere for number in (0, 1, 2)]
        yield Streams(own[0], own[1], own[2], reading)
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        for descriptor in (nowhere, reading, writing):
            os.close(descriptor)


def _passed_on(number: int, frame: FrameType | None) -> None:
    """The number of the signal is written to the pipe (signal.set_wakeup_fd), which is all."""


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
