"""Transcripts of Ansys Fluent."""

from __future__ import annotations

import pytest
from applications.engineering_logs import figures, refusal
from applications.log_damage import check_mutants, needs_logs
from applications.log_damage import log as sample

from seatrial.applications.readers import reader_of

TWO = "fluent/performance-timer-two-blocks.txt"
TIMER = """
              Welcome to ANSYS Fluent 2021 R1
  100  1.2345e-03  4.5678e-05  0:00:10  0
  Performance Timer for 20 iterations on 128 compute nodes
  Average wall-clock time per iteration:              0.125 sec
  Total wall-clock time:                              2.501 sec
  Total CPU time:                                   319.750 sec
"""


def test_one_timer() -> None:
    assert figures("fluent", TIMER) == {("wall", "timer=1"): 2.501, ("step", "timer=1"): 2.501 / 20}
    file = reader_of("fluent").read(TIMER.encode())
    assert file.version == "2021 R1"
    assert file.experiments[0].parameters == {"timer": 1, "ranks": 128, "iterations": 20}
    assert file.experiments[0].notes == {"cpu_time_of_all_ranks_s": 319.75}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Welcome to ANSYS Fluent 2021 R1\n", "not ended"),
        (TIMER.replace("2.501", "2.601"), "20 iterations"),
        (TIMER.replace("Timer for 20", "Timer for 25"), "25 iterations"),
        (TIMER.replace("319.750", "919.750"), "CPU time"),
        (TIMER.replace("Total wall-clock time", "Total"), "cut off"),
        (TIMER.replace("Performance Timer for 20", "Performance Timer for x"), "form"),
        (TIMER.replace("4.5678e-05", "nan"), "not a number"),
        (TIMER + "Error: Divergence detected in AMG solver: pressure correction\n", "diverged"),
        (TIMER.replace("Performance Timer", "P"), "not ended"),
    ],
)
def test_transcripts_without_a_figure(text: str, why: str) -> None:
    assert why in refusal("fluent", text)


def test_newer_versions_print_no_cpu_time() -> None:
    newer = "".join(line for line in TIMER.splitlines(keepends=True) if "CPU time" not in line)
    assert figures("fluent", newer) == figures("fluent", TIMER)


@needs_logs
def test_real_transcripts() -> None:
    assert figures("fluent", sample(TWO)) == {
        ("wall", "timer=1"): 41.665,
        ("step", "timer=1"): 41.665 / 27,
        ("wall", "timer=2"): 27.664,
        ("step", "timer=2"): 27.664 / 56,
    }
    assert "crashed" in refusal("fluent", sample("fluent/node-crash-no-timer.txt"))


@needs_logs
def test_damaged_transcripts() -> None:
    data = sample(TWO).decode()
    wall = data.index("41.665")
    for digit in "0123456789":
        changed = data[:wall] + digit + data[wall + 1 :]
        assert digit == "4" or "27 iterations" in refusal("fluent", changed)
    check_mutants("fluent", (TWO, "fluent/node-crash-no-timer.txt"))
