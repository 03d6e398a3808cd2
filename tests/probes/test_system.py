"""CPU time of others around a repeat: a real spinner beside a child of this process."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from seatrial.probes.system import Snapshot, seen_between, snapshot

SPIN = "import time, sys\nend = time.perf_counter() + float(sys.argv[1])\nwhile time.perf_counter() < end: pass"


def test_shares_are_of_the_time_of_these_cpus() -> None:
    tick = os.sysconf("SC_CLK_TCK")
    before = Snapshot(10.0, 0.5, 1000, 100, 3.0)
    seen = seen_between(before, Snapshot(12.0, 0.7, 1000 + 3 * tick, 100 + tick, 4.0), [0, 1])
    assert seen == {
        "load_1m": 0.5,
        "cpu_window_s": 4.0,
        "steal_s": 1.0,
        "steal_share": 0.25,
        "others_s": 2.0,
        "others_share": 0.5,
    }
    assert seen_between(before, Snapshot(12.0, 0.7, None, None, 4.0), [0]) == {"load_1m": 0.5, "cpu_window_s": 2.0}
    assert seen_between(before, before, [0]) == {"load_1m": 0.5} == seen_between(before, before, [])
    many = Snapshot(12.0, 0.7, None, None, 4.0, started=1200)
    assert seen_between(Snapshot(10.0, 0.5, None, None, 3.0, started=1000), many, [0])["started_tasks"] == 200
    own = seen_between(before, Snapshot(12.0, 0.7, 1000 + tick, 100, 9.0), [0])
    assert own["others_s"] == 0.0


def test_programs_that_another_process_waited_for_are_our_own():
    tick = os.sysconf("SC_CLK_TCK")
    before = Snapshot(10.0, 0.5, 1000, 100, 3.0, {0: 1000})
    after = Snapshot(12.0, 0.5, 1000 + 2 * tick, 100, 3.0, {0: 1000 + 2 * tick})
    assert seen_between(before, after, [0], 1.5)["others_s"] == 0.5
    assert "others_s" not in seen_between(before, after, [0], None)
    assert seen_between(before, after, [0], 1.5)["busy_s"] == {"0": 2.0}


@pytest.mark.real
def test_a_child_is_not_another_process() -> None:
    """The child's own CPU time is not that of others, whatever else runs; another process is."""
    cpu = min(os.sched_getaffinity(0))
    bound = ["taskset", "-c", str(cpu), sys.executable, "-c", SPIN]
    before = snapshot([cpu])
    subprocess.run([*bound, "0.5"], check=True)
    alone = seen_between(before, snapshot([cpu]), [cpu])
    used = os.times()
    assert 0.0 <= alone["others_s"] <= alone["cpu_window_s"] and used.children_user > 0

    other = subprocess.Popen([*bound, "1.5"])
    try:
        time.sleep(0.2)
        before = snapshot([cpu])
        subprocess.run([*bound, "1.0"], check=True)
        beside = seen_between(before, snapshot([cpu]), [cpu])
    finally:
        other.wait()
    assert beside["others_s"] >= 0.2
