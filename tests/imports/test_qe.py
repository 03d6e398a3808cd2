"""Logs of Quantum ESPRESSO: real ones, and damaged ones."""

from __future__ import annotations

import pytest
from imports.log_damage import check_mutants, figures, log, needs_logs, refused

READ: dict[str, dict[str, list[float]]] = {
    "qe/pw6.6-scf-done.txt": {"time": [1.46]},
    "qe/pw7.5-scf-done.txt": {"time": [2.33]},
    "qe/nomad-benchmark2-HO-scf.txt": {"time": [4.71]},
}
REFUSED: dict[str, str] = {
    "qe/pw6.6-out-of-walltime-JOB-DONE.txt": "stopped before it was done",
    "qe/pw6.6-out-of-walltime-interrupted.txt": "stopped before it was done",
    "qe/pw6.8-npools-too-high.txt": "no line `PWSCF",
}


@needs_logs
@pytest.mark.parametrize("name", READ)
def test_the_elapsed_time_counts(name: str) -> None:
    assert figures("qe", log(name)) == READ[name]


@needs_logs
@pytest.mark.parametrize("name", REFUSED)
def test_runs_without_a_figure_are_refused(name: str) -> None:
    refused("qe", log(name), REFUSED[name])


@needs_logs
def test_two_runs_in_one_file_are_refused() -> None:
    refused("qe", log(next(iter(READ))) * 2, "a second run begins here")


@needs_logs
def test_damaged_logs() -> None:
    check_mutants("qe", tuple(READ), near=3.0)
