"""Output of AMBER: real ones, and what goes wrong in them."""

from __future__ import annotations

import pytest
from applications.log_damage import check_mutants, figures, log, needs_logs, others, refused

from seatrial.applications.readers import reader_of
from seatrial.errors import ParseError

SANDER = "amber/sander18-md-10000steps-complete.txt"
PMEMD = "amber/pmemd11-restart-complete-last-vs-all.txt"
MDINFO = "amber/mdinfo-final-10M-steps.txt"
NAMES = (
    SANDER,
    PMEMD,
    MDINFO,
    "amber/pmemd11-10000steps-complete.txt",
    "amber/sander22-qmmm-complete.txt",
    "amber/sander26-openmp-jac-own-run.txt",
)


@needs_logs
@pytest.mark.parametrize(
    ("name", "ns_s", "last_s", "time_s"),
    [
        (SANDER, 7153.01, None, 143.06),
        (PMEMD, 1562.27, 1559.56, 156.23),
        (MDINFO, 7899.85, 8334.88, 157997.05),
        ("amber/sander22-qmmm-complete.txt", 899982.23, None, 899.98),
        ("amber/sander26-openmp-jac-own-run.txt", 200187.95, None, 40.04),
        ("amber/sander26-openmp-jac-own-run-mdinfo.txt", 200186.85, 169253.05, 40.04),
    ],
)
def test_seconds_per_ns_are_the_most_exact(name: str, ns_s: float, last_s: float | None, time_s: float) -> None:
    found = figures("amber", log(name))
    assert (found["ns_time"], found["wall"]) == ([ns_s], [time_s])
    assert found.get("ns_time_last") == (None if last_s is None else [last_s])


@needs_logs
def test_what_a_run_states() -> None:
    (experiment,) = reader_of("amber").read(log(PMEMD)).experiments
    stated = {name: experiment.parameters[name] for name in ("program", "atoms", "steps", "timestep", "ranks")}
    assert stated == {"program": "pmemd", "atoms": 220, "steps": 100000, "timestep": "1 fs", "ranks": 4}


@needs_logs
def test_a_run_that_goes_on_is_no_result() -> None:
    refused("amber", log("amber/mdinfo-in-progress.txt"), "has not ended, or the file is cut off: 2700 of 40000 steps")


@needs_logs
@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"TEMP(K) =   256.39", b"TEMP(K) = 28956.00", "exploded"),
        (b"TEMP(K) =   256.39", b"TEMP(K) =      NaN", "exploded"),
        (b"12.08", b"13.08", "ns/day are not"),
        (b"7153.01", b"7153.91", "steps of 2 fs"),
        (b"Run   done", b"Run", "has not ended"),
        (b"Final Performance Info", b"Performance", "no `Final Performance Info`"),
    ],
)
def test_what_has_no_figure_is_refused(old: bytes, new: bytes, why: str) -> None:
    text = log(SANDER)
    assert old in text
    refused("amber", text.replace(old, new), why)


@needs_logs
def test_two_runs_in_one_file_are_refused() -> None:
    for name in NAMES:
        with pytest.raises(ParseError):
            reader_of("amber").parse(log(name) * 2)


@needs_logs
def test_logs_of_other_programs_are_refused() -> None:
    for path in others("amber"):
        with pytest.raises(ParseError):
            reader_of("amber").read(path.read_bytes())


@needs_logs
def test_damaged_logs() -> None:
    check_mutants("amber", NAMES, near=5e-3)
