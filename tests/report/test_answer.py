"""The answer of a study: one sentence that is the same everywhere, counts what was asked and claims no more than the
intervals do."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest
from report.study_samples import best_of, compared, comparison, many, scaling, several_candidates, study, whole_study
from report.test_page import Outline

from seatrial.analysis.answer import answer_of_comparisons, answer_of_study
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.study.comparison import Comparison, Design, Stopped
from seatrial.model.study.result import Compared, StudyResult
from seatrial.report.blocks import Detail
from seatrial.report.documents.compare import compare_document, study_document
from seatrial.report.pages.page import compare_page, page
from seatrial.report.studies.answer_words import answer_sentence
from seatrial.report.text.compare import compare_text, study_text

SIDES = ("environment.mpi openmpi", "environment.mpi mpich")


def _point(benchmark: str, size: int, ratio: float, **changes) -> Comparison:
    is_time = benchmark == "mpi.latency"
    figure = "one_way" if is_time else "bandwidth"
    better, unit = (Better.LOWER, "s") if is_time else (Better.HIGHER, "B/s")
    made = comparison(
        figure, ratio, benchmark=benchmark, better=better, unit=unit, names=SIDES, parameters={"size_B": size},
        **{"half": 0.01, **changes},
    )  # fmt: skip
    sides = [
        dataclasses.replace(side, experiments=(f"{benchmark} {n}",))
        for n, side in enumerate((made.baseline, made.candidate))
    ]
    return dataclasses.replace(made, baseline=sides[0], candidate=sides[1])


def _libraries() -> Compared:
    """MPICH's latency is 25 to 54 % higher up to 8 KiB, then undecided; its bandwidth 8 % higher from 1 MiB on. The
    sizes are in no order."""
    latency = [_point("mpi.latency", 1 << n, 1.25 + 0.29 * n / 13) for n in range(14)]
    latency += [_point("mpi.latency", 1 << n, 1.03, half=0.03) for n in (14, 15)]
    bandwidth = [_point("mpi.bandwidth", 1 << n, 1.0, half=0.005) for n in (16, 18)]
    bandwidth += [_point("mpi.bandwidth", 1 << n, 1.08) for n in (20, 22)]
    made = compared(*latency[::-1], *bandwidth[::-1], names=SIDES)
    return dataclasses.replace(made, along="environment.mpi")


def _said(one: Compared, **seconds: float) -> str:
    return answer_sentence(answer_of_comparisons([one], seconds)).replace("\N{NO-BREAK SPACE}", " ")


def test_two_libraries_are_one_sentence_with_winners_sizes_and_time():
    costs = {f"{name} {n}": 2.0 for name in ("mpi.latency", "mpi.bandwidth") for n in (0, 1)}
    said = _said(_libraries(), **costs)
    assert said.startswith("openmpi: lower latency one_way up to 8 KiB (mpich 25 to 54 % higher); ")
    assert "mpich: higher bandwidth from 1 MiB by 8.0 %" in said
    assert "the same within 2 %: bandwidth up to 256 KiB" in said
    assert "latency one_way at 16 KiB and 32 KiB: mpich +3.0 % against openmpi, undecided" in said
    answer = answer_of_comparisons([_libraries()], costs)
    assert (answer.asked, answer.undecided) == (20, 2) and answer.more_s is not None and "more may decide" in said
    assert answer.more_s % 4.0 == 0.0, "points of a curve share their blocks: only the one that needs most counts"


def test_sizes_are_in_order_in_the_table_and_a_row_has_one_unit():
    rows = [line for line in compare_text([_libraries()]).splitlines() if line.startswith("  mpi.latency · one_way")]
    assert [int(row.split("size")[1].split()[0]) for row in rows[:10]] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
    made = comparison("load", 1.05, better=Better.LOWER, unit="s", median=998e-9)
    text = compare_text([compared(made)])
    assert "0.9980 µs" in text and "1.048 µs" in text and " ns" not in text


@pytest.mark.parametrize("ratio", [7.0, 1 / 7.0])
def test_a_large_factor_with_few_repeats_is_undecided_and_never_a_tie(ratio):
    made = comparison("wall", ratio, has_interval=False, n=4, family=1, interleaved=False)
    few = dataclasses.replace(made.candidate, values=made.candidate.values[:3])
    one = compared(dataclasses.replace(made, candidate=few))
    higher = "higher" if ratio > 1 else "lower"
    said = f"wall: nontemporal true {higher} by a factor of 7.0 against nontemporal false, undecided: 6 repeats needed"
    assert _said(one) == f"{said}, 4 and 3 made"
    for text in (compare_text([one]), Outline(compare_page([one])).words):
        assert "the same within" not in text and not re.search(r"\bti(e|ed)\b", text)


def test_points_of_a_curve_need_no_more_repeats_than_one():
    """The hull of a curve's intervals holds for all its points, so their number does not matter."""
    few = {"has_interval": False, "n": 3, "stopped": Stopped.BUDGET}
    points = [_point("mpi.latency", 1 << n, 7.0, family=14, **few) for n in range(14)]
    (alone,) = answer_of_comparisons([compared(_point("mpi.latency", 1, 7.0, family=1, **few))]).stretches
    (curve,) = answer_of_comparisons([compared(*points, names=SIDES)]).stretches
    assert alone.needed == curve.needed and curve.points == 14
    assert f"undecided: {alone.needed} repeats needed, 3 made" in _said(compared(*points, names=SIDES))


def test_an_efficiency_without_an_interval_is_no_headline():
    made = scaling(numbers=(1, 2))
    base, second = made.points
    bare = dataclasses.replace(second, efficiency=1.008, efficiency_ci95=None, n_repeats=4)
    result = study(scaling=(dataclasses.replace(made, points=(base, bare), efficient_to=2),))
    said = answer_sentence(answer_of_study(result))
    assert said.startswith("wall: undecided at 2 threads: 6 repeats needed, 4 made")
    assert "efficient" not in said and "100.8" not in said
    assert "101 %, no interval" in study_text(result), "the table shows it for what it is"


def test_what_only_accompanies_another_figure_is_not_in_the_answer_of_a_scaling() -> None:
    """`run` of a command with 1 and 2 threads answered that its context switches are "18 % efficient"."""
    wall = scaling(name="wall")
    switches = dataclasses.replace(scaling(name="voluntary_switches", serial=0.9), is_secondary=True)
    result = study(compared=(), scaling=(wall, switches), best_of=())
    said = answer_sentence(answer_of_study(result))
    assert said == answer_sentence(answer_of_study(study(compared=(), scaling=(wall,), best_of=())))
    assert "voluntary_switches" not in study_text(result, detail=Detail.USUAL)
    alone = study(compared=(), scaling=(switches,), best_of=())
    assert "efficien" in answer_sentence(answer_of_study(alone))


def test_figures_that_restate_each_other_are_one():
    time = comparison("step", 1.25, better=Better.LOWER, unit="s")
    rate = comparison("steps", 0.8, unit="op/s")
    other = comparison("memory", 0.5, better=Better.LOWER, unit="B")
    answer = answer_of_comparisons([compared(time, rate, other)])
    assert [one.figures for one in answer.stretches] == [("step",), ("memory",)]
    assert answer.stretches[0].restated == ("steps",) and answer.asked == 2


def test_ratio_and_percent_agree_for_times_and_rates():
    for better, unit in ((Better.LOWER, "s"), (Better.HIGHER, "B/s")):
        text = compare_text([compared(comparison(ratio=1.25, better=better, unit=unit))])
        assert "25 % higher" in text and "1.250" in text
        text = compare_text([compared(comparison(ratio=0.8, better=better, unit=unit))])
        assert "20 % lower" in text and "0.800" in text


@pytest.mark.parametrize("result", [whole_study(), several_candidates(), study(best_of=(best_of(clear=False),))])
def test_terminal_page_and_document_say_the_same(result: StudyResult):
    said = study_document(result)["answer"]["said"]
    assert json.loads(json.dumps(study_document(result), allow_nan=False))["answer"]["said"] == said
    words = " ".join(study_text(result, detail=Detail.BRIEF).split("answer: ")[1].split())
    plain = " ".join(said.replace("\N{NO-BREAK SPACE}", " ").split())
    assert words == plain
    top = " ".join(Outline(page([], None, [result])).words.split())
    assert plain in top[: top.index("Is it a fair" if result.compared else "All contenders")]
    if result.compared:
        alone = compare_document(result.compared)["answer"]["said"]
        assert alone == f"{answer_sentence(answer_of_comparisons(result.compared))}."


def test_a_study_that_compares_nothing_answers_with_its_range():
    said = answer_sentence(answer_of_study(study()))
    assert "from" in said and "medians only" in said
    failed = tuple(one for one in study().results if not one.outcome.is_ok)
    assert answer_sentence(answer_of_study(study(results=failed))) == "No answer: of 1 experiment, 1 failed"


def test_sides_that_were_measured_apart_are_told_what_to_do():
    made = comparison(interleaved=False, has_interval=False)
    apart = dataclasses.replace(made, design=Design(0, (), Stopped.NOT_PLANNED, 0.05, sessions=1))
    assert "undecided: measured apart; a verdict needs both side by side in one study, or 6 sessions each" in _said(
        compared(apart)
    )


def test_of_many_comparisons_the_answer_is_still_one_line():
    answer = answer_of_comparisons([many(6000)])
    assert answer.asked == 6000 and len(answer_sentence(answer)) < 1000


def test_where_much_is_undecided_and_nothing_is_decided_the_answer_has_the_estimates():
    """Wide intervals, an estimate at the margin and too few repeats are stretches of their own, on two candidates."""
    ratios = {"copy": (1.03, 0.03), "scale": (1.02, 0.03), "add": (0.97, 0.04)}
    first = [comparison(name, ratio, half=half, names=SIDES) for name, (ratio, half) in ratios.items()]
    second = [comparison(name, 2 - ratio, half=half, names=(SIDES[0], "x")) for name, (ratio, half) in ratios.items()]
    sides = [compared(*first, names=SIDES), compared(*second, names=(SIDES[0], "x"))]
    answer = answer_of_comparisons([dataclasses.replace(one, along="environment.mpi") for one in sides])
    assert answer.undecided == 6 and len(answer.stretches) > 3
    said = answer_sentence(answer).replace("\N{NO-BREAK SPACE}", " ").replace("\N{MINUS SIGN}", "-")
    assert said == "mpich -3.0 to +3.0 % against openmpi; x -3.0 to +3.0 % against openmpi; 6 of 6 undecided"
