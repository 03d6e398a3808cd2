"""Speedup, efficiency, crossing, fits, and what keeps points apart."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from analysis.made_up_sweeps import figure, noisy, result

from seatrial.analysis.answer import reaches_of
from seatrial.analysis.scaling import scaling
from seatrial.analysis.sweep import MeasuredPoint, pairs_of
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.results.sample import Outcome, Stage
from seatrial.model.study.result import workers_of
from seatrial.report.studies.answer_words import reach_sentence
from seatrial.stats.fits import amdahl_speedup


def times(f: float, workers=(1, 2, 4, 8, 16, 32), repeats: int = 7):
    return [result(figure([100 / amdahl_speedup(p, f)] * repeats), threads=p) for p in workers]


def test_strong_scaling_of_a_time() -> None:
    (found,) = scaling(times(0.02), "strong", "threads", {})
    assert [point.workers for point in found.points] == [1, 2, 4, 8, 16, 32]
    assert [p.speedup for p in found.points] == pytest.approx([amdahl_speedup(p, 0.02) for p in (1, 2, 4, 8, 16, 32)])
    assert found.points[3].efficiency == pytest.approx(amdahl_speedup(8, 0.02) / 8)
    assert found.points[3].speedup_ci95 == pytest.approx((amdahl_speedup(8, 0.02),) * 2)
    assert found.points[3].value == pytest.approx(100 / amdahl_speedup(8, 0.02)) and found.points[3].n_repeats == 7
    (fit,) = found.fits
    assert fit.law == "amdahl" and fit.parameter == pytest.approx(0.02) and fit.ceiling == pytest.approx(50)
    assert [workers for workers, _ in fit.residuals] == [1, 2, 4, 8, 16, 32]
    assert max(abs(residual) for _, residual in fit.residuals) < 1e-9
    assert found.unit == "s" and found.baseline_workers == 1 and found.points[0].speedup_ci95 is None


def test_strong_scaling_of_a_rate_is_the_same() -> None:
    rates = [result(figure([amdahl_speedup(p, 0.02)] * 6, "rate", Better.HIGHER), threads=p) for p in (1, 2, 4, 8, 16)]
    (found,) = scaling(rates, "strong", "threads", {})
    (other,) = scaling(times(0.02, (1, 2, 4, 8, 16)), "strong", "threads", {})
    assert [p.speedup for p in found.points] == pytest.approx([p.speedup for p in other.points])


def test_weak_scaling_of_times_and_rates() -> None:
    work = (1, 2, 4, 8, 16)
    (found,) = scaling([result(figure([10 + p] * 6), nodes=p) for p in work], "weak", "nodes", {})
    assert [p.efficiency for p in found.points] == pytest.approx([11 / (10 + p) for p in work])
    assert [p.speedup for p in found.points] == pytest.approx([p * 11 / (10 + p) for p in work])
    assert found.fits[0].law == "gustafson" and found.fits[0].ceiling is None
    rates = [result(figure([p * 11 / (10 + p)] * 6, "rate", Better.HIGHER), nodes=p) for p in work]
    (rate,) = scaling(rates, "weak", "nodes", {})
    assert [p.efficiency for p in rate.points] == pytest.approx([p.efficiency for p in found.points])
    assert rate.fits[0].parameter == pytest.approx(found.fits[0].parameter)


def test_what_is_no_work_of_all_workers_has_no_speedup() -> None:
    """The rate of one of several processes, and shares beside the others."""
    names = ("rate", "rate_per_device")
    made = [
        result(
            *(figure([1.0 * p] * 6, name, Better.HIGHER) for name in names), benchmark="training.pytorch", processes=p
        )
        for p in (1, 2)
    ]
    share = replace(figure([0.1] * 6, "data_wait"), unit="1", is_secondary=True)
    made = [replace(one, figures=(*one.figures, share)) for one in made]
    assert [one.figure for one in scaling(made, "weak", "processes", {})] == ["rate"]


def headline(found) -> str:
    """The conclusion of one result in words."""
    (reach,) = reaches_of([found])
    return reach_sentence(reach)


def test_a_published_example() -> None:
    """NEURON on SDSC Comet, 2018: 192 / 384 / 768 cores take 373 / 188 / 107 s: 87 % at 768 of what 192 promise."""
    runs = [result(figure([t]), cores=p) for p, t in ((192, 373), (384, 188), (768, 107))]
    (found,) = scaling(runs, "strong", "cores", {})
    assert [round(p.efficiency, 3) for p in found.points] == [1.0, 0.992, 0.871]
    assert found.points[2].speedup_ci95 is None and found.crossing is None and found.efficient_to == 768
    assert (
        found.fits == ()
        and found.note == "No law is fitted: at least 5 numbers of workers are needed, and 3 succeeded."
    )
    assert headline(found) == "undecided at 384 and 768 cores: 6 repeats needed, 1 made"


def test_the_crossing_lies_between_on_a_logarithmic_axis() -> None:
    runs = [result(figure([t] * 6), threads=p) for p, t in ((1, 64), (16, 64 / 16 / 0.9), (32, 64 / 32 / 0.7), (64, 2))]
    (found,) = scaling(runs, "strong", "threads", {})
    assert found.efficient_to == 16 and found.crossing == pytest.approx(16 * math.sqrt(2))
    assert headline(found) == "at least 80 % efficient up to 16 threads, 70.0 % [70.0, 70.0] at 32 threads"


def test_an_efficiency_just_below_is_not_shown_as_80_percent() -> None:
    runs = [result(figure([t] * 6), threads=p) for p, t in ((1, 1.0), (2, 0.5 / 0.7996))]
    assert headline(*scaling(runs, "strong", "threads", {})) == (
        "below 80 % efficient from the first step on: 79.96 % [79.96, 79.96] at 2 threads"
    )


def test_a_return_above_the_threshold_and_an_open_side_are_said() -> None:
    source = random.Random(1)
    shares = {1: 1.0, 2: 0.95, 3: 0.70, 4: 0.9}
    runs = [result(figure(noisy(1 / p / e, 8, 1e-4, source)), ranks=p) for p, e in shares.items()]
    (found,) = scaling(runs, "strong", "ranks", {})
    assert found.efficient_to == 2 and "80 % or more again at 4" in found.note
    runs[2] = result(figure(noisy(1 / 3 / 0.799, 8, 0.05, source)), ranks=3)
    (found,) = scaling(runs, "strong", "ranks", {})
    assert ("includes 80 %" in found.note) == (found.crossing is not None)


def test_failed_points_are_kept_with_their_reason() -> None:
    lost = Outcome.failed(Stage.RUN, "killed by signal 9")
    runs = [result(outcome=lost, threads=1), *times(0.01, (2, 4)), result(outcome=lost, threads=8)]
    (found,) = scaling(runs, "strong", "threads", {})
    assert [(p.workers, p.value is None) for p in found.points] == [(1, True), (2, False), (4, False), (8, True)]
    assert found.points[3].reason == "failed: run: killed by signal 9" and found.points[3].speedup is None
    assert found.baseline_workers == 2 and found.points[2].efficiency == pytest.approx(1, abs=0.05)
    assert "1 gave no result, so efficiencies are relative to 2 threads." in found.note
    assert headline(found).endswith(", no result at 1 and 8 threads")


def test_one_point_or_none_tells_no_scaling() -> None:
    (found,) = scaling(times(0.1, (4,)), "strong", "threads", {})
    assert headline(found) == "no scaling: only the point at 4 threads succeeded"
    assert scaling([result(outcome=Outcome.skipped("small"), threads=1)], "strong", "threads", {}) == ()
    assert scaling(times(0.1), "strong", "nodes", {}) == ()
    assert scaling([result(figure([1.0] * 6), threads="all")], "strong", "threads", {}) == ()


def test_figures_and_other_axes_are_kept_apart() -> None:
    runs = [
        result(figure([1 / p] * 6), figure([p * 1.0] * 6, "rate", Better.HIGHER), threads=p, nontemporal=nt)
        for p in (1, 2)
        for nt in (False, True)
    ]
    found = scaling(runs, "strong", "threads", {})
    assert [(r.figure, r.parameters["nontemporal"], len(r.points)) for r in found] == [
        ("time", False, 2), ("time", True, 2), ("rate", False, 2), ("rate", True, 2),
    ]  # fmt: skip
    assert all("threads" not in r.parameters for r in found)


def test_what_follows_the_workers_does_not_keep_points_apart() -> None:
    """An array that grows with the threads, alone and together with another axis."""
    runs = [
        result(figure([1 / p] * 6), threads=p, nontemporal=nt, array_B=p * (10 + nt))
        for p in (1, 2, 4)
        for nt in (False, True)
    ]
    found = scaling(runs, "weak", "threads", {})
    assert [(r.parameters, len(r.points)) for r in found] == [({"nontemporal": False}, 3), ({"nontemporal": True}, 3)]
    assert [p.parameters for p in found[1].points] == [{"array_B": 11}, {"array_B": 22}, {"array_B": 44}]


def test_an_axis_of_numbers_is_kept_apart_from_what_follows_both() -> None:
    runs = [result(figure([1.0] * 6), threads=p, n=n, total_B=p * n * 8) for p in (1, 2, 4) for n in (1000, 3000)]
    found = scaling(runs, "strong", "threads", {})
    assert [(r.parameters, len(r.points)) for r in found] == [({"n": 1000}, 3), ({"n": 3000}, 3)]


def test_machines_and_environments_are_never_mixed() -> None:
    runs = [result(figure([1.0] * 6), threads=p, machine=m) for p, m in ((1, "a"), (2, "a"), (1, "b"), (2, "b"))]
    runs += [result(figure([1.0] * 6), threads=p, machine="b", environment="other") for p in (1, 2)]
    found = scaling(runs, "strong", "threads", {})
    assert [(r.parameters, len(r.points)) for r in found] == [
        ({"machine": "a", "environment": "e"}, 2),
        ({"machine": "b", "environment": "e"}, 2),
        ({"machine": "b", "environment": "other"}, 2),
    ]
    follows = [result(figure([1.0] * 6), threads=p, machine=f"node {p}") for p in (1, 2)]
    assert [len(r.points) for r in scaling(follows, "strong", "threads", {})] == [1, 1]


def test_a_coordinate_inside_the_program_may_be_the_axis() -> None:
    """Its repeats are pairs: both values are of one process, so noise that is common to both cancels."""
    source = random.Random(5)
    level = [math.exp(source.gauss(0, 0.3)) for _ in range(10)]
    inside = [figure([x / p for x in level], point={"ranks": p, "size_B": 8}) for p in (1, 2, 4)]
    (found,) = scaling([result(*inside, n=5)], "strong", "ranks", {})
    assert [p.speedup for p in found.points] == pytest.approx([1, 2, 4])
    assert found.points[2].speedup_ci95 == pytest.approx((4, 4)) and found.parameters == {"n": 5, "size_B": 8}


def test_blocks_pair_the_repeats() -> None:
    source = random.Random(5)
    level = [math.exp(source.gauss(0, 0.3)) for _ in range(10)]
    one = result(figure(level), threads=1)
    two = result(figure([x / 1.9 for x in level], first=40), threads=2)
    blocks = {(one.id, k): f"b{k}" for k in range(10)} | {(two.id, 40 + k): f"b{k}" for k in range(10)}
    (paired,) = scaling([one, two], "strong", "threads", blocks)
    (apart,) = scaling([one, two], "strong", "threads", {})
    assert paired.points[1].speedup_ci95 == pytest.approx((1.9, 1.9))
    low, high = apart.points[1].speedup_ci95
    assert low < 1.7 and high > 2.1


def test_several_repeats_in_one_block_are_paired_in_order() -> None:
    one, two = MeasuredPoint("a", figure([1.0, 2.0, 3.0])), MeasuredPoint("b", figure([10.0, 20.0, 30.0, 40.0]))
    blocks = {("a", 0): "x", ("a", 1): "x", ("a", 2): "y", ("b", 0): "x", ("b", 1): "y", ("b", 2): "x", ("b", 3): "x"}
    assert pairs_of(one, two, blocks) == ((1.0, 10.0), (3.0, 20.0), (2.0, 30.0))
    assert pairs_of(one, two, {}) == ()


def test_intervals_cover_the_true_speedup() -> None:
    source, hits = random.Random(11), 0
    for _ in range(200):
        runs = [result(figure(noisy(t, 8, 0.02, source)), threads=p) for p, t in ((1, 10.0), (2, 6.0))]
        (found,) = scaling(runs, "strong", "threads", {})
        low, high = found.points[1].efficiency_ci95
        hits += low <= 10 / 6 / 2 <= high
        assert low <= found.points[1].efficiency <= high
    assert hits >= 182


def test_more_than_linear_and_ever_slower_are_said() -> None:
    strange = [result(figure([1 / p**1.2] * 6), threads=p) for p in (1, 2, 3, 4, 5)]
    (found,) = scaling(strange, "strong", "threads", {})
    assert found.fits[0].parameter < 0 and found.fits[0].ceiling is None and "below 0" in found.note
    (found,) = scaling([result(figure([1.0 * p] * 6), threads=p) for p in (1, 2, 3, 4, 5)], "strong", "threads", {})
    assert found.fits[0].parameter > 1 and "above 1" in found.note


def test_a_value_of_zero_has_no_speedup_and_breaks_nothing() -> None:
    runs = [result(figure([v] * 6), threads=p) for p, v in ((1, 1.0), (2, 0.0), (4, 0.25))]
    (found,) = scaling(runs, "strong", "threads", {})
    assert found.points[1].speedup is None and "not positive" in found.points[1].reason
    assert found.points[2].speedup == pytest.approx(4) and found.points[1].value == 0


def test_the_value_of_a_variable_scales_as_a_number() -> None:
    runs = times(0.02, (1, 2, 4))
    given = {run.id: {"environment.OMP_NUM_THREADS": str(p)} for run, p in zip(runs, (1, 2, 4), strict=True)}
    runs = [replace(run, experiment=replace(run.experiment, parameters={})) for run in runs]
    (found,) = scaling(runs, "strong", "environment.OMP_NUM_THREADS", {}, given)
    assert [point.workers for point in found.points] == [1, 2, 4]
    assert found.points[2].speedup == pytest.approx(amdahl_speedup(4, 0.02))
    assert "OMP_NUM_THREADS=4" in headline(found)


@pytest.mark.parametrize(
    ("value", "number"),
    [("4", 4.0), ("2.5", 2.5), (" 8 ", 8.0), ("1e3", 1000.0), (3, 3.0), ("4,2", None), ("0", None), ("-2", None),
     ("nan", None), ("1_0", None), ("٤", None), ("", None), (True, None), (None, None), ("all", None)],
)  # fmt: skip
def test_what_is_a_number_of_workers(value: object, number: float | None) -> None:
    assert workers_of(value) == number
