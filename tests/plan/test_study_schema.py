"""The published schema: generated from the models, strict, and consistent with the reader."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from packaging.requirements import Requirement

from seatrial.benchmarks import registry
from seatrial.errors import UsageError
from seatrial.plan.axis_values import can_be_studied
from seatrial.plan.files import read_yaml
from seatrial.plan.schemas import SCHEMAS, study_schema
from seatrial.plan.study_file import read_study
from seatrial.report.schemas import DOCUMENTS, schema

HEAD = "study: s\nquestion: q?\nbenchmarks: {memory.stream: {threads: all}}\n"
EXAMPLE = """\
study: stores                       # name; letters, digits, - and _
question: Do non-temporal stores pay on this machine?
benchmarks:                         # name -> parameters; a parameter may be a list when it is an axis
  memory.stream: {threads: all}
axes:                               # parameter or environment -> values
  nontemporal: [false, true]
exclude: []
compare: nontemporal                # or {along: nontemporal, baseline: false, margin: 2%}
scaling: null                       # {kind: strong, along: threads}
best_of: null                       # {over: [record_B], figure: read}
repeat: {precision: 1%, budget: 5min, max: 100}
probes: []                          # mpi, io, power
"""
SOUND = [
    EXAMPLE,
    HEAD,
    HEAD
    + "axes: {environment.OMP_WAIT_POLICY: [null, active, 1], environment.compiler: [g++], array_B: [64MiB, 4096]}\n",
    HEAD + "axes: {label: [a, 1], node: [auto, 0]}\nzip: [[label, node]]\ninclude: [{node: 1}]\nexclude: [{node: 0}]\n",
    HEAD + "axes: {node: [0, 1]}\ncompare: {along: node, margin: 0.1, figures: [triad]}\n",
    HEAD + "axes: {node: [0, 1]}\nbest_of: {over: [node], figure: triad}\nscaling: {kind: weak, along: node}\n",
    HEAD + "references: [s1.triad, s2.p2p-v100]\n",
    "study: s\nquestion: q?\nbenchmarks:\n  io.file: {record_B: [4KiB, 1MiB], folder: results}\n  cpu.peak:\n",
]
WRONG = [
    HEAD + "axis: {}\n",
    HEAD + "axes: {nod: [1]}\n",
    HEAD + "axes: {node: []}\n",
    HEAD + "axes: {node: [1, 1]}\n",
    HEAD + "axes: {node: 1}\n",
    HEAD + "axes: {nontemporal: [yes]}\n",
    HEAD + "compare: {margin: 1%}\n",
    HEAD + "compare: {along: threads, margin: 2}\n",
    HEAD + "scaling: {kind: fast, along: threads}\n",
    HEAD + "repeat: {max: 5}\n",
    HEAD + "repeat: {budget: 300}\n",
    HEAD + "repeat: {budget: 5MB}\n",
    HEAD + "probes: [gpu]\n",
    HEAD + "references: [s1.triad, s1.triad]\n",
    HEAD + "references: s1.triad\n",
    HEAD.replace("study: s", "study: a b"),
    HEAD.replace("memory.stream", "memory.steam"),
    HEAD.replace("threads", "thread"),
    HEAD.replace("all", "-1"),
    "question: q\nbenchmarks: {memory.stream: {}}\n",
]


@pytest.fixture(scope="module")
def published() -> dict[str, Any]:
    return study_schema()


@pytest.fixture(scope="module")
def validator(published: dict[str, Any]) -> jsonschema.Draft202012Validator:
    """The validator of the published schema, which has its own test."""
    return jsonschema.Draft202012Validator(published)


def test_the_schema_is_valid(published: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(published)


def test_a_build_environment_has_all_that_the_build_imports() -> None:
    """As pip makes one: `pip install .` failed there, since only some of the requirements were installed."""
    root = Path(__file__).parents[2]
    asked = "import hatchling.build as build, json; print(json.dumps(build.get_requires_for_build_wheel()))"
    said = subprocess.run([sys.executable, "-c", asked], cwd=root, check=True, capture_output=True, text=True).stdout
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert {Requirement(one) for one in json.loads(said)} >= {Requirement(one) for one in project["dependencies"]}


@pytest.mark.real
def test_a_wheel_has_the_schemas(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=Path(__file__).parents[2], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for kind, made in SCHEMAS.items():
            assert json.loads(archive.read(f"seatrial/plan/schemas/{kind}-1.json")) == made()
        for name in DOCUMENTS:
            assert json.loads(archive.read(f"seatrial/report/schemas/{name}.json")) == schema(name)


@pytest.mark.parametrize("text", SOUND)
def test_the_schema_accepts_what_the_reader_accepts(validator: jsonschema.Draft202012Validator, text: str) -> None:
    read_study(text.encode(), "s.yaml")
    validator.validate(read_yaml(text.encode(), "s.yaml").root.plain())


@pytest.mark.parametrize("text", WRONG)
def test_the_reader_refuses_what_the_schema_refuses(validator: jsonschema.Draft202012Validator, text: str) -> None:
    with pytest.raises(UsageError):
        read_study(text.encode(), "s.yaml")
    with pytest.raises(jsonschema.ValidationError):
        plain = read_yaml(text.encode(), "s.yaml").root.plain()
        validator.validate(plain)


def test_the_schema_has_names_and_descriptions_for_editors(published: dict[str, Any]) -> None:
    benchmarks = published["properties"]["benchmarks"]["properties"]
    assert list(benchmarks) == [name for name, benchmark in registry().items() if can_be_studied(benchmark)]
    stream = benchmarks["memory.stream"]
    assert stream["additionalProperties"] is False and stream["description"] == registry()["memory.stream"].question
    assert "CPU" in stream["properties"]["threads"]["description"]
    assert all(place.get("description") for place in published["properties"].values())


def test_every_mapping_is_closed(published: dict[str, Any]) -> None:
    assert published["additionalProperties"] is False
    assert all(model["additionalProperties"] is False for model in published["$defs"].values())


@pytest.mark.parametrize("kind", SCHEMAS)
def test_every_key_of_every_kind_has_a_description(kind: str) -> None:
    made = SCHEMAS[kind]()
    jsonschema.Draft202012Validator.check_schema(made)
    for mapping in (made, *made["$defs"].values()):
        assert mapping["description"] and mapping["additionalProperties"] is False
        assert all(place["description"] for place in mapping["properties"].values())


def test_a_study_of_a_declared_benchmark_may_have_any_axis(validator: jsonschema.Draft202012Validator) -> None:
    own = {"study": "s", "question": "q", "benchmarks": {"local.solver": {"size": 3}}, "axes": {"mesh": [1, 2]}}
    validator.validate(own)
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({**own, "benchmarks": {"memory.stream": {}}})


def test_each_example_names_its_schema_for_editors() -> None:
    examples = sorted(Path(__file__).parents[2].glob("examples/*.yaml"))
    heads = {path.read_text().splitlines()[0] for path in examples}
    assert examples and heads == {"# yaml-language-server: $schema=schemas/study-1.json"}
