"""Logs of CP2K: real ones, and damaged ones."""

from __future__ import annotations

import pytest
from imports.log_damage import check_mutants, figures, log, needs_logs, refused

READ: dict[str, dict[str, list[float]]] = {
    "cp2k/cp2k7.1-H2O64-1node-128cores-2threads.txt": {"time": [26.040]},
    "cp2k/cp2k7.1-LiH-HFX-24nodes.txt": {"time": [258.937]},
}
REFUSED: dict[str, str] = {
    "cp2k/cp2k-LiH-HFX-1node-short.txt": "has not ended",
}


@needs_logs
@pytest.mark.parametrize("name", READ)
def test_the_elapsed_time_counts(name: str) -> None:
    assert figures("cp2k", log(name)) == READ[name]


@needs_logs
@pytest.mark.parametrize("name", REFUSED)
def test_runs_without_a_figure_are_refused(name: str) -> None:
    refused("cp2k", log(name), REFUSED[name])


@needs_logs
def test_two_runs_in_one_file_are_refused() -> None:
    refused("cp2k", log(next(iter(READ))) * 2, "a second run begins here")


@needs_logs
def test_damaged_logs() -> None:
    check_mutants("cp2k", tuple(READ), near=0.05)
