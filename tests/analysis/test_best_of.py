"""The winner of a sweep: order, gap, ties, cost, and how often the true best is left out."""

from __future__ import annotations

import random

import pytest
from analysis.made_up_sweeps import figure, noisy, result

from seatrial.analysis.sweep import best_of, winners_of
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.results.sample import Outcome
from seatrial.model.study.comparison import Stopped, Verdict
from seatrial.report.studies.best_of_words import best_of_headline, place_words
from seatrial.stats.ratio import independent_ratio


def reads(rates, n: int = 12, noise: float = 0.005, seed: int = 1, **more):
    source = random.Random(seed)
    return [
        result(figure(noisy(rate, n, noise, source), "read", Better.HIGHER), record_B=size, **more)
        for size, rate in rates.items()
    ]


def test_a_clear_winner() -> None:
    runs = reads({4096: 1e9, 65536: 3e9, 1 << 20: 2.8e9})
    costs = {run.id: (12, 6.5) for run in runs} | {"other": (100, 1e6)}
    (found,) = best_of(runs, ("record_B",), "read", {}, costs)
    assert [c.parameters["record_B"] for c in found.contenders] == [65536, 1 << 20, 4096]
    assert found.is_beyond_noise and found.tied == ()
    assert found.gap.ratio == pytest.approx(2.8 / 3, rel=0.01) and found.gap.verdict is Verdict.SLOWER
    low, high = found.gap.ci95_family
    assert low <= found.gap.ci95[0] <= found.gap.ratio <= found.gap.ci95[1] <= high < 1
    sides = [[repeat.value for repeat in runs[k].figures[0].repeats] for k in (1, 2)]
    assert (low, high) == (lambda r: (r.low, r.high))(independent_ratio(*sides, 0.05 / 2))
    assert found.gap.family == 2 and found.gap.design.stopped is Stopped.NOT_PLANNED
    assert (found.gap.baseline.name, found.gap.candidate.name) == (
        "record 64\N{NO-BREAK SPACE}KiB",
        "record 1\N{NO-BREAK SPACE}MiB",
    )
    assert (found.repeats, found.cost_s) == (36, pytest.approx(19.5))
    assert winners_of(runs, [found]) == (runs[1],)


def test_of_times_the_least_wins_and_failed_ones_stand_last() -> None:
    runs = [result(figure([t] * 8), block=b) for b, t in ((64, 3.0), (128, 2.0))]
    lost = result(outcome=Outcome.timed_out(20), block=256)
    costs = {runs[0].id: (8, 24.0), lost.id: (1, 20.0)}
    (found,) = best_of([lost, *runs], ("block",), "time", {}, costs)
    assert [c.parameters["block"] for c in found.contenders] == [128, 64, 256]
    assert found.contenders[2].median is None and found.contenders[2].reason.startswith("timed_out: ended after 20 s")
    assert found.gap.ratio == pytest.approx(1.5) and found.gap.verdict is Verdict.SLOWER
    assert (found.repeats, found.cost_s) == (9, 44.0)


def test_undecided_is_never_called_a_tie_and_too_few_repeats_are_counted() -> None:
    (found,) = best_of(reads({1: 100, 2: 100.01, 3: 50}, noise=0.02), ("record_B",), "read", {}, {})
    assert not found.is_beyond_noise and found.tied == (1,) and found.untested == ()
    assert place_words(found, 1) == "undecided" and "tie" not in best_of_headline(found)
    (found,) = best_of(reads({1: 100, 2: 50}, n=4), ("record_B",), "read", {}, {})
    assert found.gap.ci95 is None and found.gap.ci95_family is None and found.gap.verdict is Verdict.AMBIGUOUS
    assert not found.is_beyond_noise and found.tied == () and "too few repeats" in found.gap.note
    assert (found.untested, found.needed) == ((1,), 6)
    assert "undecided" in best_of_headline(found) and "6 needed" in best_of_headline(found)
    assert place_words(found, 1) == "undecided: needs 6 repeats"


def test_one_untested_contender_is_no_tie_and_no_win() -> None:
    runs = reads({1: 100, 2: 50}) + reads({3: 40}, n=3)
    (found,) = best_of(runs, ("record_B",), "read", {}, {})
    assert (found.tied, found.untested, found.is_beyond_noise) == ((), (2,), False)
    assert [place_words(found, place) for place in range(3)] == [
        "leads", "behind", f"undecided: needs {found.needed} repeats"
    ]  # fmt: skip


def test_a_contender_ahead_of_the_best_median_in_every_block_leads() -> None:
    """Its median is worse because two blocks of its own were slow; the other lost those blocks to a failure."""
    level = [1.0] * 10 + [3.0] * 12
    slow = result(figure([1.05 * x for x in level[:12]]), n=1)
    fast = result(figure(level), n=2)
    blocks = {(run.id, k): f"b{k}" for run in (slow, fast) for k in range(22)}
    (found,) = best_of([slow, fast], ("n",), "time", blocks, {})
    assert slow.figures[0].median < fast.figures[0].median
    assert found.contenders[0].experiment == fast.id
    assert found.is_beyond_noise and found.tied == ()


def test_a_lone_contender_wins_nothing() -> None:
    (found,) = best_of(reads({1: 100}), ("record_B",), "read", {}, {})
    assert found.gap is None and not found.is_beyond_noise and found.tied == ()
    assert best_of([result(outcome=Outcome.skipped("no"), record_B=1)], ("record_B",), "read", {}, {}) == ()
    assert best_of(reads({1: 100}), ("record_B",), "write", {}, {}) == ()


def test_blocks_see_a_small_gap_through_common_noise() -> None:
    source = random.Random(2)
    level = noisy(1.0, 14, 0.2, source)
    runs = [result(figure(level), n=1), result(figure([x * 1.03 for x in level]), n=2)]
    blocks = {(run.id, k): f"b{k}" for run in runs for k in range(14)}
    (paired,) = best_of(runs, ("n",), "time", blocks, {})
    (apart,) = best_of(runs, ("n",), "time", {}, {})
    assert paired.is_beyond_noise and paired.gap.design.blocks == 14 and len(paired.gap.pairs) == 14
    assert not apart.is_beyond_noise and apart.gap.design.blocks == 0 and apart.tied == (1,)


def test_one_for_each_point_of_the_other_axes_and_over_two_axes() -> None:
    runs = reads({1: 10, 2: 20}, direct=True, file_B=8) + reads({1: 30, 2: 20}, direct=False, file_B=8)
    found = best_of(runs, ("record_B",), "read", {}, {})
    assert [(r.parameters, r.contenders[0].parameters["record_B"]) for r in found] == [
        ({"direct": True, "file_B": 8}, 2), ({"direct": False, "file_B": 8}, 1),
    ]  # fmt: skip
    (both,) = best_of(runs, ("record_B", "direct"), "read", {}, {})
    assert both.contenders[0].parameters == {"record_B": 1, "direct": False} and len(both.contenders) == 4
    assert both.parameters == {"file_B": 8} and both.gap.family == 3


def test_over_an_axis_of_the_environment() -> None:
    runs = [result(figure([t] * 8), n=1, environment=key) for key, t in (("x", 2.0), ("y", 1.0), ("z", 3.0))]
    given = {
        runs[0].id: {"environment.CC": "gcc"},
        runs[1].id: {"environment.CC": "clang"},
        runs[2].id: {"environment.CC": None},
    }
    (found,) = best_of(runs, ("environment.CC",), "time", {}, {}, given)
    assert [c.parameters["environment.CC"] for c in found.contenders] == ["clang", "gcc", "unset"]
    assert found.parameters == {"n": 1}


def test_the_true_best_is_the_winner_or_tied_in_95_percent() -> None:
    """Twenty contenders within the noise of each other: the winner is mostly another than the best, and never alone."""
    source, missed, wrong = random.Random(7), 0, 0
    for _ in range(150):
        truth = [1.0 + 0.002 * k for k in range(20)]
        runs = [result(figure(noisy(t, 10, 0.01, source)), n=k) for k, t in enumerate(truth)]
        (found,) = best_of(runs, ("n",), "time", {}, {})
        kept = {found.contenders[place].parameters["n"] for place in (0, *found.tied)}
        missed += 0 not in kept
        wrong += found.is_beyond_noise and found.contenders[0].parameters["n"] != 0
    assert missed <= 12 and wrong <= 12
