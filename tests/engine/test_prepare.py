"""From points to experiments: anything missing is an outcome before anything is started."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from made_up import made_up_machine

from seatrial.engine.kinds import external
from seatrial.engine.listener import Listener
from seatrial.engine.prepare import prepare, prepared_points
from seatrial.engine.ready import Ready, Refused
from seatrial.environments.chosen import Environments
from seatrial.environments.installed import Installed
from seatrial.errors import NoCompilerError
from seatrial.launch.mpi import Helpers
from seatrial.model.benchmark.benchmark import External
from seatrial.model.environment.mpi import Mpi, MpiFamily
from seatrial.model.results.sample import State
from seatrial.places import rank_helpers
from seatrial.plan.points import plan_points

HELPERS = Helpers(Path("keep"), Path("place"), Path("share"))


@pytest.fixture
def lammps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installed:
    """LAMMPS of the site, without an MPI."""
    found = Installed(tmp_path / "lmp", "1.0", "0" * 64)

    def installed(program: External) -> tuple[External, Installed]:
        return program, found

    monkeypatch.setattr(external, "found_program", installed)
    return found


def _prepared(ranks: str) -> Ready | Refused:
    machine = made_up_machine(cores=2)
    points = plan_points(["apps.lammps"], {"ranks": [ranks], "threads": ["1"]}, machine)
    (one,) = prepare(points, Environments(machine), "machine", Listener())
    return one


def _no_helpers() -> Helpers:
    raise NoCompilerError("no C++ compiler was found", "install one, or build ahead")


def test_ranks_of_a_site_program_need_the_helper_programs(lammps: Installed, monkeypatch: pytest.MonkeyPatch) -> None:
    mpi = Mpi("mpich", MpiFamily.MPICH, "4", Path("/libmpi.so"), "1", (), (), Path("/mpiexec"))
    monkeypatch.setattr(external, "mpi_of", lambda path, variables: mpi)
    monkeypatch.setattr(rank_helpers, "rank_helpers", lambda: HELPERS)
    assert isinstance(_prepared("2"), Ready)
    monkeypatch.setattr(rank_helpers, "rank_helpers", _no_helpers)
    refused = _prepared("2")
    assert isinstance(refused, Refused) and refused.outcome.state is State.UNSUPPORTED
    assert refused.outcome.reason.startswith("compiler: no C++ compiler was found")


def test_one_process_needs_no_helpers(lammps: Installed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external, "mpi_of", lambda path, variables: None)
    monkeypatch.setattr(rank_helpers, "rank_helpers", _no_helpers)
    assert isinstance(_prepared("1"), Ready)
    refused = _prepared("2")
    assert isinstance(refused, Refused) and "is not linked with a known MPI library" in str(refused.outcome)


def test_ranks_of_a_script_are_started_by_the_mpi_that_the_user_names(
    lammps: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    mpi = Mpi("mpich", MpiFamily.MPICH, "4", Path("/libmpi.so"), "1", (), (), Path("/mpiexec"))
    monkeypatch.setattr(external, "mpi_of", lambda path, variables: None)
    monkeypatch.setattr(external, "choose_mpi", lambda name, variables: mpi)
    monkeypatch.setattr(rank_helpers, "rank_helpers", lambda: HELPERS)
    machine = made_up_machine(cores=2)
    settings = {"ranks": ["2"], "threads": ["1"], "environment.mpi": ["mpich"]}
    points = plan_points(["apps.lammps"], settings, machine)
    lammps.path.write_bytes(b"\x7fELF")
    (binary,) = prepare(points, Environments(machine), "machine", Listener())
    assert isinstance(binary, Refused) and "not linked" in binary.outcome.reason
    lammps.path.write_text("#!/bin/sh\nexec lmp_of_the_site\n")
    (script,) = prepare(points, Environments(machine), "machine", Listener())
    assert isinstance(script, Ready) and script.mpi == mpi
    refused = _prepared("2")
    assert isinstance(refused, Refused) and "set environment.mpi" in refused.outcome.reason


def test_an_mpi_that_a_program_is_not_linked_with_is_another_experiment(
    lammps: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    mpi = Mpi("openmpi", MpiFamily.OPENMPI, "4", Path("/libmpi.so"), "1", (), (), Path("/mpiexec"))
    monkeypatch.setattr(external, "mpi_of", lambda path, variables: mpi)
    other_mpi = replace(mpi, library=Path("/other"))
    monkeypatch.setattr(external, "choose_mpi", lambda name, variables: mpi if name == "openmpi-4" else other_mpi)
    monkeypatch.setattr(rank_helpers, "rank_helpers", lambda: HELPERS)
    machine = made_up_machine(cores=2)
    settings = {"ranks": ["2"], "threads": ["1"], "environment.mpi": ["openmpi", "mpich", "mvapich", "openmpi-4"]}
    points = plan_points(["apps.lammps"], settings, machine)
    ours, other, third, alias = prepared_points(points, Environments(machine), "machine", Listener())
    assert isinstance(ours, Ready) and isinstance(alias, Ready) and ours.experiment.id == alias.experiment.id
    assert isinstance(other, Refused) and isinstance(third, Refused)
    assert len({item.experiment.id for item in (ours, other, third)}) == 3, "a refusal is not recorded with a result"
    assert "is linked with openmpi (/libmpi.so), not with mpich" in other.outcome.reason
