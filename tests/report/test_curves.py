"""Many points of a curve with one verdict are one sentence."""

from __future__ import annotations

import dataclasses

from report.study_samples import compared, comparison

from seatrial.model.study.comparison import Verdict
from seatrial.report.studies.design import spoken
from seatrial.report.text.compare import compare_text


def _curve(ratios, **changes):
    made = []
    for n, ratio in enumerate(ratios):
        point = comparison(ratio=ratio, half=0.01, parameters={"size_B": 1 << n}, **changes)
        sides = [
            dataclasses.replace(side, experiments=(name,))
            for side, name in ((point.baseline, "a"), (point.candidate, "b"))
        ]
        made.append(dataclasses.replace(point, baseline=sides[0], candidate=sides[1]))
    return compared(*made)


def test_a_curve_that_is_slower_at_every_size_is_one_sentence():
    made = _curve([0.6 - 0.01 * n for n in range(14)])
    assert {one.verdict for one in made.comparisons} == {Verdict.SLOWER}
    (said,) = spoken([made])
    sentence = said.sentence.replace("\N{NO-BREAK SPACE}", " ")
    assert "40 to 53 % lower [39, 53] than" in sentence and "at all 14 points (size 1 B to size 8 KiB)" in sentence
    text = compare_text([made])
    assert text.count("% lower [39, 53] than") == 1
    assert text.count("0.600") >= 1 and text.count("0.470") >= 1, "the table has every point"


def test_a_curve_with_several_verdicts_has_a_sentence_for_each():
    said = spoken([_curve([0.6] * 5 + [1.0] * 4 + [1.3] * 2)])
    assert [one.comparison.verdict for one in said].count(Verdict.SLOWER) == 1
    assert [one.comparison.verdict for one in said].count(Verdict.FASTER) == 2, "two points are named one by one"
    assert any("at 5 of 11 points" in one.sentence for one in said)
    assert any("the same within 2 %" in one.sentence and "at 4 of 11 points" in one.sentence for one in said)


def test_points_that_differ_in_more_than_one_parameter_are_named_one_by_one():
    made = _curve([0.6] * 4)
    two = [
        dataclasses.replace(one, parameters={**one.parameters, "ranks": n % 2})
        for n, one in enumerate(made.comparisons)
    ]
    assert len(spoken([dataclasses.replace(made, comparisons=tuple(two))])) == 4
