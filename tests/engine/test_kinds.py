"""A kind of program is one file: other packages call its interface, and never check which kind it is."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from engine.harness import run_one

import seatrial
from seatrial.benchmarks import registry
from seatrial.engine import prepare as preparing
from seatrial.engine.kinds import KINDS
from seatrial.engine.kinds.kind import ProgramKind
from seatrial.engine.listener import Listener
from seatrial.engine.ready import Ready, Runnable
from seatrial.environments.build import Environment
from seatrial.environments.chosen import Environments
from seatrial.errors import BuildError, NoCompilerError
from seatrial.model.benchmark.benchmark import Benchmark, Better, DeclaredCommand, DeclaredRanks, Figure, elapsed
from seatrial.model.benchmark.program import Hello, Program, ProgramRecord
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import content_key
from seatrial.model.results.sample import Sample
from seatrial.plan.points import Point
from seatrial.store.folder import ResultsFolder

SOURCES = Path(seatrial.__file__).parent
NO_COMPILER = NoCompilerError("no C++ compiler was found")


class Script(Program):
    """A shell script that prints how many seconds something took."""

    text: str


@dataclass(frozen=True, slots=True)
class ScriptProgram(Runnable):
    writes_record: ClassVar[bool] = False
    declared: Script

    @property
    def path(self) -> Path:
        return Path("/bin/sh")

    def arguments(self, ready: Ready, directory: Path) -> list[str]:
        return ["-c", self.declared.text]

    def output(self, directory: Path) -> Path:
        return directory / "stdout"

    def read(self, data: bytes, ready: Ready, directory: Path) -> ProgramRecord:
        return ProgramRecord(Hello("sh", "", "n1"), (Sample("took", 0, float(data), {}),), ended=True)


class ScriptKind(ProgramKind[Script]):
    @staticmethod
    def missing(program: Script, environment: Environment | BuildError, *, has_ranks: bool) -> str | None:
        return None

    def identify(self, point: Point, program: Script) -> Ready:
        key = content_key({"script": program.text})
        return Ready(point, self.experiment(point, key, key), ScriptProgram(program))


def benchmark(text: str) -> Benchmark:
    took = Figure("took", "s", Better.LOWER, elapsed, "one run")
    return Benchmark("test.script", "?", Script(text), (), (took,), (), placement=lambda machine, params: (0,))


def prepared(text: str) -> Ready:
    point = Point(benchmark(text), {}, (0,), named=True)
    (item,) = preparing.prepare([point], Environments.always(NO_COMPILER), "machine", Listener())
    assert isinstance(item, Ready)
    return item


@pytest.mark.real
def test_a_new_kind_is_a_declaration_and_a_file(
    live_machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparing, "KINDS", {**KINDS, Script: ScriptKind})
    assert preparing.lacking(benchmark("echo 2"), NO_COMPILER) is None
    folder = ResultsFolder.create(tmp_path / "results")
    record = run_one(prepared("echo 2"), live_machine, folder)
    assert record.outcome.is_ok, record.outcome
    assert [sample.elapsed_s for sample in record.samples] == [2.0] and record.seen["command"] == [
        "/bin/sh",
        "-c",
        "echo 2",
    ]
    wrong = run_one(prepared("echo 0"), live_machine, folder)
    assert wrong.outcome.reason == "samples: sample 0 of took took 0 s" and wrong.experiment != record.experiment
    assert run_one(prepared("echo 1; exit 3"), live_machine, folder).outcome.reason.startswith(
        "run: the program ended with"
    )


def test_every_declaration_has_a_kind() -> None:
    of_users = {DeclaredCommand, DeclaredRanks}  # declared in files
    assert {type(benchmark.program) for benchmark in registry().values()} | of_users == set(KINDS)


def test_no_other_package_checks_the_kind_of_a_program() -> None:
    names = {declared.__name__ for declared in KINDS}
    askers = []
    for path in SOURCES.rglob("*.py"):
        text = path.read_text()
        if path.parent == SOURCES / "engine" / "kinds" or not any(name in text for name in names):
            continue
        for node in ast.walk(ast.parse(text)):
            is_test = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance"
            if is_test and names & {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}:
                askers.append(str(path.relative_to(SOURCES)))
    assert askers == []
