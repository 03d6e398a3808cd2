"""apps.nwchem: real runs on water made here, and a wrong molecule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from engine.harness import make_ready, run_one

from seatrial.applications.nwchem import BENCHMARK as NWCHEM
from seatrial.applications.nwchem import read_energy
from seatrial.errors import NoCompilerError, ProtocolError
from seatrial.model.benchmark.benchmark import Benchmark, External
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord
from seatrial.model.results.sample import State
from seatrial.plan.points import plan_points
from seatrial.store.folder import ResultsFolder

HOW = "apt install nwchem nwchem-openmpi"


def test_the_last_energy_counts() -> None:
    text = b"  Total SCF energy =    -76.1\n  Total SCF energy =    -76.010529988908\n"
    assert read_energy(text).checks == {"energy": -76.010529988908}
    assert read_energy(b"a task without an energy\n").checks == {"energy": 0.0}
    with pytest.raises(ProtocolError):
        read_energy(b" Total SCF energy =    -76.0.1\n")


def test_a_number_of_molecules_whose_energy_is_unknown_is_skipped(live_machine: Machine) -> None:
    (point,) = plan_points(["apps.nwchem"], {"molecules": ["3"]}, live_machine)
    assert point.refusal is not None and "choose one of 1, 2, 4, 8" in point.refusal.reason


def measured(benchmark: Benchmark, machine: Machine, folder: Path, **settings: str) -> RepeatRecord:
    results = ResultsFolder.create(folder)
    return run_one(make_ready(benchmark, machine, results, NoCompilerError("none"), **settings), machine, results)


@pytest.mark.real
@pytest.mark.parallel
def test_it_measures_and_a_wrong_molecule_is_found(
    live_machine: Machine, tmp_path: Path, need: Callable[[str, str], str]
) -> None:
    need("nwchem", HOW)
    record = measured(NWCHEM, live_machine, tmp_path / "right", ranks="1", molecules="2")
    assert record.outcome.is_ok, record.outcome
    program = NWCHEM.program
    assert isinstance(program, External)
    given = program.inputs(NWCHEM.point({"molecules": 2}))
    planted = {name: text.replace(b"6-31g*", b"6-31g") for name, text in given.items()}
    assert planted != given
    alternatives = tuple(replace(one, inputs=lambda params: planted) for one in program.alternatives)
    program = replace(program, inputs=lambda params: planted, alternatives=alternatives)
    record = measured(replace(NWCHEM, program=program), live_machine, tmp_path / "wrong", ranks="1", molecules="2")
    assert record.outcome.state is State.INVALID and record.outcome.reason.startswith("energy: "), record.outcome
