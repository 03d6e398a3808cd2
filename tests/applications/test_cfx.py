"""Output of the Ansys CFX solver."""

from __future__ import annotations

import pytest
from applications.engineering_logs import figures, refusal, stated
from applications.log_damage import check_mutants, needs_logs
from applications.log_damage import log as sample

from seatrial.applications.readers import reader_of

REAL = "cfx/cfx2025r1-final-iteration-and-tail.txt"
OUTPUT = """
 Number of Processes = 24
 CFD Solver started: Sat Oct 10 13:20:00 2026
 OUTER LOOP ITERATION =    1                    CPU SECONDS = 1.200E+02
 | U-Mom                | 0.00 | 4.9E-04 | 2.0E-02 |       2.6E-02  OK|
 OUTER LOOP ITERATION =    2                    CPU SECONDS = 2.370E+03
 | U-Mom                | 0.97 | 4.9E-06 | 2.0E-04 |       2.6E-02  OK|
 CFD Solver finished: Sat Oct 10 13:21:41 2026
 CFD Solver wall clock seconds: 1.0125E+02
 CFD Solver: All target criteria reached
This run of the ANSYS CFX Solver has finished.
"""


def test_the_wall_clock_and_the_last_iteration() -> None:
    assert figures("cfx", OUTPUT) == {("wall",): 101.25, ("step",): 50.625}
    assert stated("cfx", OUTPUT) == {"ranks": 24, "simulation": "steady"}
    assert reader_of("cfx").read(OUTPUT.encode()).experiments[0].notes["outcome"] == "All target criteria reached"
    steps = OUTPUT.replace("OUTER LOOP ITERATION =    1", "TIME STEP =  1 SIMULATION TIME = 1.0000E-03").replace(
        "OUTER LOOP ITERATION =    2", "TIME STEP =  2 SIMULATION TIME = 2.0000E-03"
    )
    assert figures("cfx", steps) == {("wall",): 101.25, ("step",): 50.625}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (OUTPUT.replace("has finished", "goes on"), "not ended"),
        (OUTPUT + OUTPUT, "two runs"),
        (OUTPUT.replace("1.0125E+02", "1.01E+02"), "damaged"),
        (OUTPUT.replace("1.0125E+02", "1.0125E+03"), "contradicts"),
        (OUTPUT.replace("| 4.9E-06", "| NaN"), "not a number"),
        (OUTPUT.replace("ITERATION =    2", "ITERATION =    1"), "two runs"),
        (
            OUTPUT.replace(" CFD Solver: All", " | ERROR #004100018 has occurred in subroutine FINMES. |\n All"),
            "failed",
        ),
        ("some other program\n", "another program"),
    ],
)
def test_runs_without_a_figure(text: str, why: str) -> None:
    assert why in refusal("cfx", text)


@needs_logs
def test_a_real_run_and_its_mutants() -> None:
    assert figures("cfx", sample(REAL)) == {("wall",): 416.12, ("step",): pytest.approx(416.12 / 138)}
    check_mutants("cfx", (REAL,), unguarded=("wall", "step"))
