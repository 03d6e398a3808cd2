"""One measuring process at a time on one host: two would disturb each other (docs/adr/0018)."""

from __future__ import annotations

import logging
import os
import pwd
import random
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from seatrial.engine.listener import Listener
from seatrial.engine.lock_file import FOLDER, Holder, OwnFiles, Told, holders, holders_text, lock_places
from seatrial.errors import BusyError, UsageError
from seatrial.model.frozen import Frozen
from seatrial.probes.quiet import wait_until_quiet

_AGAIN_S = (0.1, 0.4)
"""Two that try at the same moment both give way; a random time tells them apart."""
_REPORT_AGAIN_S = 60.0
_LEAST_TRIES = 4
"""With `--wait 0s`, an attempt of a process that waits too must not look like a measurement."""
_in_this_process = threading.Lock()
_random = random.SystemRandom()

_log = logging.getLogger(__name__)


class HostLock(Frozen):
    """How to take the lock. `wait_s`: how long to wait for it (None: until it is free). `past`: the users whose
    measurements are not waited for. `quiet_s`: how long to wait, once it is held, until nothing else uses the CPUs;
    when that is over, it is measured anyway."""

    wait_s: float | None = None
    past: frozenset[int] = frozenset()
    quiet_s: float | None = None

    @contextmanager
    def held(
        self, waits_for: Callable[[Sequence[Holder]], None], tell: Callable[[], Told] = Told
    ) -> Iterator[HeldLock]:
        """Wait for the lock and hold it. `waits_for` gets those who hold it when the wait begins, when they change, and
        once a minute; `tell` is what others who wait will read.

        Raises BusyError if others still hold it after `wait_s`, UsageError if $SEATRIAL_LOCK cannot be used.
        """
        wait = _Wait(self.wait_s, waits_for)
        places = lock_places()
        while not _in_this_process.acquire(blocking=False):  # a file lock does not tell threads apart
            wait.again((Holder(os.geteuid(), os.getpid(), time.time(), "another thread of this process", Path()),))
        try:
            own = self._take(places, wait, tell)
            try:
                if self.quiet_s is not None:
                    wait_until_quiet(self.quiet_s)
                yield HeldLock(places, own, self.past)
            finally:
                own.remove()
        finally:
            _in_this_process.release()

    def _take(self, places: Sequence[Path], wait: _Wait, tell: Callable[[], Told]) -> OwnFiles:
        own = OwnFiles()
        while True:
            others = holders(places, own, self.past)
            if not others:
                own = OwnFiles.make(places, tell())
                try:
                    others = holders(places, own, self.past)  # whoever came at the same time sees us too
                    if not others:
                        _report_no_file(own)
                        return own
                except BaseException:
                    own.remove()
                    raise
                own.remove()
            wait.again(others)


class HeldLock(Frozen):
    """The lock, held. `beside()` are those that measure at the same time because this process did not wait for them."""

    places: Sequence[Path]
    own: OwnFiles
    past: frozenset[int]

    def beside(self) -> tuple[Holder, ...]:
        """The passed holders of this moment."""
        return holders(self.places, self.own) if self.past else ()


class _Wait:
    """A wait with a limit and reports."""

    def __init__(self, limit_s: float | None, waits_for: Callable[[Sequence[Holder]], None]) -> None:
        self._until = None if limit_s is None else time.monotonic() + limit_s
        self._limit_s = limit_s
        self._waits_for = waits_for
        self._tries = 0
        self._reported: frozenset[tuple[int, int]] | None = None
        self._report_at = 0.0

    def again(self, others: Sequence[Holder]) -> None:
        """Wait until the next try. Raises BusyError when the time is over."""
        self._tries += 1
        left_s = float("inf") if self._until is None else self._until - time.monotonic()
        if left_s <= 0 and self._tries >= _LEAST_TRIES:
            raise busy(others, self._limit_s or 0.0)
        who = frozenset((holder.uid, holder.pid) for holder in others)
        if self._tries > 1 and (who != self._reported or time.monotonic() >= self._report_at):
            self._waits_for(others)  # not at the first try: it may be an attempt of one that waits too
            self._reported, self._report_at = who, time.monotonic() + _REPORT_AGAIN_S
        pause_s = _random.uniform(*_AGAIN_S)
        time.sleep(pause_s if left_s <= 0 else min(pause_s, left_s))


class ClaimWait:
    """The wait for repeats that other processes are making into the same folder; they are named once a minute."""

    def __init__(self, limit_s: float | None, listener: Listener) -> None:
        self._listener = listener
        self._limit_s = limit_s
        self._since = 0.0
        self._report_at = 0.0

    def over(self) -> None:
        """There is something to do again."""
        self._since = 0.0

    def again(self, hosts: Sequence[str]) -> None:
        """Wait until the next look. Raises BusyError when the time is over."""
        self._since = self._since or time.monotonic()
        if self._limit_s is not None and time.monotonic() - self._since >= self._limit_s:
            raise BusyError(
                f"the missing repeats are being made on {', '.join(hosts)}, into the same results folder",
                "wait longer (--wait TIME), or start the same command again later",
            )
        if time.monotonic() >= self._report_at:
            self._listener.waits_for_claims(hosts)
            self._report_at = time.monotonic() + _REPORT_AGAIN_S
        time.sleep(_random.uniform(*_AGAIN_S))


def busy(others: Sequence[Holder], limit_s: float) -> BusyError:
    """The error of a wait that is over."""
    waited = f"still after {limit_s:g} s" if limit_s else "now"
    users = " ".join(f"--ignore-lock-of {user}" for user in sorted({holder.user for holder in others}))
    return BusyError(
        f"another seatrial measures on this host {waited}: {holders_text(others)}",
        f"wait longer (--wait TIME), or measure beside it, disturbed ({users})",
    )


def users_named(names: Collection[str]) -> frozenset[int]:
    """The ids of users, given by name or number. Raises UsageError for a name that this host does not know."""
    found = set()
    for name in names:
        try:
            found.add(int(name) if name.isdecimal() else pwd.getpwnam(name).pw_uid)
        except KeyError:
            raise UsageError(f"--ignore-lock-of {name}: no such user", "give a name or number of a user") from None
    return frozenset(found)


def _report_no_file(own: OwnFiles) -> None:
    if not own.files:
        _log.warning(
            "no folder of this host can hold the lock: other runs on it will not notice this one; set %s to a folder "
            "that all share",
            FOLDER,
        )
