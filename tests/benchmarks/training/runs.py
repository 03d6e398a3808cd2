"""What the tests of training share: an interpreter with the framework, and runs of its script, with faults if given."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from seatrial.benchmarks.training import framework
from seatrial.engine.judge import failed_check, impossible_figure
from seatrial.model.benchmark.benchmark import Benchmark, External
from seatrial.model.benchmark.program import ProgramRecord
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import readings
from seatrial.model.results.sample import Outcome

_DRIVER = Path(__file__).with_name("forked_runs.py")
_FOLDER = Path(__file__).resolve().parents[3] / ".training"


@cache
def interpreter(module: str) -> str:
    """A Python that has the framework: that of SEATRIAL_TRAINING_PYTHON, or of `make .training/ready`."""
    path = os.environ.get("SEATRIAL_TRAINING_PYTHON", str(_FOLDER / "bin" / "python"))
    question = f"import importlib.util as u, sys; sys.exit(u.find_spec({module!r}) is None)"
    found = Path(path).exists() and not subprocess.run([path, "-c", question], check=False).returncode
    if not found:
        pytest.skip(f"needs a Python with {module} (make .training/ready, or SEATRIAL_TRAINING_PYTHON)")
    return path


@dataclass
class Run:
    """One run: parameters, and texts of the script's files that are replaced by others."""

    given: Mapping[str, object] = field(default_factory=dict)
    faults: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    changed: Mapping[str, object] = field(default_factory=dict)
    """Settings that the script gets in place of those of the parameters."""


@dataclass
class Done:
    """Its resolved parameters, record and outcome."""

    benchmark: Benchmark
    machine: Machine
    params: Mapping[str, object]
    record: ProgramRecord

    @property
    def outcome(self) -> Outcome | None:
        """None if nothing is wrong."""
        record = self.record
        wrong = failed_check(self.benchmark, self.machine, self.params, record.samples, record.checks, record.notes)
        return wrong or impossible_figure(self.benchmark, self.machine, self.params, record.samples)

    def figures(self) -> dict[str, float]:
        """The values of all figures."""
        found = readings(self.benchmark, self.machine, self.params, self.record.samples)
        return {reading.figure.name: reading.value for reading in found}


def run_all(benchmark: Benchmark, runs: Sequence[Run], machine: Machine, module: str, folder: Path) -> list[Done]:
    """Run them one after another."""
    python, script = interpreter(module), f"run_{benchmark.name.partition('.')[2]}"
    asked, resolved = [], []
    for number, one in enumerate(runs):
        params = benchmark.prepare(machine, benchmark.point(one.given))
        resolved.append(params)
        own = folder / f"run-{number}"
        own.mkdir()
        assert isinstance(benchmark.program, External)
        content = json.loads(benchmark.program.inputs(params)[framework.SETTINGS])
        (own / framework.SETTINGS).write_text(json.dumps({**content, **one.changed}))
        scripts = framework.SCRIPTS
        if one.faults:
            scripts = Path(shutil.copytree(framework.SCRIPTS, own / "scripts", ignore=lambda *_: ["__pycache__"]))
        for name, (text, other) in one.faults.items():
            made = (scripts / name).read_text()
            assert text in made, f"{name} has no {text!r}: where is the fault to be planted now?"
            (scripts / name).write_text(made.replace(text, other, 1))
        cpus = ",".join(map(str, benchmark.placement(machine, params)))
        asked.append({"scripts": str(scripts), "folder": str(own), "processes": params["processes"], "cpus": cpus})
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    variables.update(JAX_COMPILATION_CACHE_DIR=str(folder / "compiled"), JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0")
    variables.pop("PYTHONPATH", None)
    done = subprocess.run(
        [python, str(_DRIVER), module, script], input=json.dumps(asked), capture_output=True, text=True, env=variables
    )
    assert done.returncode == 0, done.stderr
    statuses = json.loads(done.stdout.splitlines()[-1])
    assert not any(map(any, statuses)), (statuses, done.stderr[-4000:])
    return [
        Done(benchmark, machine, params, framework.read_run((folder / f"run-{n}" / framework.OUTPUT).read_bytes()))
        for n, params in enumerate(resolved)
    ]
