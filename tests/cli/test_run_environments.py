"""`--set environment.*` as people see it: what was chosen stands above what came of it."""

from __future__ import annotations

from pathlib import Path

from cli.in_process import seatrial_here

from seatrial.model.environment.choice import AS_IT_IS, EnvironmentChoice


def test_a_choice_is_written_as_for_set() -> None:
    assert AS_IT_IS.text == ""
    choice = EnvironmentChoice("g++", ("-O2", "-g"), (("A", "1"), ("B", None)), "mpich", (("transport", "tcp"),))
    assert choice.text == "mpi=mpich compiler=g++ flags=-O2 -g transport=tcp A=1 without B"


def test_missing_libraries_are_unsupported_by_name(tmp_path: Path) -> None:
    done = seatrial_here("run", "mpi.latency", "--set", "environment.mpi=nompi,neither", cwd=tmp_path)
    assert done.returncode == 3 and "Traceback" not in done.stderr, done.stderr
    first, second = done.stdout.split("In mpi=")[1:]
    assert first.startswith("nompi ") and second.startswith("neither ")
    assert "unsupported: mpi: unknown MPI" in first and "unsupported: mpi: unknown MPI" in second
