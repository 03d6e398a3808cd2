"""Is the machine quiet enough: what a look says, who is named, and the wait until it is quiet."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

import pytest

from seatrial.cli.progress import TerminalProgress
from seatrial.engine import host_lock
from seatrial.engine.host_lock import HostLock
from seatrial.engine.pool import Clock
from seatrial.probes import quiet
from seatrial.probes.quiet import BusyProcess, ProcessTimes, Quiet, look, seen_in, wait_until_quiet
from seatrial.probes.system import Snapshot

TICKS = os.sysconf("SC_CLK_TCK")
BUSY = Quiet(2, 3.1, 1.5, 0.0, (BusyProcess("spin", "a", 9, 1.0),))
CALM = Quiet(2, 0.3, 0.02, 0.0)


def times(seconds: float, parent: int = 1, began: int = 7, name: str = "x") -> ProcessTimes:
    return ProcessTimes(name, parent, round(seconds * TICKS), began)


def test_others_are_named_and_ours_are_not() -> None:
    """In one second of two CPUs, 1.5 are busy: a spinner, and a child of ours with half a CPU."""
    own = os.getpid()
    before = Snapshot(0.0, 3.0, 0, 0, 0.0)
    after = Snapshot(1.0, 3.1, round(1.5 * TICKS), round(0.1 * TICKS), 0.0)
    first = {9: times(40, name="spin"), 8: times(5, parent=own), own: times(1), 7: times(100)}
    last = {9: times(41, name="spin"), 8: times(5.5, parent=own), own: times(1), 7: times(0.0, began=8)}
    seen = seen_in(before, after, first, last, 2)
    assert seen.others == pytest.approx(1.0) and seen.steal == pytest.approx(0.1) and not seen.is_quiet
    (named,) = seen.busiest
    assert (named.name, named.pid) == ("spin", 9) and named.cpus == pytest.approx(1.0)
    text = str(seen)
    assert "1 of 2 CPUs (spin (user " in text and "pid 9)" in text and "(steal)" in text and "load average 3.1" in text
    ended = Snapshot(1.0, None, round(0.6 * TICKS), 0, 5.6)  # the child had used 5 s before, and was waited for
    assert seen_in(before, ended, first, {own: times(1)}, 2).is_quiet
    assert Quiet(2).is_quiet, "what is unknown is not said to be busy"


def test_a_look_at_this_machine_is_whole() -> None:
    seen = look(0.02)
    assert seen.cpus >= 1 and seen.others is not None and 0 <= seen.others <= seen.cpus
    assert os.getpid() not in {one.pid for one in seen.busiest}


def test_the_wait_ends_when_it_is_quiet_twice(caplog: pytest.LogCaptureFixture) -> None:
    looks: Iterator[Quiet] = iter([BUSY, CALM, BUSY, CALM, CALM])
    with caplog.at_level(logging.WARNING):
        assert wait_until_quiet(600.0, lambda: next(looks), pause_s=0.0)
    assert next(looks, None) is None
    first, last = caplog.messages
    assert first.startswith("waiting up to 10 min for a quiet machine: ") and "spin (user a, pid 9)" in first
    assert last.startswith("quiet after ")


def test_when_the_wait_expires_it_is_measured_and_said(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_lock, "wait_until_quiet", lambda limit_s: wait_until_quiet(limit_s, lambda: BUSY, 0.0))
    clock = Clock()
    with caplog.at_level(logging.WARNING), clock.waiting(), HostLock(quiet_s=0.0).held(lambda _: None):
        measured = True
    assert measured and "not quiet after 0 s (--wait-quiet), measured anyway" in caplog.text


def test_a_run_says_it_at_once_and_quietly_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    for progress in (TerminalProgress(), TerminalProgress(quiet=True)):
        for seen in (BUSY, CALM):
            progress.looked(seen)
    TerminalProgress(waits_quiet=True).looked(BUSY)
    busy, calm, advised = capsys.readouterr().err.splitlines()
    assert "--wait-quiet" not in advised and advised in busy
    assert busy.startswith("this machine is not quiet") and "--wait-quiet TIME" in busy and "pid 9" in busy
    assert calm == "other processes use 0.02 of 2 CPUs, load average 0.3"
    assert quiet.look is look
