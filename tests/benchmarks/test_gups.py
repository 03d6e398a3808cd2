"""memory.gups: the size of its table, the program for real, and a planted fault for each of its checks."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from engine.harness import make_ready, run_one
from engine.planted_faults import Edits, with_fault
from made_up import facts, made_up_machine

from seatrial.benchmarks import benchmark_named
from seatrial.errors import Exit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import readings
from seatrial.model.results.sample import State
from seatrial.plan.points import Point, plan_points
from seatrial.store.folder import ResultsFolder

GUPS = benchmark_named("memory.gups")
SMALL = "4MiB"


def planned(machine: Machine, **settings: str) -> Point:
    (point,) = plan_points(["memory.gups"], {name: [value] for name, value in settings.items()}, machine)
    return point


@pytest.mark.parametrize(
    ("l3_bytes", "memory", "table"),
    [
        (1 << 20, 1 << 40, 256 << 20),
        (384 << 20, 1 << 40, 4 << 30),  # 3 GiB is no power of two
        (384 << 20, 4 << 30, 512 << 20),  # an eighth of the memory
    ],
)
def test_a_table_that_caches_do_not_hold(l3_bytes: int, memory: int, table: int) -> None:
    machine = made_up_machine(cores=2, l3_bytes=l3_bytes)
    machine = replace(machine, facts=facts(memory_total=memory))
    assert planned(machine).parameters["table_B"] == table


def test_a_table_of_another_size_is_refused() -> None:
    refusal = planned(made_up_machine(), table_B="5000").refusal
    assert refusal is not None and "not a power of two" in refusal.reason


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize(("threads", "huge_pages"), [("1", "true"), ("all", "false")])
def test_updates_are_made(threads: str, huge_pages: str, live_machine: Machine, folder: ResultsFolder) -> None:
    ready = make_ready(GUPS, live_machine, folder, table_B=SMALL, threads=threads, huge_pages=huge_pages)
    record = run_one(ready, live_machine, folder)
    assert record.outcome.is_ok, record.outcome
    (reading,) = readings(GUPS, live_machine, ready.point.parameters, record.samples)
    assert 1e5 < reading.value < 1e12
    if threads == "1":
        assert record.checks["lost_updates"] == 0  # nobody comes between


@pytest.mark.real
@pytest.mark.parametrize("words", ["1000", "256", "-8", "x"])
def test_words_that_make_no_sense_are_refused(
    words: str, live_machine: Machine, folder: ResultsFolder, tmp_path: Path
) -> None:
    ready = make_ready(GUPS, live_machine, folder, table_B=SMALL, threads="1")
    command = [str(ready.program.path), "--record", str(tmp_path), "--cpus", str(ready.point.cpus[0])]
    done = subprocess.run([*command, "--table-words", words], stderr=subprocess.PIPE, text=True)
    assert done.returncode == Exit.USAGE and "--table-words" in done.stderr


FAULTS: dict[str, tuple[Edits, str]] = {
    "every update is lost in an eighth of the table": (
        {"gups.cpp": ("word.load(std::memory_order_relaxed) ^ value", "value % 8 == 0 ? 1 : value")},
        "lost_updates",
    ),
    "updates that stay near": ({"gups.cpp": ("table.size() - 1", "table.size() / 4 - 1")}, "words_reached"),
    "a thread elsewhere": (
        {
            "gups.cpp": (
                "own.has_moved |= !is_bound_to(program_.cpus[member]);",
                "own.has_moved |= is_bound_to(program_.cpus[member]);",
            )
        },
        "moved_threads",
    ),
    "updates that were not made": (
        {"gups.cpp": ("settings_.updates * team_.size()))", "settings_.updates * (team_.size() + PLANTED)))")},
        "counted_updates",
    ),
}


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(
    fault: str, live_machine: Machine, folder: ResultsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = {name: edits for name, (edits, _) in FAULTS.items()}
    broken = with_fault(GUPS, fault, faults, tmp_path, monkeypatch)
    record = run_one(make_ready(broken, live_machine, folder, table_B=SMALL), live_machine, folder)
    check = FAULTS[fault][1]
    assert record.outcome.state is State.INVALID and record.outcome.reason.startswith(f"{check}: "), record.outcome
