"""Two measuring processes on one host: the second waits, even with another folder, and a dead one does not block."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from seatrial.engine.host_lock import exclusive_on_this_host
from seatrial.model.record import decode

pytestmark = [pytest.mark.real, pytest.mark.lab]

_HOLDS = """
import sys, time
from seatrial.engine.host_lock import exclusive_on_this_host
with exclusive_on_this_host(lambda pid: None):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_second_process_waits_for_the_first_and_reports_it_and_a_killed_one_frees_the_lock() -> None:
    holder = subprocess.Popen([sys.executable, "-c", _HOLDS], stdout=subprocess.PIPE)
    told: list[int | None] = []

    def ended(pid: int | None) -> None:
        told.append(pid)
        holder.kill()

    try:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        with exclusive_on_this_host(ended):
            assert told == [holder.pid]
    finally:
        holder.kill()
        holder.communicate()


def test_two_runs_in_one_folder_make_each_repeat_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "seatrial", "run", "cpu.peak", "--set", "cores=one", "--budget", "2s"]
    both = [
        subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ))
        for _ in range(2)
    ]
    said = [process.communicate(timeout=120)[1].decode() for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    records = [
        decode(line)
        for path in (tmp_path / "seatrial-results/records").iterdir()
        for line in path.read_bytes().splitlines()
    ]
    numbers = [record.repeat for record in records]
    assert sorted(numbers) == list(range(len(numbers)))
    intervals = sorted((record.t0, record.t0 + record.wall_s) for record in records)
    assert all(before[1] <= after[0] + 0.05 for before, after in pairwise(intervals))
