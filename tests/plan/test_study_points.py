"""From a study to its points: the product of the axes, exclude and include, and duplicates."""

from __future__ import annotations

import pytest
from made_up import made_up_machine

from seatrial.errors import UsageError
from seatrial.model.environment.choice import AS_IT_IS, EnvironmentChoice
from seatrial.model.results.sample import State
from seatrial.model.study.study import Study
from seatrial.plan.points import Point, SameSides, compared_points, plan_study, refuse_unfit, same_sides, study_points
from seatrial.plan.study_file import read_study

MACHINE = made_up_machine(cores=4)


def read(text: str) -> Study:
    return read_study(f"study: s\nquestion: q?\n{text}".encode(), "s.yaml")


def given(text: str) -> list[dict[str, object]]:
    return [dict(point.given) for point in study_points(read(text), MACHINE)]


def test_the_product_in_the_order_of_the_file_the_last_axis_fastest() -> None:
    assert given("benchmarks: {memory.stream: {}}\naxes: {threads: [1, 2], nontemporal: [true, false]}") == [
        {"threads": 1, "nontemporal": True},
        {"threads": 1, "nontemporal": False},
        {"threads": 2, "nontemporal": True},
        {"threads": 2, "nontemporal": False},
    ]


def test_parameters_are_resolved_and_complete_and_what_is_fixed_stays() -> None:
    (point,) = study_points(read("benchmarks: {memory.stream: {threads: all, array_B: 1MiB}}"), MACHINE)
    assert point.parameters["threads"] == 4 and point.parameters["array_B"] == 1 << 20
    assert point.cpus == (0, 1, 2, 3) and point.named and point.environment is AS_IT_IS and point.given == {}


def test_an_axis_varies_the_benchmarks_that_have_it() -> None:
    points = study_points(
        read("benchmarks: {memory.stream: {}, cpu.peak: {}, cpu.linebounce: {}}\naxes: {threads: [1, 2]}"), MACHINE
    )
    counts = [point.benchmark.name for point in points]
    assert counts.count("memory.stream") == 2 and counts.count("cpu.peak") == 1
    assert [dict(p.given) for p in points if p.benchmark.name == "cpu.peak"] == [{}]


def test_axes_of_a_zip_advance_together() -> None:
    text = (
        "benchmarks: {memory.stream: {}}\naxes: {threads: [1, 2], nontemporal: [true, false], array_B: [1MiB, 2MiB]}\n"
    )
    assert given(text + "zip: [[threads, array_B]]") == [
        {"threads": 1, "array_B": 1 << 20, "nontemporal": True},
        {"threads": 1, "array_B": 1 << 20, "nontemporal": False},
        {"threads": 2, "array_B": 2 << 20, "nontemporal": True},
        {"threads": 2, "array_B": 2 << 20, "nontemporal": False},
    ]


def test_partial_sets_are_excluded_and_included() -> None:
    text = "benchmarks: {memory.stream: {}}\naxes: {threads: [1, 2], nontemporal: [true, false]}\n"
    left = given(text + "exclude: [{threads: 1, nontemporal: true}, {nontemporal: false, threads: 2}]")
    assert left == [{"threads": 1, "nontemporal": False}, {"threads": 2, "nontemporal": True}]
    added = given(text + "include: [{threads: 3}, {nontemporal: true, array_B: 1MiB}, {threads: 1, nontemporal: true}]")
    assert added[4:] == [
        {"threads": 3, "nontemporal": False},
        {"threads": "all", "nontemporal": True, "array_B": 1 << 20},
    ]  # the last is there already


def test_a_partial_set_may_name_its_benchmark() -> None:
    text = "benchmarks: {memory.stream: {}, cpu.gemm: {}}\naxes: {threads: [1, 2]}\n"
    points = study_points(read(text + "exclude: [{benchmark: cpu.gemm, threads: 2}]"), MACHINE)
    assert [(p.benchmark.name, p.given["threads"]) for p in points] == [
        ("memory.stream", 1),
        ("memory.stream", 2),
        ("cpu.gemm", 1),
    ]


def test_duplicate_points_are_merged_and_counted() -> None:
    planned = plan_study(read("benchmarks: {memory.stream: {}}\naxes: {threads: [1, all, 4]}"), MACHINE)
    assert [point.parameters["threads"] for point in planned.points] == [1, 4] and planned.merged == 1
    assert planned.points[1].given == {"threads": "all"}


def test_a_label_changes_nothing_but_the_point() -> None:
    a, b = study_points(read("benchmarks: {memory.stream: {}}\naxes: {label: [a, b]}"), MACHINE)
    assert a.parameters["label"] == "a" and b.parameters["label"] == "b"
    assert {**a.parameters, "label": ""} == {**b.parameters, "label": ""} and a.cpus == b.cpus


def test_the_environment_that_a_study_selects() -> None:
    text = """benchmarks: {memory.stream: {}}
axes:
  environment.compiler: [clang++]
  environment.flags: ["-O2 -DX"]
  environment.OMP_WAIT_POLICY: [active, null]
  environment.GOMP_SPINCOUNT: [0]
"""
    active, unset = study_points(read(text), MACHINE)
    variables = (("GOMP_SPINCOUNT", "0"), ("OMP_WAIT_POLICY", "active"))
    assert active.environment == EnvironmentChoice("clang++", ("-O2", "-DX"), variables)
    assert unset.environment.variables == (("GOMP_SPINCOUNT", "0"), ("OMP_WAIT_POLICY", None))
    assert unset.given["environment.OMP_WAIT_POLICY"] is None


def test_a_compiler_varies_only_what_is_compiled() -> None:
    text = "benchmarks: {memory.stream: {}, io.file: {}}\naxes: {environment.compiler: [g++, clang++]}"
    points = study_points(read(text), MACHINE)
    assert [p.benchmark.name for p in points] == ["memory.stream", "memory.stream", "io.file"]


def test_a_point_that_cannot_run_here_has_a_reason() -> None:
    (one, many) = study_points(read("benchmarks: {memory.stream: {}}\naxes: {threads: [1, 64]}"), MACHINE)
    assert one.refusal is None
    assert many.refusal is not None and many.refusal.state is State.SKIPPED and "64 threads" in many.refusal.reason


def sides(text: str) -> list[list[object]]:
    study = read(text)
    along = study.compare.along if study.compare else ""
    return [[point.given[along] for point in group] for group in compared_points(study, study_points(study, MACHINE))]


def test_groups_that_are_compared_have_the_baseline_first() -> None:
    text = "benchmarks: {memory.stream: {}, cpu.peak: {}}\naxes: {threads: [1, 2, 3], nontemporal: [true, false]}\n"
    assert sides(text + "compare: {along: threads, baseline: 2}") == [[2, 1, 3], [2, 1, 3]]
    assert sides(text + "exclude: [{threads: 2, nontemporal: true}]\ncompare: {along: threads, baseline: 2}") == [
        [2, 1, 3]
    ]
    assert sides(text) == []


def test_axes_may_advance_with_the_compared_one() -> None:
    text = "benchmarks: {memory.stream: {}}\naxes: {threads: [1, 2], array_B: [1MiB, 2MiB]}\n"
    assert sides(text + "zip: [[threads, array_B]]\ncompare: threads") == [[1, 2]]


def test_two_thousand_points_resolve_each_setting_once() -> None:
    """The same parameters under many labels and environments are prepared once, which keeps plans fast."""
    labels = ", ".join(f"l{number}" for number in range(500))
    study = read(
        "benchmarks: {memory.stream: {}}\n"
        f"axes: {{nontemporal: [true, false], label: [{labels}], environment.OMP_WAIT_POLICY: [active, passive]}}"
    )
    points = study_points(study, MACHINE)
    assert len(points) == 2000
    assert len({id(point.cpus) for point in points}) == 2


def test_a_point_without_a_study_selects_no_environment() -> None:
    (point,) = study_points(read("benchmarks: {cpu.peak: {}}"), MACHINE)
    made = Point(point.benchmark, point.parameters, point.cpus, named=True)
    assert made.environment == AS_IT_IS and made.given == {}


def unfit(text: str) -> str:
    """Why a study that was read cannot give its answer on this machine; "" if it can."""
    study = read(text)
    try:
        refuse_unfit(study, study_points(study, MACHINE))
    except UsageError as error:
        return error.message
    return ""


@pytest.mark.parametrize(
    ("axis", "why"),
    [
        ("threads: [1, 2, all]", ""),
        ("threads: [4, all]", "every value of threads is 4 on this machine"),
        ("threads: [1, 2, 64]", ""),
        ("node: [auto, 1]", "node has the value auto, which is not a number above 0"),
        ("environment.OMP_NUM_THREADS: [1, 2, 4]", ""),
        ("environment.NP: ['1', '2.5', 1e2]", ""),
        ("environment.NP: ['1', '01']", "every value of environment.NP is 1 on this machine"),
    ],
)
def test_a_scaling_needs_numbers_on_this_machine(axis: str, why: str) -> None:
    name = axis.partition(":")[0]
    found = unfit(f"benchmarks: {{memory.stream: {{}}}}\naxes: {{{axis}}}\nscaling: {{kind: strong, along: {name}}}")
    assert why in found and bool(why) is bool(found)


def test_a_benchmark_without_the_axis_is_not_scaled() -> None:
    """It was measured, and in no result."""
    both = "benchmarks: {memory.stream: {}, memory.latency: {}}\naxes: {threads: [1, 2]}\n"
    assert unfit(both) == ""
    found = unfit(f"{both}scaling: {{kind: strong, along: threads}}")
    assert "threads is not a setting of memory.latency, so nothing scales there" in found


def test_an_experiment_is_not_compared_with_itself() -> None:
    study = read("benchmarks: {memory.stream: {}}\naxes: {threads: [1, 2, 3]}\ncompare: threads")
    points = study_points(study, MACHINE)
    apart = {id(point): str(number) for number, point in enumerate(points)}
    assert same_sides(study, points, apart) == ()
    merged = {**apart, id(points[1]): "0"}
    assert same_sides(study, points, merged) == (SameSides("memory.stream", (1, 2)),)
    with pytest.raises(UsageError, match=r"threads 1 and 2 and 3 are one experiment of memory.stream on this machine"):
        same_sides(study, points, dict.fromkeys(apart, "0"))
