"""From points to groups: which experiments are measured side by side, and the size of the family."""

from __future__ import annotations

from dataclasses import replace

from engine.test_policy import MACHINE, member

from seatrial.analysis.compare import compared
from seatrial.analysis.match import Match, MeasuredSide
from seatrial.engine.group import Group
from seatrial.engine.policy import ComparedBlocks
from seatrial.engine.ready import Ready, Refused
from seatrial.engine.study_work import study_work
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.results.figure_result import FigureResult, RepeatValue
from seatrial.model.results.record import Experiment
from seatrial.model.results.sample import Outcome
from seatrial.model.study.study import Axis, Compare, Study, StudyBenchmark
from seatrial.plan.points import study_points
from seatrial.stats.sequential import replay_curve

STUDY = Study(
    "s",
    "q?",
    (StudyBenchmark("cpu.peak", {}),),
    (Axis("precision", ("fp32", "fp64")), Axis("label", ("a", "b", "c"))),
    compare=Compare("label", "b"),
)


def prepared(study: Study) -> list[Ready]:
    """The points of a study, as if they had been built."""
    like = member([]).ready
    return [
        replace(like, point=point, experiment=Experiment("cpu.peak", point.parameters, "", "", ""))
        for point in study_points(study, MACHINE)
    ]


def labels(group: tuple[Ready, ...]) -> list[object]:
    return [ready.point.given["label"] for ready in group]


def test_points_that_differ_along_the_axis_are_a_group_with_the_baseline_first() -> None:
    (work,) = study_work(STUDY, prepared(STUDY))
    assert [labels(group) for group in work.groups] == [["b", "a", "c"], ["b", "a", "c"]]
    assert all(len({ready.point.given["precision"] for ready in group}) == 1 for group in work.groups)
    assert isinstance(work.policy, ComparedBlocks) and work.policy.family == 4 and work.study == "s"


def test_axes_that_advance_with_the_compared_one_part_no_groups() -> None:
    zipped = replace(
        STUDY, axes=(Axis("precision", ("fp32", "fp64")), Axis("label", ("a", "b"))), zips=(("precision", "label"),)
    )
    (work,) = study_work(zipped, prepared(zipped))
    assert [labels(group) for group in work.groups] == [["b", "a"]]


def test_without_a_comparison_each_experiment_stands_alone() -> None:
    alone = replace(STUDY, compare=None)
    (work,) = study_work(alone, prepared(alone))
    assert [len(group) for group in work.groups] == [1] * 6 and not isinstance(work.policy, ComparedBlocks)


def test_what_cannot_run_is_in_no_group() -> None:
    items = prepared(STUDY)
    refused = [Refused(item.point, item.experiment, Outcome.skipped("x")) for item in items[:1]]
    (work,) = study_work(STUDY, [*refused, *items[1:]])
    assert sorted(len(group) for group in work.groups) == [2, 3]


def test_points_that_come_out_as_one_experiment_are_measured_once() -> None:
    items = prepared(STUDY)
    (work,) = study_work(STUDY, [*items, *items])
    assert [len(group) for group in work.groups] == [3, 3]


def test_the_engine_and_the_reader_count_the_same_family() -> None:
    """The engine may stop where the reader says that it is decided, and nowhere else."""
    (work,) = study_work(STUDY, prepared(STUDY))
    levels = {"a": 1.0, "b": 1.0, "c": 1.1}
    noise = [1.0 + 0.004 * ((7 * n) % 11 - 5) / 5 for n in range(16)]
    for blocks in range(6, 17):
        values = {k: [level * noise[(n + 3 * ord(k)) % 16] for n in range(blocks)] for k, level in levels.items()}
        group = Group([member(values[k]) for k in ("b", "a", "c")])
        measured = {k: _measured(k, values[k]) for k in values}
        found = compared(
            [
                Match("cpu.peak", {"precision": p}, measured["b"], measured[k], "flop/s", Better.HIGHER, "fma", None)
                for p in ("fp32", "fp64")
                for k in ("a", "c")
            ],
            0.02,
        )
        assert all(one.family == work.policy.family for one in found)
        pairs = {k: list(zip(values["b"], values[k], strict=True)) for k in ("a", "c")}
        decided = [replay_curve([own], 0.02, True, found[0].family)[0].stopped_at_look for own in pairs.values()]
        at_a_look = blocks in (12, 16)
        assert work.policy.has_enough(group) is (at_a_look and all(look is not None for look in decided))


def _measured(name: str, values: list[float]) -> MeasuredSide:
    repeats = tuple(RepeatValue(n, n, float(n), value) for n, value in enumerate(values))
    figure = FigureResult("fma", {}, "flop/s", Better.HIGHER, "", 1.0, None, 1.0, 1.0, 1, None, repeats)
    return MeasuredSide(name, name, figure, ("n1",), "m", {n: f"block:{n}" for n in range(len(values))})
