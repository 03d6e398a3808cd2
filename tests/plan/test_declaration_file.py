"""Declaration files: their contents, and error messages with file, line and accepted values."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

from seatrial.benchmarks.declared import declared_benchmark, words_of
from seatrial.errors import UsageError
from seatrial.model.benchmark.declaration import DeclaredCheck, Pick, Which, filled_in
from seatrial.model.benchmark.parameter import ParameterKind
from seatrial.plan.declaration_file import declaration_in, is_declaration
from seatrial.plan.files import read_yaml
from seatrial.plan.schemas import SCHEMAS

WHOLE = r"""
benchmark:
  name: solver
  question: How fast is our solver?
  argv: [./solver, --size, "{size}", "{{literal}}", 3]
  ranks: 2
  parameters:
    size: {default: 100, help: grid points, minimum: 10}
    mode: {default: fast, values: [fast, slow]}
    verbose: false
  variables: {OMP_NUM_THREADS: "{size}"}
  build: [[make, solver]]
  files: [input.dat, meshes]
  expected: 10s
  figures:
    - {name: rate, unit: GFLOP/s, better: higher, pattern: 'rate: +(\S+) GFLOP/s', which: last}
    - {name: step, unit: s, better: lower, json: 'timing[0].step', file: result.json}
  checks:
    - {name: residual, pattern: 'residual = (\S+)', below: 1e-8}
    - {name: steps, pattern: 'steps = (\S+)', equals: 10}
    - {name: finished, must_match: 'all done'}
    - {name: clean, must_not_match: 'WARNING', file: stderr}
"""

HEAD = "benchmark:\n  name: a\n  question: q\n  argv: [./a, '{n}']\n  parameters: {n: 1}\n"
FIGURE = "  figures:\n    - {name: f, unit: s, better: lower, "
CHECK = "  checks:\n    - {name: c, "


def test_a_whole_file() -> None:
    found = declaration_in(read_yaml(WHOLE.encode(), "solver.yaml"))
    assert found.full_name == "local.solver" and found.ranks and found.expected_s == 10.0
    assert {p.name: (p.kind, p.default) for p in found.parameters} == {
        "size": (ParameterKind.INTEGER, 100),
        "mode": (ParameterKind.CHOICE, "fast"),
        "verbose": (ParameterKind.FLAG, False),
        "ranks": (ParameterKind.INTEGER, 2),
    }
    rate, step = found.figures
    assert (rate.unit, rate.is_higher_better, rate.scale, rate.pick.which) == ("flop/s", True, 1e9, Which.LAST)
    assert step.pick == Pick(json="timing[0].step", file="result.json")
    assert found.checks[:2] == (
        DeclaredCheck("residual", Pick(r"residual = (\S+)"), high=1e-8),
        DeclaredCheck("steps", Pick(r"steps = (\S+)"), 10.0, 10.0),
    )
    assert [check.must_match for check in found.checks] == [None, None, True, False]
    assert words_of(found, {"size": 7}) == ["./solver", "--size", "7", "{literal}", "3"]
    benchmark = declared_benchmark(found, Path("/tmp"))
    assert [figure.name for figure in benchmark.figures] == ["rate", "step", "wall"]


def test_the_identity_changes_with_what_is_read_but_not_with_the_question() -> None:
    def identity(old: str = "", new: str = "") -> dict[str, object]:
        return declaration_in(read_yaml(WHOLE.replace(old, new).encode(), "f")).identity()

    assert identity() == identity("How fast", "How quick")
    for old, new in (
        (r"rate: +", r"rate: *"),
        ("unit: GFLOP/s", "unit: MFLOP/s"),
        ("below: 1e-8", "below: 1e-9"),
        ("[./solver", "[./s"),
    ):
        assert identity(old, new) != identity()


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("benchmark: {}\n", 1, ["name is missing"]),
        (HEAD + "  figurs: []\n", 6, ["did you mean figures?"]),
        (HEAD.replace("name: a", "name: a b"), 2, ["name", "letters, digits"]),
        (HEAD.replace("{n}", "{m}"), 4, ["unknown parameter 'm'", "known: n"]),
        (HEAD.replace("'{n}'", "'{n'"), 4, ["never closed"]),
        (HEAD.replace("n: 1", "cpus: 1"), 5, ["cpus has its own meaning"]),
        (HEAD.replace("n: 1", "n: 1.5"), 5, ["an integer"]),
        (HEAD.replace("n: 1", "n: {default: c, values: [a, b]}"), 5, ["c is not among its values"]),
        (HEAD.replace("n: 1", "n: {default: 1, minimum: x}"), 5, ["n.minimum: it cannot be 'x'", "least accepted"]),
        (HEAD.replace("n: 1", "n: 1, ranks: 2"), 5, ["write `ranks:` beside"]),
        (HEAD + FIGURE + "pattern: 'a'}\n", 7, ["no groups; one is needed"]),
        (HEAD + FIGURE + "pattern: '(a)(b)'}\n", 7, ["2 groups"]),
        (HEAD + FIGURE + "pattern: '(a'}\n", 7, ["invalid regular expression"]),
        (HEAD + FIGURE + "pattern: '(a)', json: b}\n", 7, ["both pattern and json"]),
        (HEAD + FIGURE + "json: 'a..b'}\n", 7, ["results[0].rate"]),
        (HEAD + FIGURE + "json: a, file: ../b}\n", 7, ["a relative path without .."]),
        (HEAD + FIGURE.replace("unit: s", "unit: MB/sec") + "json: a}\n", 7, ["did you mean MB/s"]),
        (HEAD + FIGURE.replace("unit: s", "unit: a b") + "json: a}\n", 7, ["one of s, B", "MLUP/s"]),
        (HEAD + FIGURE.replace("lower", "less") + "json: a}\n", 7, ["higher or lower"]),
        (HEAD + FIGURE + "json: a, scale: 0}\n", 7, ["a number above 0"]),
        (HEAD + CHECK + "pattern: '(a)'}\n", 7, ["it has no bound"]),
        (HEAD + CHECK + "pattern: '(a)', above: 2, below: 1}\n", 7, ["no value is at least 2 and at most 1"]),
        (HEAD + CHECK + "must_match: a, below: 1}\n", 7, ["two kinds of checks"]),
        (HEAD + "  files: [/etc/passwd]\n", 6, ["relative path"]),
        (HEAD + "  expected: 10\n", 6, ["a time with a unit"]),
        (HEAD + "  ranks: 2\n  exit_status: 3\n", 7, ["does not apply to MPI programs"]),
    ],
)
def test_errors_name_the_line_and_what_is_accepted(text: str, line: int, words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        declaration_in(read_yaml(text.encode(), "a.yaml"))
    said = str(caught.value)
    assert f"a.yaml: line {line}: " in said
    assert all(word in said for word in words), said


def test_the_schema_accepts_the_whole_file() -> None:
    schema = SCHEMAS["benchmark"]()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(read_yaml(WHOLE.encode(), "f").root.plain(), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"benchmark": {"name": "a"}}, schema)


def test_a_study_is_no_declaration() -> None:
    assert not is_declaration(read_yaml(b"study: s\nbenchmarks: {}\n", "f"))
    assert is_declaration(read_yaml(b"benchmark: {}\n", "f"))


def test_braces() -> None:
    assert filled_in("{{{n}}}-{b}", {"n": 3, "b": True}) == "{3}-true"
    with pytest.raises(ValueError, match="closing brace"):
        filled_in("a}", {})
