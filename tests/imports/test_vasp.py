"""Logs of VASP: real ones, and damaged ones."""

from __future__ import annotations

import pytest
from imports.log_damage import check_mutants, figures, log, needs_logs, refused

READ: dict[str, dict[str, list[float]]] = {
    "vasp/vasp6.4.1-CdTe-1node.txt": {"time": [6139.715], "loop": [6120.8463]},
}
REFUSED: dict[str, str] = {
    "vasp/vasp6.4.1-CdTe-crash-early.txt": "from another program",
}


@needs_logs
@pytest.mark.parametrize("name", READ)
def test_the_elapsed_time_counts(name: str) -> None:
    assert figures("vasp", log(name)) == READ[name]


@needs_logs
@pytest.mark.parametrize("name", REFUSED)
def test_runs_without_a_figure_are_refused(name: str) -> None:
    refused("vasp", log(name), REFUSED[name])


@needs_logs
def test_two_runs_in_one_file_are_refused() -> None:
    refused("vasp", log(next(iter(READ))) * 2, "a second run begins here")


@needs_logs
def test_damaged_logs() -> None:
    check_mutants("vasp", tuple(READ), near=0.05)
