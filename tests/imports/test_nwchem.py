"""Logs of NWChem: real ones, and damaged ones."""

from __future__ import annotations

import pytest
from imports.log_damage import check_mutants, figures, log, needs_logs, refused

READ: dict[str, dict[str, list[float]]] = {
    "nwchem/nwchem-c240-128ranks.txt": {"time": [745.1]},
}


@needs_logs
@pytest.mark.parametrize("name", READ)
def test_the_elapsed_time_counts(name: str) -> None:
    assert figures("nwchem", log(name)) == READ[name]


@needs_logs
def test_two_runs_in_one_file_are_refused() -> None:
    refused("nwchem", log(next(iter(READ))) * 2, "a second run begins here")


@needs_logs
def test_damaged_logs() -> None:
    check_mutants("nwchem", tuple(READ), near=0.05)
