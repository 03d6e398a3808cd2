"""Why two programs without MPI differ: each cause from made-up repeats, with its controls."""

from __future__ import annotations

from typing import Any

import pytest
from analysis.test_breakdown import NOISE, of
from diagnosis.test_disturbance import locks, looks, program, repeat, waits_for, waits_on

from seatrial.model.study.comparison import Breakdown
from seatrial.model.study.result import Compared
from seatrial.report.documents.compare import compare_document
from seatrial.report.studies.change_words import breakdown_sentence, change_lines

FAST = program(cpu_s=1.0, wall_s=1.0)


def runs(one: dict[str, Any], n: int = 8) -> list[dict[str, Any]]:
    """Repeats of a program with a little noise in its wall time."""
    made = []
    for number in range(n):
        wall_s = one["looks"]["program_s"] + NOISE[number % len(NOISE)]
        made.append({**one, "program_s": wall_s, "looks": {**one["looks"], "program_s": wall_s}})
    return made


def compared(baseline: dict[str, Any], candidate: dict[str, Any]) -> Breakdown:
    found = of(runs(baseline), runs(candidate))
    assert found is not None and found.per == "run"
    return found


SLOWER = {
    "more is computed": (program(cpu_s=2.0, wall_s=2.0), [("user-code", 1.0)], "(1.00 s -> 2.00 s of a run)"),
    "small writes": (
        program(cpu_s=1.8, wall_s=1.8, system_s=0.8, calls=1_000_000, moved_B=16e6),
        [("small-calls", 1.0)],
        "44 % of the time (0 s -> 800 ms of a run) (100 % of the difference). Seen with b: 44 % of the CPU time was",
    ),
    "locks": (
        # Two threads: each works for a second, and waits for the other one for half of that.
        program(cpu_s=2.0, wall_s=1.5, locks=locks(1.0, 10, turns=500)),
        [("lock-contention", 1.0)],
        "0.0 % -> 33 % of the time",
    ),
    "sleep": (
        program(cpu_s=1.0, wall_s=2.0, sleep_s=1.0, sleep_looks=10),
        [("sleep", 1.0)],
        "0.0 % -> 50 % of the time",
    ),
    "fsync": (
        program(cpu_s=1.0, wall_s=1.5, waits=looks(0.5, "sync")["waits"]),
        [("synchronised-io", 1.0)],
        "in fsync and similar calls",
    ),
    "a child": (
        program(cpu_s=2.0, wall_s=2.0, processes=waits_for("make", 1.0, 1.0)),
        [("child-process", 1.0)],
        "solver waited",
    ),
    "the data of a slower producer": (
        program(cpu_s=2.0, wall_s=2.0, processes=waits_on("pipe", 1.0, 1.0)),
        [("waits-for-data", 1.0)],
        "Waiting for data of another process: 0.0 % -> 50 % of the time",
    ),
    "a lock on a file": (
        program(cpu_s=2.0, wall_s=2.0, processes=waits_on("file lock", 1.0, 1.0)),
        [("file-lock", 1.0)],
        "Waiting for a lock on a file: 0.0 % -> 50 % of the time",
    ),
    "nothing that was counted": (program(cpu_s=1.0, wall_s=2.0), [("not-known", 1.0)], "The rest is unknown."),
    "calls that are not counted": (
        # Both make as many small writes: these do not explain the time in the kernel.
        program(cpu_s=1.8, wall_s=1.8, system_s=0.8, calls=10),
        [("kernel-time", 1.0)],
        "CPU time in the kernel: 0.0 % -> 44 % of the time",
    ),
}


@pytest.mark.parametrize("case", SLOWER)
def test_a_difference_names_what_the_looks_and_counters_of_both_sides_show(case: str) -> None:
    slow, named, words = SLOWER[case]
    base = program(cpu_s=2.0, wall_s=1.0) if case == "locks" else FAST
    found = compared(base, slow)
    assert [(one.change.value, round(one.share, 1)) for one in found.diagnoses] == named
    assert words in " ".join(change_lines(found))
    assert all(one.p_value is None or one.p_value < 0.05 for one in found.diagnoses)
    turned = of(runs(slow), runs(base))  # the slower side is the baseline
    assert turned is not None and [one.change.value for one in turned.diagnoses] == [name for name, _ in named]


def test_what_both_sides_do_alike_is_no_cause() -> None:
    """Both take page faults; one computes longer besides."""
    faults = {"system_s": 0.5, "faults": 200_000}
    found = compared(program(cpu_s=1.0, **faults), program(cpu_s=2.0, wall_s=2.0, **faults))
    assert [one.change.value for one in found.diagnoses] == ["user-code"]


def test_waiting_for_a_cpu_that_follows_from_computing_longer_is_part_of_it() -> None:
    """Beside a neighbour, half of the time is waiting: twice as much computing takes twice as long."""

    def beside(cpu_s: float) -> dict[str, Any]:
        return program(cpu_s=cpu_s, wall_s=2 * cpu_s, threads=1, delay_s=cpu_s)

    for one in (base := beside(1.0)), (slow := beside(2.0)):
        one["looks"]["cpu_s"] = one["looks"]["program_cpu_s"]
    found = compared(base, slow)
    assert [(one.change.value, round(one.share, 1)) for one in found.diagnoses] == [("user-code", 1.0)]


def test_sides_that_do_not_differ_and_programs_without_looks_have_no_section() -> None:
    assert of(runs(FAST), runs(FAST)) is None
    assert of([repeat() for _ in range(8)], [repeat(wall_s=2.0, cpu_s=2.0) for _ in range(8)]) is None
    assert of(runs(FAST, 3), runs(program(cpu_s=2.0, wall_s=2.0), 3)) is None


def test_sides_measured_apart_name_it_and_say_so() -> None:
    slow = runs(program(cpu_s=1.0, wall_s=2.0, sleep_s=1.0, sleep_looks=10))
    sides = [[{**one, "block": ""} for one in side] for side in (runs(FAST), slow)]
    found = of(*sides)
    assert found is not None and [one.change.value for one in found.diagnoses] == ["sleep"]
    assert breakdown_sentence(found) == "The sides were measured apart, so the machine may have changed in between"
    assert found.diagnoses[0].p_value is None


def test_terminal_and_document_name_it() -> None:
    found = compared(FAST, program(cpu_s=1.0, wall_s=2.0, sleep_s=1.0, sleep_looks=10))
    (where,) = compare_document([Compared("a", "b", (), (), breakdowns=(found,))])["where"]
    assert where["per"] == "run" and where["said"].startswith("Of 1.00 s more per run, 1.00 s (100 %) in sleep")
    assert where["diagnoses"][0]["cause"] == "sleep" and where["diagnoses"][0]["on"] == "candidate"
