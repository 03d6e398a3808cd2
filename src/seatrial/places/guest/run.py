"""Runs a command in the guest, also one that is up for the duration of a run.

A guest for the duration of a run: its processes end with this one, whatever ends that, and a later run removes the
files that a killed one left.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType

from seatrial.errors import StoreError, UsageError
from seatrial.launch.local import FORWARDED, standard_stream
from seatrial.model.frozen import Frozen
from seatrial.model.machine.guest import GuestTopology
from seatrial.places.guest.home import GuestState, check_guest_home, guest_home_path
from seatrial.places.guest.inside import fetch as fetched
from seatrial.places.guest.inside import pack, unpack
from seatrial.places.guest.qemu import GuestError
from seatrial.places.guest.session import PORT, Channel, Streams
from seatrial.places.guest.up import Parts, bring_guest_up, take_guest_down
from seatrial.processes.start import Running

WORK = "/root"
"""The working folder of commands, and that of files without a place."""


class Transfer(Frozen):
    """A file or folder, and its place on the other side."""

    source: str
    target: str


def running_guest(path: Path) -> GuestState:
    """The state of the guest in the folder `path`. Raises UsageError if none is up, GuestError if it has ended."""
    home = check_guest_home(path)
    state = None if home is None else home.read_state()
    if home is None or state is None:
        begun = ": starting it did not finish" if home is not None else ""
        todo = "seatrial vm down, then up" if home is not None else "seatrial vm up --topology FILE"
        raise UsageError(f"no guest is up{begun}", todo)
    if state.pid not in home.members():
        raise GuestError("the guest has ended", "seatrial vm down, then up")
    return state


def run_command(
    path: Path, command: Sequence[str], bring: Sequence[Transfer] = (), fetch: Sequence[Transfer] = ()
) -> int:
    """Run a command in the guest, and return its exit status as in a shell.

    `bring` are files and folders of this machine that are copied there first, `fetch` those of the guest that are
    copied here afterwards, whatever the exit status. Raises UsageError for a file that is not there, GuestError.
    """
    running_guest(path)
    packed = [pack(Path(one.source), one.target.lstrip("/")) for one in bring]
    with Channel(PORT, str(path), WORK).opened() as guest:
        for archive in packed:
            with archive:
                unpack(guest, archive, "/")
        with _streams() as streams:
            status = guest.run(command, streams, {}, WORK)
        for one in fetch:
            fetched(guest, one.source if one.source.startswith("/") else f"{WORK}/{one.source}", Path(one.target))
    return status


@contextmanager
def _streams() -> Iterator[Streams]:
    """Our standard streams; signals go to the command while this lasts, except those that this process ignores."""
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    taken = [number for number in FORWARDED if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, _passed_on) for number in taken}
    wakeup = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        with ExitStack() as ours:
            given, printed, errors = (standard_stream(ours, number) for number in (0, 1, 2))
            yield Streams(given, printed, errors, reading)
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        for descriptor in (reading, writing):
            os.close(descriptor)


def _passed_on(number: int, frame: FrameType | None) -> None:
    """The number of the signal is written to the pipe (signal.set_wakeup_fd), which is all."""


_SUFFIX = "-run-"


@contextmanager
def guest_for_a_run(
    topology: GuestTopology, parts: Parts, progress: Callable[[str], None]
) -> Iterator[tuple[Path, GuestState]]:
    """The folder and the state of a new guest. Raises GuestError if it does not start, StoreError."""
    usual = guest_home_path(os.environ)
    _remove_leftovers(usual)
    path = usual.with_name(f"{usual.name}{_SUFFIX}{os.getpid()}-{os.urandom(2).hex()}")
    started: list[Running] = []

    def start(words: Sequence[str], environment: Mapping[str, str], log: Path, mark: int) -> int:
        with log.open("ab") as printed, Path(os.devnull).open("rb") as nothing:
            running = Running(words, environment, (nothing.fileno(), printed.fileno(), printed.fileno(), mark))
        started.append(running)
        return int(running.pid)

    try:
        yield path, bring_guest_up(path, topology, parts, progress, start)
    finally:
        for running in started:
            running.kill()
            running.wait()
        take_guest_down(path)


def _remove_leftovers(usual: Path) -> None:
    """Remove the folders of runs that were killed: their processes are over."""
    try:
        found = [path for path in usual.parent.iterdir() if path.name.startswith(f"{usual.name}{_SUFFIX}")]
    except OSError as error:
        raise StoreError(f"{usual.parent} cannot be read: {error.strerror}") from error
    for path in found:
        pid = path.name.removeprefix(f"{usual.name}{_SUFFIX}").partition("-")[0]
        if pid.isdigit() and not Path("/proc", pid).exists() and path.lstat().st_uid == os.geteuid():
            shutil.rmtree(path, ignore_errors=True)
