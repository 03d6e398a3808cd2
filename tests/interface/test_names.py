"""The Python interface: its names and arguments, which users' scripts rely on, and what it costs to import."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import seatrial

DOC = Path(__file__).parents[2] / "docs" / "python.md"
SIGNATURES = {
    "discover": "(dumps=(), *, live=False, results=None)",
    "discover_fabric": "(dumps)",
    "run": "(*targets, set=None, results='seatrial-results', budget=None, repeats=None, again=False, keep=False, "
    "site=None, system=None, wait=None, wait_quiet=None, ignore_lock_of=(), shared=False, progress=None)",
    "versus": "(*commands, set=None, margin=None, equivalence=None, results='seatrial-results', budget=None, "
    "again=False, keep=False, site=None, system=None, wait=None, wait_quiet=None, ignore_lock_of=(), "
    "shared=False, progress=None)",
    "results": "(folder='seatrial-results')",
    "compare": "(*sides, along=None, margin=None, equivalence=None)",
    "profile": "(command, *, results='seatrial-results', io=0.2, wait=0, trace=0, paths=0, rows=4096, "
    "counters=False, openmp=False, stdout=None, wait_quiet=None, parquet=None, probes=())",
}
FIELDS = {
    "RunResult": {"experiments", "environments", "choices", "study", "trial", "problem"},
    "Results": {"trials", "studies", "profiles", "histories"},
    "Comparisons": {"compared", "screen"},
    "ProfileResult": {"profiles", "state", "reason", "folder", "exit_status", "trace", "circumstances"},
}
OTHERS = {
    *(
        "Machine",
        "Fabric",
        "Trial",
        "Finding",
        "ExperimentResult",
        "FigureResult",
        "Outcome",
        "StudyResult",
        "Compared",
    ),
    *("Comparison", "Profile"),
}
REST = {"State", "Verdict", "Listener", "SeatrialError", "UsageError", "__version__"}


def test_exactly_these_names_are_public() -> None:
    assert set(seatrial.__all__) == {*SIGNATURES, *FIELDS, *OTHERS, *REST}
    assert set(dir(seatrial)) >= set(seatrial.__all__)
    with pytest.raises(AttributeError, match="no attribute 'measure'"):
        _ = seatrial.measure


@pytest.mark.parametrize("name", SIGNATURES)
def test_functions_take_these_arguments(name: str) -> None:
    function = getattr(seatrial, name)
    bare = [p.replace(annotation=p.empty) for p in inspect.signature(function).parameters.values()]
    assert str(inspect.Signature(bare)) == SIGNATURES[name]
    assert inspect.getdoc(function) and f"| `{name}{SIGNATURES[name]}` |".replace("'", '"') in DOC.read_text()


@pytest.mark.parametrize("name", [*FIELDS, *sorted(OTHERS)])
def test_what_they_return_is_frozen(name: str) -> None:
    kind = getattr(seatrial, name)
    assert dataclasses.is_dataclass(kind) and kind.__struct_config__.frozen
    fields = {field.name for field in dataclasses.fields(kind)}
    assert fields == FIELDS.get(name, fields)


def test_the_functions_of_dataclasses_work_on_what_they_return() -> None:
    outcome = seatrial.Outcome(seatrial.State.FAILED, "it ended with 3")
    assert dataclasses.asdict(outcome) == {
        field.name: getattr(outcome, field.name) for field in dataclasses.fields(outcome)
    }
    assert dataclasses.replace(outcome, reason="it ended with 4").reason == "it ended with 4"
    with pytest.raises(AttributeError, match="immutable"):
        outcome.reason = "another"  # type: ignore[misc]


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(seatrial.__file__).read_text())
    (checked,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {
        (node.module.removeprefix("seatrial."), alias.name)
        for node in checked.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    assert seen == {(module, name) for name, module in seatrial._HOME.items()}


def test_the_import_loads_nothing() -> None:
    code = (
        "import sys; before = {*sys.modules}; import seatrial; print(sorted({*sys.modules} - before - {'__future__'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['seatrial', 'seatrial.version']"


def test_an_error_states_what_to_do() -> None:
    with pytest.raises(seatrial.UsageError) as error:
        seatrial.run("memory.strem")
    assert "memory.strem" in error.value.message and "memory.stream" in error.value.todo
    with pytest.raises(seatrial.SeatrialError, match="is not between 0 and 1"):
        seatrial.compare("a", "b", margin=2)


@pytest.mark.real
@pytest.mark.lab
@pytest.mark.parametrize("example", re.findall(r"```python\n(.*?)```", DOC.read_text(), re.DOTALL))
def test_the_examples_run(example: str, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout, done.stderr
