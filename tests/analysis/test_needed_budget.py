"""The budget that would decide a study, from intervals and from simulated blocks."""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace
from statistics import NormalDist

import pytest
from report.study_samples import compared, comparison, study

from seatrial.analysis.stretches import needed_budget, why_undecided
from seatrial.model.study.answer import Undecided
from seatrial.model.study.comparison import Stopped
from seatrial.model.study.study import NeededBudget, RepeatPolicy
from seatrial.model.units import budget_for
from seatrial.report.documents.compare import study_document
from seatrial.report.text.compare import study_text
from seatrial.stats.sequential import end_alpha, needed_blocks, replay_curve


def test_it_is_where_three_of_four_estimates_are_clear_of_the_edge() -> None:
    """From a ratio of 1 to the edge there must be the half width and the quartile of how far the ratio may move."""
    needed = needed_blocks(1.0, (1 / 1.025, 1.025), 20, 0.02, end_alpha(), 1)
    assert needed is not None
    now, then = (-NormalDist().inv_cdf(end_alpha(ends) / 2) for ends in (1, 2))
    error, share = math.log(1.025) / now, 20 / needed
    room = error * (NormalDist().inv_cdf(0.75) * math.sqrt(1 - share) + then * math.sqrt(share))
    assert room == pytest.approx(math.log(1.02), rel=0.01)


def test_the_nearer_the_edge_the_more_and_on_it_none() -> None:
    wide = [
        needed_blocks(ratio, (ratio / 1.02, ratio * 1.02), 20, 0.02, end_alpha(), 1) for ratio in (1.04, 1.03, 1.025)
    ]
    assert None not in wide and sorted(wide) == wide and wide[0] < wide[-1]
    assert needed_blocks(1.02, (1.0, 1.04), 20, 0.02, end_alpha(), 1) is None
    assert needed_blocks(1.03, (1.0, 1.06), 20, 0.02, end_alpha(), 1, half_steps=0.02) is None, "rounding remains"


def test_without_an_interval_it_is_what_an_interval_of_the_family_needs() -> None:
    assert needed_blocks(1.5, None, 4, 0.02, end_alpha(), 1) == 9
    assert needed_blocks(1.5, None, 12, 0.02, end_alpha(), 1) == 13


def test_the_estimate_is_near_what_decides() -> None:
    """Three of four studies that continue to the estimate should be decided there, or more."""
    source = random.Random(5)
    decided, estimates = 0, 0
    for _ in range(60):
        pairs = [(100.0, 103.0 * source.lognormvariate(0.0, 0.03)) for _ in range(400)]
        (now,) = replay_curve([pairs[:14]], 0.01, True, 1)
        ends = None if now.family.low is None or now.family.high is None else (now.family.low, now.family.high)
        if now.stopped_at_look is not None or now.verdict != "ambiguous":
            continue
        needed = needed_blocks(now.family.ratio, ends, 14, 0.01, now.alpha, 1)
        if needed is None or needed > len(pairs):
            continue
        estimates += 1
        decided += replay_curve([pairs[:needed]], 0.01, True, 1, ends=2)[0].verdict != "ambiguous"
    assert estimates > 20 and decided / estimates > 0.75


def test_the_budget_is_what_was_spent_and_the_missing_blocks_of_both_sides() -> None:
    undecided = comparison(ratio=1.03, half=0.03, n=20, stopped=Stopped.BUDGET)
    decided = comparison("copy", half=0.001, n=20)
    repeat_s = {"0" * 16: 2.0, "1" * 16: 3.0}
    found = needed_budget([undecided, decided], repeat_s, 100.0)
    assert found is not None and found.undecided == 1 and found.repeats > 20
    assert found.budget_s == pytest.approx(100.0 + 1.1 * 5.0 * (found.repeats - 20))
    assert needed_budget([decided], repeat_s, 100.0) is None
    without = needed_budget([comparison(n=4, has_interval=False, stopped=Stopped.BUDGET)], repeat_s, 100.0)
    assert without is not None and without.is_least
    unfinished = comparison(ratio=1.03, half=0.03, stopped=Stopped.UNFINISHED)
    assert needed_budget([unfinished], repeat_s, 100.0) is None, "the same command continues it"


def test_on_the_edge_of_the_margin_the_budget_is_unknown() -> None:
    found = needed_budget([comparison(ratio=1.02, half=0.03, stopped=Stopped.BUDGET)], {}, 100.0)
    assert found == NeededBudget(1, None, 0)


def test_noise_that_is_wide_against_the_margin_has_a_budget_and_is_no_edge() -> None:
    """The width falls with the root of the number: from +-23 % to +-2 %, about 110 times as many."""
    noisy = comparison(ratio=1.02, half=0.21, n=12, stopped=Stopped.BUDGET)
    assert why_undecided(noisy) is Undecided.NOISE
    costs = {"0" * 16: 0.5, "1" * 16: 0.5}
    needed = needed_budget([noisy], costs, 12.0)
    assert needed is not None and needed.repeats == math.ceil(12 * (0.21 / math.log(1.02)) ** 2)
    text = " ".join(study_text(study(compared=(compared(noisy),), needed=needed, repeat_s=costs, spent_s=12.0)).split())
    assert "the noise is too large to decide" in text and "edge of the margin" not in text
    (one,) = study_document(study(compared=(compared(noisy),)))["comparisons"]
    assert one["undecided_because"] == "the interval is wide against the margin"
    assert one["needed_repeats"] == needed.repeats
    assert re.search(r"about 22 min more \(a budget of \d+min[^)]*\) may decide", text)
    assert why_undecided(comparison(ratio=1.02, half=0.03, stopped=Stopped.BUDGET)) is Undecided.AT_MARGIN


def test_the_study_states_it_in_text_and_json() -> None:
    """The answer and the document have the same budget, and the maximum number of repeats if that is too small."""
    undecided = comparison(ratio=1.03, half=0.03, n=20, stopped=Stopped.BUDGET)
    costs = {"0" * 16: 2.0, "1" * 16: 3.0}
    needed = needed_budget([undecided], costs, 100.0)
    assert needed is not None and needed.budget_s is not None
    made = study(compared=(compared(undecided),), needed=needed, repeat_s=costs, spent_s=100.0)
    result = replace(made, study=replace(made.study, repeat=RepeatPolicy(budget_s=100.0, maximum=20)))
    assert (
        f"(a budget of {budget_for(needed.budget_s)} and max: {math.ceil(1.1 * needed.repeats)}) may decide"
        in " ".join(study_text(result).split())
    )
    enough = replace(result, study=replace(result.study, repeat=RepeatPolicy(budget_s=1e4, maximum=20)))
    said = " ".join(study_text(enough).split())
    assert f"(max: {math.ceil(1.1 * needed.repeats)}) may decide" in said and "a budget of" not in said
    document = study_document(result)
    told = {"undecided": 1, "budget_s": needed.budget_s, "repeats": needed.repeats, "is_least": False}
    assert document["needed"] == told
    assert document["answer"]["budget_s"] == pytest.approx(needed.budget_s)
