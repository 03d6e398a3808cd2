"""What fits into a budget: by importance, with shared builds, and what the user named in any case."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

from made_up import made_up_machine

from seatrial.cli.progress import fit_lines
from seatrial.engine.durations import Build, Costs
from seatrial.engine.listener import BudgetFit
from seatrial.engine.study_work import WantedWork, fit_of, wanted_of_study
from seatrial.plan.planned import by_importance
from seatrial.plan.points import Point, plan_points, study_points
from seatrial.plan.study_file import read_study

MACHINE = made_up_machine(cores=4)
PEAK = plan_points(["cpu.peak"], {"cores": ["one", "all"]}, MACHINE)
(GUPS,) = plan_points(["memory.gups"], {}, MACHINE)


@dataclass
class MadeUp:
    """Costs without a machine: one second a repeat, and a build of `build_s` for each benchmark."""

    build_s: float = 0.0
    slow: dict[str, float] = field(default_factory=dict)

    def builds(self, point: Point) -> dict[Build, float]:
        source = point.benchmark.program.source
        return {("e", source): self.build_s} if self.build_s and source is not None else {}

    def repeats_s(self, point: Point, minimum: int) -> float:
        return minimum * self.slow.get(point.benchmark.name, 1.0)

    total_s = Costs.total_s


def fit(
    points: Iterable[Point], budget_s: float, costs: MadeUp, *, must_have_all: bool = False, needs_one: bool = False
) -> BudgetFit:
    wanted = [WantedWork((point,), 6) for point in points]
    return fit_of(wanted, cast(Costs, costs), budget_s, 2.0, must_have_all=must_have_all, needs_one=needs_one)


def test_a_program_is_built_once_and_a_shorter_one_may_fit_behind_a_longer() -> None:
    costs = MadeUp(build_s=5.0, slow={"memory.gups": 10.0})
    found = fit([PEAK[0], GUPS, PEAK[1]], 30.0, costs)
    assert [item.points[0] for item in found.fitting] == list(PEAK) and found.left_out[0].points == (GUPS,)
    assert found.needed_s == 2.0 + 5.0 + 12.0 and found.all_s == found.needed_s + 65.0 and found.holds
    fits, not_fits = fit_lines(found)
    assert found.builds_s == 10.0
    assert fits == "fits into 30 s: cpu.peak x 2 (about 19 s in all)"
    assert "memory.gups (about 65 s)" in not_fits and "--budget 85s" in not_fits


def test_what_is_named_is_measured_and_said_to_be_too_much() -> None:
    found = fit(PEAK, 3.0, MadeUp(), must_have_all=True)
    assert len(found.fitting) == 2 and not found.left_out and not found.holds
    (line,) = fit_lines(found)
    assert "too short" in line and "all 2 experiments" in line and "--budget 15s" in line


def test_building_alone_may_be_too_long() -> None:
    for must_have_all in (True, False):
        *_, line = fit_lines(fit([PEAK[0], GUPS], 9.0, MadeUp(build_s=5.0), must_have_all=must_have_all))
        assert line.startswith("building alone takes about 10 s, longer than the budget; `seatrial build`")
        assert "building" not in "".join(fit_lines(fit(PEAK, 9.0, MadeUp(build_s=5.0), must_have_all=must_have_all)))


def test_a_study_of_which_nothing_fits_is_measured_as_far_as_it_goes() -> None:
    assert not fit(PEAK, 3.0, MadeUp(), needs_one=True).holds
    one = fit(PEAK, 9.0, MadeUp(), needs_one=True)
    assert one.holds and len(one.fitting) == len(one.left_out) == 1
    nothing = fit(PEAK, 3.0, MadeUp())
    assert nothing.holds and not nothing.fitting and "fits into 3 s: nothing" in fit_lines(nothing)[0]


def test_finished_experiments_cost_nothing_and_fit() -> None:
    found = fit(PEAK, 1.0, MadeUp(slow={"cpu.peak": 0.0}))
    assert len(found.fitting) == 2 and not fit_lines(found)


def test_sides_of_a_comparison_fit_together_or_not() -> None:
    study = read_study(
        b"study: s\nquestion: q?\nbenchmarks: {cpu.peak: {cores: one}}\naxes: {label: [a, b, c], "
        b"precision: [fp32, fp64]}\ncompare: label\n",
        "s.yaml",
    )
    wanted = wanted_of_study(study, study_points(study, MACHINE))
    assert [len(one.points) for one in wanted] == [3, 3] and {one.minimum for one in wanted} == {8}


def test_the_first_point_of_every_benchmark_comes_before_a_second() -> None:
    points = [*PEAK, GUPS, *plan_points(["memory.stream"], {"threads": ["1", "2"]}, MACHINE)]
    ordered = by_importance(points, lambda point: 1.0 if point.benchmark.name == "cpu.peak" else 2.0)
    assert [point.benchmark.name for point in ordered] == [
        *("cpu.peak", "memory.stream", "memory.gups"),
        *("cpu.peak", "memory.stream"),
    ]
