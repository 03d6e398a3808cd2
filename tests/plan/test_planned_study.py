"""Plans of made-up experiments: the time, what is compared, the JSON and the text."""

from __future__ import annotations

from typing import Any

import pytest
from made_up import made_up_machine
from published_schemas import check
from report.terminals import COLOURED

from seatrial.model.results.record import Experiment
from seatrial.plan.planned import PlannedExperiment, PlannedStudy
from seatrial.plan.points import plan_study
from seatrial.plan.study_file import read_study
from seatrial.report.documents.plan import plan_document
from seatrial.report.text.plan import plan_text
from seatrial.stats import interval, sequential

MACHINE = made_up_machine(cores=4)
STREAM = "benchmarks: {memory.stream: {}}\naxes: {nontemporal: [false, true], threads: [1, 2]}\n"


def plan_of(text: str) -> PlannedStudy:
    study = read_study(f"study: s\nquestion: Which?\n{text}".encode(), "s.yaml")
    found = plan_study(study, MACHINE)
    experiments = []
    for point in found.points:
        experiment = Experiment(point.benchmark.name, point.parameters, "e" * 16, "p", "m")
        experiments.append(PlannedExperiment(point, experiment, experiment.id, point.refusal))
    return PlannedStudy(study, found.points, tuple(experiments), len(found.points) + found.merged)


def document(text: str) -> dict[str, Any]:
    answer = plan_document(plan_of(text))
    check(answer, "plan-1")
    return answer


def test_the_document_counts_and_adds_up() -> None:
    plan, answer = plan_of(STREAM), document(STREAM)
    assert answer["count"] == len(answer["experiments"]) == 4 and answer["combinations"] == 4
    each = [point.benchmark.estimate_s(point.parameters) for point in plan.points]
    assert [e["estimate_s"] for e in answer["experiments"]] == pytest.approx([interval.LOOKS[0] * s for s in each])
    assert answer["estimate_s"] == pytest.approx(sum(e["estimate_s"] for e in answer["experiments"]))
    assert answer["least_s"] == pytest.approx(6 * sum(each)) and answer["budget_s"] == 300.0
    assert answer["experiments"][0]["given"] == {"nontemporal": False, "threads": 1}
    assert answer["compare"] is None


def test_the_estimate_is_at_most_the_budget_and_the_plan_says_that_it_is_short() -> None:
    short = STREAM + "repeat: {budget: 1s}\n"
    assert document(short)["estimate_s"] == 1.0
    text = plan_text(plan_of(short))
    assert "too short" in text and "no verdict" in " ".join(text.split()) and "fewer values" in text
    assert "too short" not in plan_text(plan_of(STREAM))


def test_a_small_maximum_bounds_the_repeats_but_not_below_an_interval() -> None:
    assert document(STREAM + "repeat: {max: 7}\n")["repeats"] == 7
    assert document(STREAM + "repeat: {max: 6}\n")["repeats"] == 6
    assert document(STREAM + "compare: threads\n")["repeats"] == max(6, sequential.LOOKS[0])


def test_what_cannot_run_costs_nothing_and_says_why() -> None:
    answer = document("benchmarks: {memory.stream: {}}\naxes: {threads: [1, 64]}\n")
    one, many = answer["experiments"]
    assert one["state"] == "ready" and one["reason"] is None and one["estimate_s"] > 0
    assert many["state"] == "skipped" and "64 threads" in many["reason"] and many["estimate_s"] == 0
    text = plan_text(plan_of("benchmarks: {memory.stream: {}}\naxes: {threads: [1, 64]}\n"))
    assert "1 can run here" in text and "skipped: 1 experiment of memory.stream: 64 threads" in text


def test_the_groups_are_the_sides_of_the_comparisons() -> None:
    answer = document(STREAM + "compare: {along: nontemporal, baseline: true, figures: [triad]}\n")
    given = {e["id"]: (e["given"]["nontemporal"], e["given"]["threads"]) for e in answer["experiments"]}
    groups = [[given[key] for key in group] for group in answer["compare"]["groups"]]
    assert groups == [[(True, 1), (False, 1)], [(True, 2), (False, 2)]]
    text = " ".join(plan_text(plan_of(STREAM + "compare: {along: nontemporal, baseline: true}\n")).split())
    assert "false against true along nontemporal, margin 2.0 %: 8 comparisons in 2 groups" in text
    assert "figures of memory.stream: copy, scale, add, triad" in text


def test_figures_that_the_sides_do_not_have_are_not_promised() -> None:
    one = "benchmarks: {gpu.transfer: {devices: 1}}\naxes: {host: [pageable, pinned]}\ncompare: host\n"
    text = " ".join(plan_text(plan_of(one)).split())
    assert "3 comparisons in 1 group" in text and "figures of gpu.transfer: h2d, d2h, both" in text
    assert "h2d_together" not in text
    assert "h2d_together" in plan_text(plan_of(one.replace("devices: 1", "devices: 2")))


def test_sides_that_cannot_run_here_are_not_promised() -> None:
    text = "benchmarks: {memory.stream: {}}\naxes: {threads: [64, 1, 2]}\ncompare: threads\n"
    assert document(text)["compare"]["groups"] == []
    assert "no comparison: fewer than two values of threads can run here" in plan_text(plan_of(text))
    assert document(text.replace("[64, 1, 2]", "[1, 64, 2]"))["compare"]["groups"] != []


def test_merged_points_and_long_axes_are_told_in_short() -> None:
    values = ", ".join(f"{n}MiB" for n in range(1, 100))
    text = plan_text(
        plan_of(f"benchmarks: {{memory.stream: {{}}}}\naxes: {{array_B: [{values}], threads: [4, all]}}\n")
    )
    assert "198 combinations, of which 99 are duplicates here" in text and "99 experiments" in text
    assert "..., ... 99MiB".replace("..., ", "") in text and "50MiB" not in text
    assert all(len(line) <= 120 for line in text.splitlines())


def test_answers_other_than_comparisons_are_named() -> None:
    text = plan_text(
        plan_of(STREAM + "scaling: {kind: strong, along: threads}\nbest_of: {over: [nontemporal], figure: add}\n")
    )
    assert "strong scaling along threads." in text and "the best add over nontemporal." in text


def test_the_file_cannot_steer_the_terminal() -> None:
    study = read_study(b'study: s\nquestion: "a\\e[31mb"\nbenchmarks: {cpu.peak: {}}\n', "s.yaml")
    plan = plan_of("benchmarks: {cpu.peak: {}}\n")
    assert "\x1b" not in plan_text(PlannedStudy(study, plan.points, plan.experiments, 1))
    assert "\x1b[1m" in plan_text(plan, style=COLOURED)


def test_a_scaling_that_too_few_numbers_can_run_for_is_not_promised() -> None:
    scaled = "benchmarks: {memory.stream: {}}\nscaling: {kind: strong, along: threads}\n"
    text = " ".join(plan_text(plan_of(f"{scaled}axes: {{threads: [1, 64]}}\n")).split())
    assert "no strong scaling along threads: 1 of its 2 values can run here, and it needs two." in text
    assert "strong scaling along threads." in plan_text(plan_of(f"{scaled}axes: {{threads: [1, 2]}}\n"))
