"""Settings of this machine while an experiment runs: changed by a guard (guard.py), and always put back."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from seatrial.environments.settings.files import Undone, undo
from seatrial.environments.settings.journal import Left, left_here, new_file
from seatrial.environments.settings.knobs import WRITTEN, writes_of
from seatrial.model.benchmark.parameter import Value
from seatrial.processes.messages import pack, receive
from seatrial.processes.start import start_detached

_LIVE = Path("/")
_ANSWER_LIMIT_S = 60.0
_LOCK_LIMIT_S, _PAUSE_S = 2.0, 0.01


class Settings:
    """The guard of this process."""

    def __init__(self, channel: socket.socket, root: Path) -> None:
        self._channel, self._root = channel, root

    def change(self, wanted: Mapping[str, Value]) -> dict[str, str]:
        """Give settings (names of `MACHINE_SETTINGS`) their values; path -> why it did not act. Raises
        NotAllowedError before anything is changed, and OSError if the guard was killed: the next start then puts
        everything back."""
        writes = writes_of(wanted, self._root)
        return self._ask(writes) if writes else {}

    def restore(self) -> dict[str, str]:
        """Put everything back; path -> why not. Raises OSError."""
        return self._ask([])

    def _ask(self, writes: Sequence[tuple[str, str]]) -> dict[str, str]:
        try:
            self._channel.sendall(pack(list(writes)))
            answer = receive(self._channel)
            if answer is None:
                raise OSError(0, "the process that changes settings was killed")
        except BaseException:
            self._channel.close()  # part of an answer may be left in it; the guard now puts everything back
            raise
        return dict(answer)


@contextmanager
def guarded(root: Path = _LIVE) -> Iterator[Settings]:
    """Change settings within the block. Raises OSError if the guard cannot be started. If it is killed meanwhile, this
    process puts everything back."""
    root = root.absolute()  # the guard runs in another folder
    replay(root)
    file = new_file()
    ours, its = socket.socketpair()
    with ours:
        with its:
            words = [sys.executable, "-m", "seatrial.environments.settings.guard", str(its.fileno()), str(root)]
            start_detached([*words, str(file)], os.environ, Path(os.devnull), keep=(its.fileno(),))
        ours.settimeout(_ANSWER_LIMIT_S)
        if receive(ours) is None:
            raise OSError(0, "the process that changes settings did not start")
        settings = Settings(ours, root)
        try:
            yield settings
        except OSError:
            _put_back(file, root)
            raise
        try:
            settings.restore()
        except OSError:
            if not _put_back(file, root):
                raise


def _put_back(file: Path, root: Path) -> bool:
    """Put back what a guard that was killed has left in its journal, or wait until one that lives has done so; whether
    all is as it was."""
    until = time.monotonic() + _LOCK_LIMIT_S
    while file.exists() and time.monotonic() < until:  # a killed process holds its lock until it has ended
        replay(root)
        time.sleep(_PAUSE_S)
    return not file.exists()


def changed_here() -> list[Left]:
    """What is changed on this host now, by journal."""
    return [left for left in left_here() if left.entries]


def replay(root: Path = _LIVE) -> list[tuple[Left, Undone]]:
    """Put back what killed guards of this host have left, where their values still stand."""
    found = []
    for left in left_here():
        if left.is_guarded:
            continue
        undone = undo([entry for entry in left.entries if WRITTEN.fullmatch(entry.path)], root)
        if not undone.kept:
            left.file.unlink(missing_ok=True)
        found.append((left, undone))
    return found
