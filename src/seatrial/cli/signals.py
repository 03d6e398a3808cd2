"""Signals that end a command: Ctrl-C, SIGTERM, SIGHUP and SIGQUIT.

The first one ends it: programs are ended, finished repeats are kept, and the exit status is 128 + its number. Further
ones do not change that; they end the programs without the rest of their time of grace. If seatrial itself does not get
on, the fourth leaves at once: the guard process then ends what still runs, and the next command takes over the repeat
that was being recorded.
"""

from __future__ import annotations

import os
import signal
import sys

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

_SIGNALLED = 128
_PATIENCE = 4


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


def _stop(number: int, frame: object) -> None:
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
