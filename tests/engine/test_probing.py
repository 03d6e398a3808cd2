"""Probes beside the repeats of a study: what they record, and that it is another experiment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from environments.mpi_libraries import library
from profiler.mpi_programs import ROOT_MAY, traffic_program

pytestmark = [pytest.mark.real, pytest.mark.lab]

STUDY = """
study: where
question: Where does the time of two programs sit?
benchmarks:
  command: {}
axes:
  argv: [[LAUNCHER, -n, "2", PROGRAM, collectives], [LAUNCHER, -n, "2", PROGRAM, point_to_point]]
compare: argv
repeat: {precision: 1%, budget: BUDGET, max: 6}
PROBES
"""


def run(folder: Path, probes: str, budget: str) -> dict[str, Any]:
    mpi = library("openmpi")
    study = STUDY.replace("LAUNCHER", str(mpi.launcher)).replace("PROGRAM", str(traffic_program(mpi)))
    path = folder / "study.yaml"
    path.write_text(study.replace("PROBES", probes).replace("BUDGET", budget))
    command = [sys.executable, "-m", "seatrial", "run", str(path), "--results", str(folder / "r"), "--format", "json"]
    lab = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **ROOT_MAY}
    )
    out, err = lab.communicate()
    assert lab.returncode == 0, err
    answer: dict[str, Any] = json.loads(out)
    assert not list(Path("/dev/shm").glob(f"seatrial-{os.getuid()}-*-{lab.pid}-*"))  # others may profile meanwhile
    return answer


def records(folder: Path) -> list[dict[str, Any]]:
    lines = [line for path in (folder / "r" / "records").glob("*.jsonl") for line in path.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def test_a_study_locates_a_difference(tmp_path: Path) -> None:
    answer = run(tmp_path, "probes: [mpi, io]", "30s")
    (where,) = answer["study"]["where"]
    assert where["n_repeats"][0] >= 2 and where["incomplete"] == 0
    parts = {(part["what"], part["size_B"]): part for part in where["parts"]}
    init = parts["MPI_Init", 0]
    assert init["baseline_count"] == init["candidate_count"] == 1
    total = sum(part["baseline_s"] for part in where["parts"])
    assert total == pytest.approx(where["whole"]["baseline_s"], rel=1e-6)
    assert where["io"][0]["what"] == "read, as requested by the program"
    assert all(one["baseline_B"] > 0 for one in where["io"][:2])
    for record in records(tmp_path):
        profile = record["seen"]["mpi"]
        assert profile["complete"] and profile["ranks"] == profile["tables"] == 2
        called = {call[0] for call in profile["calls"]}
        assert {"MPI_Init", "MPI_Finalize"} <= called


def test_profiling_makes_another_experiment(tmp_path: Path) -> None:
    with_mpi = {one["id"] for one in run(tmp_path, "probes: [mpi]", "1s")["experiments"]}
    with_io = {one["id"] for one in run(tmp_path, "probes: [io]", "1s")["experiments"]}
    without = {one["id"] for one in run(tmp_path, "", "1s")["experiments"]}
    assert not with_mpi & with_io
    assert not without & (with_mpi | with_io)  # probes count over a repeat, which then is one run of the command
