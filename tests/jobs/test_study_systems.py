"""Studies with the axis `system`: measured in parts, each on its own system, and compared relative to one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from cli.in_process import seatrial_here
from published_schemas import check

from seatrial.analysis.study_results import asked_by, joined
from seatrial.errors import UsageError
from seatrial.jobs.queue import part_here, places_for
from seatrial.model.study.study import SYSTEM, KeptStudy, Study, StudyPoint, study_document, study_from_document
from seatrial.plan.combinations import combinations
from seatrial.plan.study_file import read_study

EXAMPLE = Path(__file__).parents[2] / "examples" / "processors.yaml"
SITE = """systems:
  tera: {batch: slurm, partitions: {gold: , platinum: }}
  peta: {batch: slurm, partitions: {all: }}
  old: {partitions: {a: }}
"""
STUDY = """study: processors
question: q
benchmarks: {cpu.peak: {precision: fp64, cores: one}, memory.stream: {}}
axes: {system: [tera, "tera:platinum"], threads: [1, 2]}
zip: [[system, threads]]
include: [{system: tera, benchmark: memory.stream, threads: 4}]
compare: {along: system, margin: 5%}
repeat: {budget: 20s}
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "site.yaml").write_text(SITE)
    return tmp_path / "site.yaml"


def study_of(text: str = STUDY) -> Study:
    return read_study(text.encode(), "s.yaml")


def test_a_part_has_the_values_of_its_system_and_its_share_of_the_budget() -> None:
    part = study_of().part_at("tera:platinum")
    assert [axis.values for axis in part.axes] == [("tera:platinum",), (2,)]
    assert part.repeat.budget_s == 10.0 and part.include == () and part.compare == study_of().compare
    assert [dict(given) for _, given in combinations(part)] == [
        {"system": "tera:platinum"},
        {"system": "tera:platinum", "threads": 2},
    ]
    assert len(list(combinations(study_of().part_at("tera")))) == 3, "with what it includes"
    without = replace(study_of(), axes=study_of().axes[1:], zips=())
    assert without.part_at("tera") is without


def test_parts_are_joined_the_baseline_first_whatever_their_order_and_budget() -> None:
    parts = {name: study_of().part_at(name) for name in study_of().systems}
    kept = {name: KeptStudy(part, f"machine of {name}", (StudyPoint(name, "b", {SYSTEM: name}),))
            for name, part in parts.items()}  # fmt: skip
    older = replace(kept["tera"], points=())
    longer = replace(kept["tera"], study=replace(parts["tera"], repeat=replace(parts["tera"].repeat, budget_s=99.0)))
    assert len({asked_by(one) for one in (*kept.values(), older, longer)}) == 1
    found = joined([older, kept["tera:platinum"], kept["tera"]])
    assert found.study == study_of() and [point.experiment for point in found.points] == ["tera", "tera:platinum"]
    assert joined([older]) is older and study_from_document(json.loads(json.dumps(study_document(found)))) == found
    other = replace(kept["tera"], study=replace(parts["tera"], compare=None))
    assert asked_by(other) != asked_by(kept["tera"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('"tera:platinum"', "a b"), "not the name of a system"),
        (("system: tera, benchmark", "benchmark"), "does not say on which system"),
        (("include: [{system: tera", 'include: [{system: "tera:gold"'), "does not say on which system"),
        (("zip: [[system, threads]]", "exclude: [{system: peta}]"), "not a value of this axis"),
    ],
)
def test_a_study_file_names_its_systems(change: tuple[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        study_of(STUDY.replace(*change))


def test_the_part_for_a_system_is_found_by_any_of_its_names(site: Path) -> None:
    assert part_here(study_of(), site, "tera:gold").systems == ("tera",)
    for system, said in ((None, "which of them this is"), ("peta", "is not for system peta")):
        with pytest.raises(UsageError, match=said):
            part_here(study_of(), site, system)


@pytest.mark.parametrize(
    ("systems", "found"),
    [
        ('[tera, "tera:platinum"]', ["tera:gold", "tera:platinum"]),
        ("[peta, tera]", ["peta:all", "tera:gold"]),
        ("[tera, old]", "old: no batch system is known"),
        ('[tera, "tera:gold"]', "two values of the axis system are tera:gold"),
        ("[tera, exa]", "unknown system 'exa'"),
        ("[old]", []),
    ],
)
def test_jobs_go_to_each_system(systems: str, found: list[str] | str, site: Path, tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(f"study: s\nquestion: q\nbenchmarks: {{cpu.peak: }}\naxes: {{system: {systems}}}\n")
    if isinstance(found, str):
        with pytest.raises(UsageError, match=found):
            places_for(site, None, [str(file)])
    else:
        assert [where.text for where in places_for(site, None, [str(file)])] == found
        assert [where.text for where in places_for(site, "peta", [str(file)])] == ["peta:all"]


def test_a_plan_shows_the_jobs_of_each_system(site: Path, tmp_path: Path) -> None:
    words = ("plan", str(EXAMPLE), "--site", str(site), "--results", str(tmp_path / "r"))
    done = seatrial_here(*words, "--format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    check(plan, "plan-1")
    assert [job["system"] for job in plan["jobs"]] == ["tera:gold", "tera:platinum"]
    assert ["--partition=gold" in job["script"] for job in plan["jobs"]] == [True, False]
    assert plan["count"] == 6 and [len(group) for group in plan["compare"]["groups"]] == [2, 2, 2]
    assert plan["budget_s"] == 240.0 and len({one["id"] for one in plan["experiments"]}) == 6
    text = " ".join(seatrial_here(*words, cwd=tmp_path).stdout.split())
    assert "on each system in its own job" in text and "tera:platinum" in text


@pytest.mark.real
@pytest.mark.lab
def test_the_parts_are_compared_when_each_was_measured_where_its_system_is(tmp_path: Path) -> None:
    """The example, on systems without a batch system, which are this machine."""
    (tmp_path / "site.yaml").write_text("systems: {tera: {partitions: {gold: , platinum: }}}\n")
    study = EXAMPLE.read_text().replace("cores: all", "cores: one").replace("  cpu.gemm: {precision: fp64}\n", "")
    file = tmp_path / "s.yaml"
    file.write_text(study.replace("  memory.stream: {threads: all}\n", "").replace("4min", "8s"))
    words = ("--site", str(tmp_path / "site.yaml"), "--results", str(tmp_path / "r"))
    refused = seatrial_here("run", str(file), *words, cwd=tmp_path)
    assert refused.returncode == 2 and "--system NAME" in refused.stderr
    for system in ("tera:platinum", "tera"):
        done = seatrial_here("run", str(file), *words, "--system", system, "--format", "json", cwd=tmp_path)
        document = json.loads(done.stdout)
        assert {one["parameters"]["system"] for one in document["experiments"]} <= {"tera:platinum", "tera:gold"}
    done = seatrial_here("compare", str(tmp_path / "r"), "--along", "system", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    check(found, "compare-1")
    sides = [(one["baseline"], one["candidate"]) for one in found["differences"] if one["intended"]]
    assert len(found["comparisons"]) == 1 and ("tera:gold", "tera:platinum") in sides
    page = seatrial_here("report", str(tmp_path / "r"), "-o", str(tmp_path / "p.html"), cwd=tmp_path)
    assert page.returncode == 0 and "tera:platinum" in (tmp_path / "p.html").read_text()
