"""A results folder with the facts of one experiment."""

from __future__ import annotations

from pathlib import Path

import pytest
from store.test_store import EXPERIMENT, machine

from seatrial.store.folder import ResultsFolder


@pytest.fixture
def folder(tmp_path: Path) -> ResultsFolder:
    made = ResultsFolder.create(tmp_path / "results")
    made.put("machines", "known", machine())
    made.put("environments", "env", {"name": "gcc"})
    made.put("experiments", EXPERIMENT.id, EXPERIMENT.document())
    return made
