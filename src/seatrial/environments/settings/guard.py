"""The process that changes settings, and puts them back: `python -m seatrial.environments.settings.guard FD ROOT FILE`.

It runs in its own session, so that what ends the session of seatrial does not end it. Its channel FD to seatrial takes
changes; when the channel closes, because seatrial is done or dead, all is put back. A guard that is killed leaves its
journal FILE, which the next start replays.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from seatrial.environments.settings.files import read_setting, undo, write_setting
from seatrial.environments.settings.journal import Entry, Journal
from seatrial.processes.messages import pack, receive

LATENCY = "/dev/cpu_dma_latency"
"""Holds for as long as it is open (Documentation/power/pm_qos_interface.rst)."""


class Guard:
    """What is changed."""

    def __init__(self, root: Path, journal: Journal) -> None:
        self._root, self._journal = root, journal
        self._entries: list[Entry] = []
        self._held: int | None = None

    def change(self, writes: Sequence[tuple[str, str]]) -> dict[str, str]:
        """Write these values, in order; path -> why not, for those that did not act. None is written if one cannot be
        read, or the journal cannot be."""
        failed: dict[str, str] = {}
        entries = []
        for path, value in writes:
            try:
                old = None if path == LATENCY else read_setting(path, self._root)
                entries.append(Entry(path, old or "", value))
            except OSError as error:
                failed[path] = error.strerror or str(error)
        if failed:
            return failed
        files = [entry for entry in entries if entry.path != LATENCY]
        try:
            if files:
                self._journal.add(files)
        except OSError as error:
            return {self._journal.file.name: f"the journal cannot be written: {error.strerror}"}
        self._entries += files
        for entry in entries:
            try:
                if entry.path == LATENCY:
                    if (now_us := self._hold(int(entry.new))) > int(entry.new):
                        failed[entry.path] = f"is {now_us} us after {entry.new} us was written"
                elif entry.new != entry.old:
                    write_setting(entry.path, entry.new, self._root)
                    if (now := read_setting(entry.path, self._root)) not in (None, entry.new):
                        failed[entry.path] = f"is {now!r} after {entry.new!r} was written"
            except OSError as error:
                failed[entry.path] = error.strerror or str(error)
        return failed

    def restore(self) -> dict[str, str]:
        """Put everything back; path -> why not."""
        if self._held is not None:
            os.close(self._held)
            self._held = None
        kept = undo(self._entries, self._root).kept
        self._entries.clear()
        if not kept:
            with suppress(OSError):
                self._journal.clear()
        return kept

    def _hold(self, latency_us: int) -> int:
        """Hold the limit; returns the one that the kernel has now: the least that somebody holds."""
        if self._held is not None:
            os.close(self._held)
        self._held = os.open(self._root / LATENCY.lstrip("/"), os.O_RDWR | os.O_CLOEXEC)
        os.write(self._held, struct.pack("=i", latency_us))
        return int(struct.unpack("=i", os.pread(self._held, 4, 0))[0])


def main() -> None:
    """Serve one seatrial until its channel closes."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)  # it ends with its channel, when all is put back
    channel = socket.socket(fileno=int(sys.argv[1]))
    journal = Journal(Path(sys.argv[3]))
    guard = Guard(Path(sys.argv[2]), journal)
    channel.sendall(pack(os.getpid()))
    kept: dict[str, str] = {}
    while True:
        try:
            request: Any = receive(channel)
        except OSError:
            request = None
        if request is None:
            break
        answer = guard.change([tuple(one) for one in request]) if request else guard.restore()
        try:
            channel.sendall(pack(answer))
        except OSError:
            break
    kept = guard.restore()
    if not kept:
        journal.remove()


if __name__ == "__main__":
    main()
