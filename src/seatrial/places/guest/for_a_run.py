"""A guest for the duration of a run: its processes end with this one, whatever ends that, and a later run removes the
files that a killed one left."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from seatrial.errors import StoreError
from seatrial.model.guest_topology import GuestTopology
from seatrial.places.guest.home import guest_home_path
from seatrial.places.guest.state import GuestState
from seatrial.places.guest.up import Parts, bring_guest_up, take_guest_down
from seatrial.processes.start import Running

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
