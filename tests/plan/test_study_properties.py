"""Any valid study: its text reads back as the same study, and its points are those of a naive product."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import made_up_machine

from seatrial.errors import UsageError
from seatrial.model.study.study import Axis, Compare, RepeatPolicy, Study, StudyBenchmark
from seatrial.plan.points import plan_study
from seatrial.plan.study_file import read_study

MACHINE = made_up_machine(cores=4)

VALUES: dict[str, list[Any]] = {
    "threads": [1, 2, 3, 4],
    "nontemporal": [False, True],
    "huge_pages": [True, False],
    "array_B": [1 << 20, 3 << 20, 1 << 22],
    "precision": ["fp64", "fp32"],
    "cores": ["one", "all"],
    "label": ["a", "b", "yes", "~", "1", "a: b", "#", "é", "true", " x"],
    "environment.OMP_WAIT_POLICY": [None, "active", "passive", "null", "0x1"],
    "environment.compiler": ["g++", "clang++"],
    "environment.flags": ["", "-O2", "-O3 -march=native"],
}
OWN = {
    "memory.stream": ("threads", "nontemporal", "huge_pages", "array_B"),
    "cpu.peak": ("precision", "cores"),
}


def has(benchmark: str, axis: str) -> bool:
    return axis in OWN[benchmark] or axis == "label" or axis.startswith("environment.")


@st.composite
def studies(draw: st.DrawFn) -> Study:
    benchmarks = draw(st.lists(st.sampled_from(sorted(OWN)), min_size=1, max_size=2, unique=True))
    usable = [name for name in VALUES if any(has(benchmark, name) for benchmark in benchmarks)]
    names = draw(st.lists(st.sampled_from(usable), max_size=4, unique=True))
    axes = tuple(
        Axis(name, tuple(draw(st.lists(st.sampled_from(VALUES[name]), min_size=1, max_size=4, unique=True))))
        for name in names
    )
    fixed = {
        benchmark: {
            name: draw(st.sampled_from(VALUES[name]))
            for name in OWN[benchmark]
            if name not in names and draw(st.booleans())
        }
        for benchmark in benchmarks
    }
    by_length: dict[int, list[str]] = {}
    for axis in axes:
        by_length.setdefault(len(axis.values), []).append(axis.name)
    zips = tuple(tuple(group) for group in by_length.values() if len(group) > 1 and draw(st.booleans()))
    exclude = tuple(
        {axis.name: draw(st.sampled_from(axis.values)) for axis in draw(st.lists(st.sampled_from(axes), min_size=1))}
        for _ in range(draw(st.integers(0, 2)) if axes else 0)
    )
    comparable = [axis for axis in axes if len(axis.values) > 1]
    compare = None
    if comparable and draw(st.booleans()):
        axis = draw(st.sampled_from(comparable))
        compare = Compare(axis.name, draw(st.sampled_from(axis.values)), draw(st.sampled_from([0.02, 0.1])))
    repeat = RepeatPolicy(
        draw(st.sampled_from([0.01, 0.05])), float(draw(st.integers(1, 900))), draw(st.integers(6, 99))
    )
    question = draw(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=20))
    return Study(
        draw(st.from_regex(r"[A-Za-z_-][A-Za-z0-9_-]{0,20}", fullmatch=True)),
        question,
        tuple(StudyBenchmark(name, fixed[name]) for name in benchmarks),
        axes,
        zips,
        exclude,
        (),
        compare,
        repeat=repeat,
    )


def text_of(study: Study, shuffle: random.Random) -> str:
    """The study as YAML: keys in any order, each value in flow style (which JSON is) or block style, with comments."""
    document: dict[str, Any] = {
        "study": study.name,
        "question": study.question,
        "benchmarks": {entry.name: dict(entry.parameters) or None for entry in study.benchmarks},
        "axes": {axis.name: list(axis.values) for axis in study.axes},
        "zip": [list(names) for names in study.zips],
        "exclude": [dict(point) for point in study.exclude],
        "repeat": {
            "precision": f"{study.repeat.precision * 100:g}%",
            "budget": f"{study.repeat.budget_s:g}s",
            "max": study.repeat.maximum,
        },
    }
    if study.compare is not None:
        document["compare"] = {
            "along": study.compare.along,
            "baseline": study.compare.baseline,
            "margin": study.compare.margin,
        }
    sections = list(document.items())
    shuffle.shuffle(sections)
    return "".join(section(key, value, shuffle) for key, value in sections)


def section(key: str, value: Any, shuffle: random.Random) -> str:
    comment = shuffle.choice(["", "  # a comment: [with, marks]"])
    if isinstance(value, dict) and value and shuffle.random() < 0.5:
        lines = [f"  {name}: {json.dumps(item, ensure_ascii=False)}" for name, item in value.items()]
        return f"{key}:{comment}\n" + "\n".join(lines) + "\n"
    return f"{key}: {json.dumps(value, ensure_ascii=False)}{comment}\n"


def expected_points(study: Study) -> int:
    """The count of a naive product: every combination, without the rows that do not agree with a zip."""
    count = 0
    for entry in study.benchmarks:
        own = [axis for axis in study.axes if has(entry.name, axis.name)]
        for combination in itertools.product(*(range(len(axis.values)) for axis in own)):
            at = {axis.name: position for axis, position in zip(own, combination, strict=True)}
            values = {axis.name: axis.values[position] for axis, position in zip(own, combination, strict=True)}
            agrees = all(len({at[name] for name in names if name in at}) <= 1 for names in study.zips)
            left_out = any(
                all(name in values and values[name] == value for name, value in point.items())
                for point in study.exclude
            )
            count += agrees and not left_out
    return count


@settings(max_examples=200, deadline=None)
@given(studies(), st.integers(0, 2**32))
def test_a_study_reads_back_and_counts_as_a_naive_product(study: Study, seed: int) -> None:
    text = text_of(study, random.Random(seed))
    expected = expected_points(study)
    try:
        found = read_study(text.encode(), "s.yaml")
    except UsageError as error:
        assert expected == 0 and "no experiments are left" in str(error)
        return
    by_name = {axis.name: axis for axis in found.axes}
    assert by_name == {axis.name: axis for axis in study.axes}
    for field in ("name", "question", "benchmarks", "zips", "exclude", "compare", "repeat"):
        assert getattr(found, field) == getattr(study, field), field
    planned = plan_study(found, MACHINE)
    assert len(planned.points) + planned.merged == expected > 0


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode(errors="ignore"))))
def test_any_bytes_are_a_study_or_one_clear_message(data: bytes) -> None:
    try:
        read_study(data, "s.yaml")
    except UsageError as error:
        assert str(error).startswith("s.yaml: ")


def test_a_study_cut_or_changed_anywhere_is_a_study_or_one_clear_message() -> None:
    text = (
        b"study: s\nquestion: q\nbenchmarks:\n  memory.stream: {threads: [1, 2], node: auto}\n"
        b"axes:\n  nontemporal: [false, true]\n  environment.flags: ['-O2', \"\"]\nzip: [[threads, nontemporal]]\n"
        b"compare: {along: threads, margin: 2%}\nrepeat: {budget: 5min}\nexclude: [{threads: 2}]\n"
    )
    changes = (b"", b"&a ", b"*a", b"!x ", b"[", b"}", b": ", b"\n", b"\t", b"'", b"\x00", b"\xff", b"- ", b"~", b"9")
    generator = random.Random(7)
    for _ in range(1500):
        at = generator.randrange(len(text))
        changed = text[:at] + generator.choice(changes) + text[at + generator.randrange(12) :]
        try:
            read_study(changed, "s.yaml")
        except UsageError as error:
            assert str(error).startswith("s.yaml: ")
