"""Studies through the real engine: blocks, order, the one budget, and what is done is not done again."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from seatrial.analysis.fairness.side import Topic
from seatrial.analysis.study_results import study_results
from seatrial.engine.listener import Listener
from seatrial.engine.ready import Ready
from seatrial.engine.trial import TrialRun, TrialToRun
from seatrial.model.machine.machine import Machine
from seatrial.model.study.study import Axis, Compare, RepeatPolicy, Study, StudyBenchmark
from seatrial.plan.points import study_points
from seatrial.store.contents import Contents, read_contents
from seatrial.store.folder import ResultsFolder

pytestmark = pytest.mark.real

ITSELF = Study(
    "itself",
    "Is it the same as itself?",
    (StudyBenchmark("cpu.peak", {"cores": "one"}),),
    (Axis("label", ("a", "b")),),
    compare=Compare("label", "a"),
    repeat=RepeatPolicy(budget_s=4.0),
)


def run(study: Study, machine: Machine, folder: Path, **options: bool) -> tuple[TrialRun, Contents]:
    trial = TrialToRun(machine, lambda: ResultsFolder.create(folder), Listener(), **options)
    return trial.run_study(study, study_points(study, machine)), read_contents(ResultsFolder.existing(folder))


@pytest.mark.quiet
def test_blocks_hold_one_repeat_of_each_side_and_the_study_keeps_its_budget(
    live_machine: Machine, tmp_path: Path, program_cache: Path
) -> None:
    trial, contents = run(ITSELF, live_machine, tmp_path / "r")
    assert len(trial.measured) == 2 and trial.study is not None
    records = [(key, record) for key, records in contents.records.items() for record in records]
    blocks: dict[str, list[str]] = {}
    for key, record in sorted(records, key=lambda entry: entry[1].t0):
        assert record.seen["study"] == "itself" and record.seen["budget_s"] == 4.0
        blocks.setdefault(record.seen["block"], []).append(key)
    assert len(blocks) >= 3 and all(len(set(keys)) == 2 == len(keys) for keys in blocks.values())
    assert len({tuple(keys) for keys in blocks.values()}) == 2 or len(blocks) < 8, "the order within blocks is drawn"
    spent_s = sum(record.wall_s for _, record in records)
    longest_s = max(record.wall_s for _, record in records)
    assert spent_s <= 4.0 + 2 * longest_s
    (result,) = study_results(contents)
    ((comparison,),) = (compared.comparisons for compared in result.compared)
    assert comparison.design.is_interleaved and comparison.n_repeats == comparison.design.blocks <= len(blocks)
    changing = (Topic.LOAD, Topic.STEAL, Topic.OTHERS, Topic.DELAY, Topic.BLOCKED)  # on a shared machine
    seen = {one.what for one in result.compared[0].differences if not one.intended}
    assert seen <= {topic.value for topic in changing}

    again, contents = run(ITSELF, live_machine, tmp_path / "r")
    assert not again.measured, "its budget is spent: the same command measures nothing"
    assert sum(map(len, contents.records.values())) == len(records)
    more, contents = run(replace(ITSELF, repeat=RepeatPolicy(budget_s=7.0)), live_machine, tmp_path / "r")
    decided = comparison.design.stopped == "decided"
    assert bool(more.measured) is not decided


@pytest.mark.lab
def test_variables_and_flags_are_axes_of_the_environment(
    live_machine: Machine, tmp_path: Path, program_cache: Path
) -> None:
    study = replace(
        ITSELF,
        name="environments",
        axes=(
            Axis("environment.OMP_WAIT_POLICY", ("active", None)),
            Axis("environment.flags", ("", "-fno-unroll-loops")),
        ),
        compare=None,
        repeat=RepeatPolicy(budget_s=2.5),
    )
    os.environ["OMP_WAIT_POLICY"] = "passive"
    try:
        trial, contents = run(study, live_machine, tmp_path / "r")
    finally:
        del os.environ["OMP_WAIT_POLICY"]
    ready = [item for item in trial.experiments if isinstance(item, Ready)]
    assert len(ready) == 4 and len({item.program.built.key for item in ready}) == 2, "variables make no other build"
    documents = [contents.environments[item.experiment.environment] for item in ready]
    assert sorted((d["variables"]["OMP_WAIT_POLICY"] or "", tuple(d.get("added_flags", ()))) for d in documents) == [
        ("", ()),
        ("", ("-fno-unroll-loops",)),
        ("active", ()),
        ("active", ("-fno-unroll-loops",)),
    ]
    for item in ready:
        wanted = contents.environments[item.experiment.environment]["variables"]["OMP_WAIT_POLICY"]
        for record in contents.records[item.experiment.id]:
            assert record.outcome.is_ok, record.outcome
            assert record.seen["variables"].get("OMP_WAIT_POLICY") == wanted


@pytest.mark.lab
def test_a_missing_compiler_refuses_only_its_points(live_machine: Machine, tmp_path: Path, program_cache: Path) -> None:
    study = replace(
        ITSELF,
        name="compilers",
        axes=(Axis("environment.compiler", ("g++", "no-such-compiler++")),),
        compare=None,
        repeat=RepeatPolicy(budget_s=1.0),
    )
    trial, _ = run(study, live_machine, tmp_path / "r")
    states = [getattr(item, "outcome", None) for item in trial.experiments]
    assert states[0] is None and states[1] is not None and "no-such-compiler++" in states[1].reason
