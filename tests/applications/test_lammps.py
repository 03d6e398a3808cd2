"""Outputs of LAMMPS: real ones, and what goes wrong in them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from applications.log_damage import check_mutants, figures, log, needs_logs, noisy, refused
from cli.in_process import seatrial_here

from seatrial.applications.lammps import why_not
from seatrial.applications.readers import reader_of

ONE = "lammps/reaxff-aks-cpu128.txt"
TWO = "lammps/reaxff-kokkos-cyclecloud-gpu4.txt"


@needs_logs
def test_the_loop_time_counts() -> None:
    """Of 0.008 ns/day, two digits are none to compute from."""
    found = figures("lammps", log(ONE))
    assert found["loop"] == [107.303] and found["step"] == [pytest.approx(1.07303)]
    assert 86400 / found["ns_time"][0] == pytest.approx(0.0080520, rel=1e-4)
    (experiment,) = reader_of("lammps").read(log(ONE)).experiments
    assert experiment.parameters == {
        "atoms": 39845888,
        "steps": 100,
        "ranks": 12288,
        "threads": 1,
        "pair": "reaxff",
        "timestep": "0.1 fs",
    }


@needs_logs
def test_two_systems_in_one_file_are_two_experiments() -> None:
    assert figures("lammps", log(TWO))["loop"] == [71.3805, 37.9037]
    experiments = reader_of("lammps").read(log(TWO)).experiments
    assert [one.parameters["atoms"] for one in experiments] == [39845888, 19922944]


@needs_logs
def test_a_log_with_noise_of_its_launcher() -> None:
    assert figures("lammps", noisy(log(ONE))) == figures("lammps", log(ONE))


@needs_logs
@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"Loop time of 107.303", b"Loop time of 108.303", "0.932 timesteps/s are not 100 steps"),
        (b"Loop time of 107.303", b"Loop time of", "a damaged `Loop time`"),
        (b"Modify  | 69.675     | 79.675", b"Modify  | 69.675     | 89.675", "its breakdown adds up to"),
        (b"Time step     : 0.1", b"Time step     : 0.7", "hours/ns are not that of steps of 0.7 fs"),
        (b"on 12288 procs", b"on 24576 procs", "not the 24576 processes"),
        (b"       100   302.56512", b"       100   30256.512", "has exploded"),
        (b"       100   302.56512", b"       100   nan      ", "not all of its values are numbers"),
        (b"       100   302.56512", b"       110   302.56512", "the rows above are of other steps"),
        (b"Total wall time: 0:01:50", b"Total wall time: 0:00:50", "below the 107.303 s of its loops"),
        (b"Total wall time: 0:01:50", b"", "has not ended"),
        (
            b"Total wall time",
            b"ERROR on proc 7: Lost atoms: original 304 current 300\nTotal wall time",
            "with an error",
        ),
        (b"LAMMPS (17", b"LAMPS (17", "from another program"),
    ],
)
def test_a_damaged_or_failed_run_is_refused(old: bytes, new: bytes, why: str) -> None:
    text = log(ONE)
    assert old in text
    refused("lammps", text.replace(old, new), why)


@needs_logs
def test_a_run_that_did_not_start_is_refused() -> None:
    refused("lammps", log("lammps/reaxff-missing-sif-crash.txt"), "from another program")


@needs_logs
def test_mutants_are_refused_or_give_the_same() -> None:
    check_mutants("lammps", (ONE, TWO))


HELP = "Compiler: GNU C++ with OpenMP {}\n\nInstalled packages:\n\nASPHERE OPT {} PERI\n\nList of individual style"


@pytest.mark.parametrize(
    ("answer", "params", "why"),
    [
        (HELP.format("4.5", "KIM"), {"package": "omp", "threads": 1}, "built without its package OPENMP"),
        (HELP.format("4.5", "KIM"), {"package": "intel", "threads": 1}, "built without its package INTEL"),
        (HELP.format("4.5", "USER-OMP"), {"package": "omp", "threads": 2}, ""),
        (HELP.format("not enabled", "OPENMP"), {"package": "omp", "threads": 2}, "built without OpenMP"),
        (HELP.format("not enabled", "OPENMP"), {"package": "opt", "threads": 1}, ""),
        (HELP.format("4.5", "KIM"), {"package": "none", "threads": 1}, ""),
        ("another program", {"package": "omp", "threads": 2}, ""),
    ],
)
def test_the_program_is_asked_before_it_is_planned(answer: str, params: dict[str, str | int], why: str) -> None:
    found = why_not(answer, params)
    assert why in found if why else found == ""


def test_a_plan_says_what_the_build_cannot_do(tmp_path: Path) -> None:
    said = HELP.format("4.5", "KIM").replace("\n", "\\n")
    program = tmp_path / "bin" / "lmp"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nprintf '{said}'\n")
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    words = ("apps.lammps", "--set", "package=omp,none", "--set", "ranks=1", "--format", "json")
    done = seatrial_here("plan", *words, cwd=tmp_path, PATH=path, SEATRIAL_CACHE=str(tmp_path / "cache"))
    states = [(one["state"], one["reason"]) for one in json.loads(done.stdout)["experiments"]]
    assert states == [("skipped", "this LAMMPS was built without its package OPENMP"), ("ready", None)]
