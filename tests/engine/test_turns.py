"""Compared experiments that take turns, through the real engine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from engine.harness import make_ready, tampered

from seatrial.analysis.study_results import study_results
from seatrial.benchmarks.cpu.peak import BENCHMARK as PEAK
from seatrial.benchmarks.mpi.latency import BENCHMARK as LATENCY
from seatrial.engine import repeat
from seatrial.engine.engine import StudyWork, run_work
from seatrial.engine.group import Member, can_take_turns
from seatrial.engine.listener import Listener
from seatrial.engine.policy import ComparedBlocks, Pool
from seatrial.engine.ready import Ready
from seatrial.engine.repeat import command_of
from seatrial.engine.trial import TrialToRun
from seatrial.environments.mpi import find_mpis
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord
from seatrial.model.study.study import Axis, Compare, RepeatPolicy, Study, StudyBenchmark
from seatrial.plan.points import study_points
from seatrial.processes.tree import children, descendants
from seatrial.store.contents import Contents, read_contents
from seatrial.store.folder import ResultsFolder

pytestmark = pytest.mark.real


@pytest.fixture
def sides(live_machine: Machine, folder: ResultsFolder, program_cache: Path) -> list[Ready]:
    return [make_ready(PEAK, live_machine, folder, cores="one", precision=p) for p in ("fp64", "fp32")]


def compared(sides: list[Ready], blocks: int) -> list[StudyWork]:
    return [StudyWork((tuple(sides),), ComparedBlocks(Pool(60.0), 0.0, blocks, figures=frozenset({"none"})), "turns")]


def blocks_of(contents: Contents) -> dict[str, list[RepeatRecord]]:
    blocks: dict[str, list[RepeatRecord]] = {}
    for record in (record for records in contents.records.values() for record in records):
        blocks.setdefault(record.seen["block"], []).append(record)
    return blocks


def command_with(option: str, value: str) -> Callable[[Ready, Path], list[str]]:
    def command(ready: Ready, directory: Path) -> list[str]:
        arguments = command_of(ready, directory)
        arguments[arguments.index(option) + 1] = value
        return arguments

    return command


@pytest.mark.quiet
def test_a_study_of_a_program_against_itself_takes_turns(
    live_machine: Machine, tmp_path: Path, program_cache: Path
) -> None:
    study = Study(
        "itself",
        "Is it the same as itself?",
        (StudyBenchmark("cpu.peak", {"cores": "one"}),),
        (Axis("label", ("a", "b")),),
        compare=Compare("label", "a"),
        repeat=RepeatPolicy(budget_s=3.0),
    )
    trial = TrialToRun(live_machine, lambda: ResultsFolder.create(tmp_path / "r"), Listener())
    trial.run_study(study, study_points(study, live_machine))
    contents = read_contents(ResultsFolder.existing(tmp_path / "r"))
    blocks = blocks_of(contents)
    assert len(blocks) >= 3
    for block in blocks.values():
        assert len({record.experiment for record in block}) == 2 == len(block)
        (share_s,) = {record.wall_s for record in block}
        whole_s = max(record.seen["program_s"] for record in block)
        assert whole_s / 2 <= share_s < whole_s, "each is charged its share of the block"
        for record in block:
            assert record.outcome.is_ok and record.seen["together"] == 2
            assert int(record.seen["notes"]["turns"]) > 3 and "--turns" not in record.seen["command"]
    orders = sorted(record.order for block in blocks.values() for record in block)
    assert orders == list(range(len(orders)))
    ((comparison,),) = (compared.comparisons for compared in study_results(contents)[0].compared)
    assert comparison.verdict and comparison.n_repeats == comparison.design.blocks <= len(blocks)


@pytest.mark.lab
def test_one_that_fails_beside_its_partner_is_made_apart(
    live_machine: Machine, folder: ResultsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program_cache: Path
) -> None:
    fault = {"turns.hpp": ("if (!is_leading_)", "if (is_leading_) std::raise(SIGABRT); else")}
    broken = tampered(PEAK, tmp_path, fault, monkeypatch)
    sides = [make_ready(broken, live_machine, folder, cores="one", precision=p) for p in ("fp64", "fp32")]
    run_work(compared(sides, 3), live_machine, folder, Listener())
    blocks = blocks_of(read_contents(folder))
    assert len(blocks) == 3 and all(len(block) == 2 for block in blocks.values())
    for record in (record for block in blocks.values() for record in block):
        assert record.outcome.is_ok and "together" not in record.seen and "turns" not in record.seen["notes"]
    assert not list(folder.path.glob("artefacts/*/*"))


@pytest.mark.quiet
def test_an_interrupt_ends_both_and_leaves_no_claim(
    live_machine: Machine, folder: ResultsFolder, sides: list[Ready], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = children(os.getpid())

    def programs() -> set[int]:
        return set(descendants(os.getpid())) - children(os.getpid())  # through the guard

    def interrupt() -> None:
        deadline = time.monotonic() + 60
        while len(programs()) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(repeat, "command_of", command_with("--slice", "600"))
        waiting = threading.Thread(target=interrupt)
        before_it = signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it
        try:
            waiting.start()
            with pytest.raises(KeyboardInterrupt):
                run_work(compared(sides, 2), live_machine, folder, Listener())
            waiting.join()
        finally:
            signal.signal(signal.SIGINT, before_it)
    assert not programs() and len(children(os.getpid()) - before) <= 1
    assert not list(folder.path.glob("artefacts/*/*")) and not read_contents(folder).records
    run_work(compared(sides, 2), live_machine, folder, Listener())
    assert sorted(map(len, read_contents(folder).records.values())) == [2, 2]


_CLAIMS_AND_DIES = """
import sys
from pathlib import Path
from seatrial.store.claim import claim
from seatrial.store.folder import ResultsFolder
import platform
noted = {"order": 0, "t0": float(sys.argv[3]), "variables": {}, "block": "killed:1", "study": "turns", "together": 2}
claim(ResultsFolder.existing(Path(sys.argv[1])), platform.node(), sys.argv[2], 0, noted)
"""


@pytest.mark.quiet
def test_what_ended_before_the_lab_was_killed_is_taken_over_with_its_share_of_the_time(
    live_machine: Machine, folder: ResultsFolder, sides: list[Ready]
) -> None:
    key, t0 = sides[0].experiment.id, time.time() - 100.0
    subprocess.run([sys.executable, "-c", _CLAIMS_AND_DIES, str(folder.path), key, str(t0)], check=True)
    subprocess.run(command_of(sides[0], folder.artefacts(key, 0)), check=True)
    run_work(compared(sides, 2), live_machine, folder, Listener())
    contents = read_contents(folder)
    recovered = [record for record in contents.records[key] if record.seen.get("recovered")]
    assert [record.seen["together"] for record in recovered] == [2]
    assert recovered[0].t0 == t0 and 50.0 <= recovered[0].wall_s < 80.0
    assert len(contents.records[sides[1].experiment.id]) == 2


@pytest.mark.lab
def test_only_a_few_on_the_same_cpus_take_turns(live_machine: Machine, sides: list[Ready]) -> None:
    one, other = (Member(ready, live_machine) for ready in sides)
    assert can_take_turns([one, other]) and can_take_turns([one] * 4)
    assert not can_take_turns([one]) and not can_take_turns([one] * 5)
    other_clock = replace(other.ready, node_settings=(("governor", "performance"),))
    assert not can_take_turns([one, Member(other_clock, live_machine)])
    elsewhere = replace(sides[0], point=replace(sides[0].point, cpus=(*sides[0].point.cpus, 10**6)))
    assert not can_take_turns([one, Member(elsewhere, live_machine)])
    apart = replace(PEAK, program=replace(PEAK.program, takes_turns=False))
    assert not can_take_turns(
        [one, Member(replace(sides[0], point=replace(sides[0].point, benchmark=apart)), live_machine)]
    )


@pytest.mark.quiet
@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_ranks_of_both_sides_live_and_one_side_computes(
    mpi: str, live_machine: Machine, folder: ResultsFolder, program_cache: Path
) -> None:
    """Each rank passes its turn after each round, and both sides end with the same number of rounds."""
    if mpi not in {found.name for found in find_mpis()}:
        pytest.skip(f"{mpi} is not installed")
    sides = [make_ready(LATENCY, live_machine, folder, mpi=mpi, size_B=size_B) for size_B in (8, 16)]
    assert can_take_turns([Member(side, live_machine) for side in sides])
    run_work(compared(sides, 2), live_machine, folder, Listener())
    blocks = blocks_of(read_contents(folder))
    assert len(blocks) == 2
    for block in blocks.values():
        assert [(record.outcome.is_ok, record.seen["together"]) for record in block] == [(True, 2)] * 2
        first, second = (int(record.seen["notes"]["turns"]) for record in block)
        assert first > 3 and abs(first - second) <= 2


@pytest.mark.lab
def test_ranks_survive_a_partner_that_dies_in_its_turn(
    live_machine: Machine, folder: ResultsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program_cache: Path
) -> None:
    fault = {"mpi/turns.cpp": ("  if (is_leading_)", "  if (!is_leading_) std::raise(SIGABRT);\n  if (is_leading_)")}
    broken = tampered(LATENCY, tmp_path, fault, monkeypatch)
    sides = [make_ready(broken, live_machine, folder, size_B=size_B) for size_B in (8, 16)]
    start = time.monotonic()
    run_work(compared(sides, 2), live_machine, folder, Listener())
    blocks = blocks_of(read_contents(folder))
    assert len(blocks) == 2 and time.monotonic() - start < 30, "nobody waits for the dead"
    for record in (record for block in blocks.values() for record in block):
        assert record.outcome.is_ok and "together" not in record.seen


@pytest.mark.quiet
def test_ranks_that_slurm_starts_take_no_turns(
    live_machine: Machine, folder: ResultsFolder, program_cache: Path
) -> None:
    one = make_ready(LATENCY, live_machine, folder, size_B=8)
    assert one.mpi is not None
    by_slurm = replace(one, mpi=replace(one.mpi, launcher=Path("/usr/bin/srun")))
    assert not can_take_turns([Member(one, live_machine), Member(by_slurm, live_machine)])
    assert not can_take_turns([Member(by_slurm, live_machine)] * 2)
