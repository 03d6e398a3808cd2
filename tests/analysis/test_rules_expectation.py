"""The judge: what is low, what is unsteady, and how often noise alone would be called two levels."""

from __future__ import annotations

import hashlib
import math

import pytest

from seatrial.analysis.rules.expectation import Judge, Judgement, is_unsteady, levels, relative_width
from seatrial.model.benchmark.benchmark import ALL_OF_IT, Attainable, Better
from seatrial.model.machine.limit import Basis, Limit
from seatrial.model.results.figure_result import ExperimentResult, FigureResult, RepeatValue, share_of
from seatrial.model.results.record import Experiment
from seatrial.model.results.sample import Outcome


def limit(value: float | None, basis: Basis = Basis.PHYSICAL, derivation: str = "made up") -> Limit:
    return Limit(value, "B/s", derivation, basis)


def made(
    median: float,
    of: Limit | None,
    *,
    name="rate",
    width=0.01,
    better=Better.HIGHER,
    attainable=ALL_OF_IT,
    one_limit_over=("threads",),
    point=None,
) -> FigureResult:
    values = [median * (1 + width * (k - 4) / 8) for k in range(9)]
    repeats = tuple(RepeatValue(k, k, float(k), value) for k, value in enumerate(values))
    return FigureResult(
        name,
        point or {},
        "B/s",
        better,
        "",
        median,
        (values[0], values[-1]),
        *sorted((values[0], values[-1])),
        9,
        of,
        repeats,
        share_of(median, of, better),
        attainable,
        one_limit_over,
    )


def result(*figures: FigureResult, benchmark="b", outcome=None, **parameters) -> ExperimentResult:
    experiment = Experiment(benchmark, parameters, "e", "p", "m")
    return ExperimentResult(experiment.id, experiment, "?", outcome or Outcome.ok(), figures)


def judged(*results: ExperimentResult) -> list[Judgement]:
    judge = Judge(results)
    return [judge.experiment(entry) for entry in results]


def test_near_a_physical_limit_is_expected_and_far_below_a_defect():
    assert judged(result(made(0.9, limit(1.0)))) == [Judgement.EXPECTED]
    assert judged(result(made(0.75, limit(1.0)))) == [Judgement.EXPECTED]
    assert judged(result(made(0.74, limit(1.0)))) == [Judgement.DEFECT]


def test_lower_is_better_turns_the_share_round():
    assert judged(result(made(1.2, limit(1.0), better=Better.LOWER))) == [Judgement.EXPECTED]
    assert judged(result(made(1.5, limit(1.0), better=Better.LOWER))) == [Judgement.DEFECT]


@pytest.mark.parametrize("of", [None, limit(None, Basis.UNKNOWN), limit(1.0, Basis.MEASURED)])
def test_without_a_physical_limit_nothing_is_a_defect(of):
    assert judged(result(made(0.3, of))) == [Judgement.UNJUDGED]


def test_near_a_measured_ceiling_is_expected():
    assert judged(result(made(0.9, limit(1.0, Basis.MEASURED)))) == [Judgement.EXPECTED]


def test_one_point_that_reaches_the_limit_excuses_the_others():
    points = [result(made(0.1, limit(1.0)), threads=1), result(made(0.9, limit(1.0)), threads=8)]
    assert judged(*points) == [Judgement.EXPECTED, Judgement.EXPECTED]


def test_where_no_point_reaches_the_limit_only_the_best_is_a_defect():
    points = [result(made(0.1, limit(1.0)), threads=1), result(made(0.6, limit(1.0)), threads=8)]
    assert judged(*points) == [Judgement.UNJUDGED, Judgement.DEFECT]


def test_a_part_of_the_limit_is_under_it_where_only_threads_differ():
    one_socket = limit(0.5, derivation="1 of 2 sockets; all: made up")
    points = [result(made(0.1, one_socket), threads=1), result(made(0.9, limit(1.0)), threads=8)]
    assert judged(*points) == [Judgement.EXPECTED, Judgement.EXPECTED]


def test_words_of_a_derivation_excuse_nothing():
    two, twelve = (limit(1.0, derivation=f"{n} populated channels x 8 B") for n in (2, 12))
    low, good = result(made(0.1, twelve), node=1), result(made(0.9, two), node=0)
    assert judged(good, low) == [Judgement.EXPECTED, Judgement.DEFECT]


def test_points_inside_the_program_are_told_apart_unless_declared():
    pairs = [made(share, limit(1.0), point={"pair": k}) for k, share in enumerate((0.9, 0.1))]
    assert judged(result(*pairs)) == [Judgement.DEFECT]
    sizes = [
        made(share, limit(1.0), point={"size_B": k}, one_limit_over=("size_B",)) for k, share in enumerate((0.9, 0.1))
    ]
    assert judged(result(*sizes)) == [Judgement.EXPECTED]


def test_what_cannot_be_counted_is_no_loss():
    plain = Attainable(0.75, "plain stores: at most 75 % of it can be counted")
    assert judged(result(made(0.70, limit(1.0), attainable=plain))) == [Judgement.EXPECTED]
    assert judged(result(made(0.70, limit(1.0)))) == [Judgement.DEFECT]
    assert judged(result(made(0.55, limit(1.0), attainable=plain))) == [Judgement.DEFECT]


def test_another_benchmark_or_figure_excuses_nothing():
    good = result(made(0.9, limit(1.0)))
    assert judged(good, result(made(0.1, limit(1.0)), benchmark="c"))[1] is Judgement.DEFECT
    assert judged(good, result(made(0.1, limit(1.0), name="other"), k=1))[1] is Judgement.DEFECT


def test_outcomes():
    assert judged(result(outcome=Outcome.skipped("x"))) == [Judgement.NOT_MEASURED]
    assert judged(result(outcome=Outcome.unsupported("x", "y"))) == [Judgement.NOT_MEASURED]
    assert judged(result(outcome=Outcome.invalid("x", "y"))) == [Judgement.DEFECT]
    assert judged(result(outcome=Outcome.timed_out(1.0))) == [Judgement.DEFECT]


def test_a_wide_interval_is_unsteady():
    assert judged(result(made(0.9, limit(1.0), width=0.15))) == [Judgement.UNSTEADY]
    assert judged(result(made(0.9, limit(1.0), width=0.09))) == [Judgement.EXPECTED]
    assert relative_width(made(0.0, None)) is None


def test_two_levels_are_found():
    assert levels([1.0, 1.01, 0.99, 1.0, 1.5, 1.51, 1.49, 1.5]) == ([0.99, 1.0, 1.0, 1.01], [1.49, 1.5, 1.5, 1.51])
    values = [1.0, 1.001, 1.5, 1.501, 1.0, 1.5, 1.0, 1.5]
    repeats = tuple(RepeatValue(k, k, float(k), value) for k, value in enumerate(values))
    assert is_unsteady(FigureResult("f", {}, "s", Better.LOWER, "", 1.25, None, 1.0, 1.5, 8, None, repeats))


@pytest.mark.parametrize(
    "values",
    [
        [1.0, 1.5] * 3,  # too few
        [1.0, 1.01, 1.02, 1.03] * 2,  # too near
        [1.0] * 11 + [2.0],  # one outlier is no level
        [1.0] * 12,
    ],
)
def test_what_is_not_two_levels(values):
    assert levels(values) is None


def uniform(*of: object) -> float:
    digest = hashlib.sha256(repr(of).encode()).digest()  # a CRC is linear: its neighbours are not independent
    return (int.from_bytes(digest[:6]) + 0.5) / 2**48


NOISES = {
    "normal": lambda *of: 1 + 0.1 * math.sqrt(-2 * math.log(uniform(*of, 1))) * math.cos(math.tau * uniform(*of, 2)),
    "uniform": lambda *of: 0.7 + 0.6 * uniform(*of),
    "exponential": lambda *of: 1 - math.log(uniform(*of)) / 5,
}


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("n", [8, 12, 20])
def test_noise_with_one_hump_is_hardly_ever_called_two_levels(noise, n):
    trials = 1000
    alarms = sum(levels([NOISES[noise](noise, n, trial, k) for k in range(n)]) is not None for trial in range(trials))
    assert alarms / trials <= (0.02 if n == 8 else 0.005)
