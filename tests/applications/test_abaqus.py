"""Files of Abaqus jobs: .dat, .msg, .sta and .log."""

from __future__ import annotations

import pytest
from applications.engineering_logs import figures, refusal, stated
from applications.log_damage import check_mutants, needs_logs
from applications.log_damage import log as sample

HEADING = "   Abaqus 2023                                  Date 16-Jul-2026   Time 07:40:07\n"
SUMMARY = """
     JOB TIME SUMMARY
       USER TIME (SEC)      =     2.08E+03
       SYSTEM TIME (SEC)    =      57.    
       TOTAL CPU TIME (SEC) =     2.14E+03
       WALLCLOCK TIME (SEC) =         2299
"""  # noqa: W291
PRE = SUMMARY.replace("2.08E+03", "1.5").replace("57.", "0.17").replace("2.14E+03", "1.6").replace("2299", "2")
DAT = f"{HEADING}  END OF USER INPUT PROCESSING\n{PRE}1\n{HEADING}   THE ANALYSIS HAS BEEN COMPLETED\n{SUMMARY}"
MSG = f"""{HEADING}
     1 HOST x 2 MPI RANKS PER HOST x 4 THREADS PER RANK
          THE ANALYSIS HAS BEEN COMPLETED
     TOTAL OF         42  INCREMENTS
                     196  ITERATIONS INCLUDING CONTACT ITERATIONS IF PRESENT
                       0  ERROR MESSAGES
{SUMMARY}"""
STA = """ Abaqus/Standard 2025.HF3                  DATE 12-Jun-2026 TIME 18:27:05
   1     1   1     2     1     3  0.500      0.500      0.5000
   1     2   1U    3     1     4  0.500      0.500      0.5000
   1     2   2     1     1     2  0.625      0.625      0.1250
   2     1   1     1     0     1  1.00       1.00       1.0000
 THE ANALYSIS HAS COMPLETED SUCCESSFULLY
"""
EXPLICIT = """ Abaqus/Explicit 6.14-1                    DATE 05-Nov-2015 TIME 14:25:10
        0  0.000E+00 0.000E+00  00:00:00  1.234E-06           1  0.000E+00  0.000E+00
      500  5.000E-04 5.000E-04  01:02:05  1.234E-06           1  1.000E+00  0.000E+00
 THE ANALYSIS HAS COMPLETED SUCCESSFULLY
"""
LOG = """Abaqus JOB beam
Abaqus 2023
Begin Abaqus/Standard Analysis
Fri 31 Dec 2021 11:59:30 PM CET
Run standard
Sat 01 Jan 2022 12:01:10 AM CET
End Abaqus/Standard Analysis
Abaqus JOB beam COMPLETED
"""
JOB = "abaqus/std2021-nlgeom"


def test_each_file_of_a_job() -> None:
    counts = {("increments",): 42.0, ("iterations",): 196.0}
    assert figures("abaqus", DAT) == {("wall",): 2299.0}
    assert figures("abaqus", MSG) == {("wall",): 2299.0, **counts}
    assert figures("abaqus", STA) == {("increments",): 3.0, ("iterations",): 10.0}
    assert figures("abaqus", EXPLICIT) == {("wall",): 3725.0, ("increments",): 500.0}
    assert figures("abaqus", LOG) == {("process_time",): 100.0}
    assert [stated("abaqus", text)["file"] for text in (DAT, MSG, STA, EXPLICIT, LOG)] == [
        "dat", "msg", "sta", "sta", "log",
    ]  # fmt: skip
    assert stated("abaqus", MSG) == {"file": "msg", "nodes": 1, "ranks": 2, "threads": 4}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (DAT.replace("2299", "0"), "whole seconds"),
        (DAT.replace("THE ANALYSIS HAS BEEN", ""), "not ended"),
        (DAT + DAT, "second job"),
        (DAT.replace("57.", "97."), "add up"),
        (DAT.replace("2.08E+03", "3.08E+03"), "add up"),
        (MSG.replace("0  ERROR", "2  ERROR"), "errors"),
        (MSG.replace("THE ANALYSIS HAS BEEN COMPLETED", " ***ERROR: TIME INCREMENT REQUIRED IS LESS THAN"), "failed"),
        (MSG.replace("2.08E+03", "9.08E+05").replace("2.14E+03", "9.09E+05"), "8 cores"),
        (MSG + MSG, "second job"),
        (STA.replace("COMPLETED SUCC", "X"), "not ended"),
        (STA.replace("HAS COMPLETED SUCCESSFULLY", "HAS NOT BEEN COMPLETED"), "failed"),
        (STA.replace("1     2   2", "1     3   2"), "missing"),
        (STA.replace("1     1     2", "1     1     3"), "add up"),
        (STA + STA, "second job"),
        (EXPLICIT.replace("01:02:05", "00:00:00"), "too short"),
        (LOG.replace("2022", "2021"), "earlier"),
        (LOG.replace("Sat 01 Jan 2022 12:01:10 AM CET", "Fri 31 Dec 2021 11:59:30 PM CET"), "whole seconds"),
        (LOG.replace("Fri 31 Dec 2021 11:59:30 PM CET", "vendredi"), "two dates"),
        (LOG.replace("beam COMPLETED", "beam"), "not ended"),
        (LOG.replace("Run standard", "Abaqus Error: Abaqus/Standard exited with an error"), "failed"),
        (DAT + LOG, "one by one"),
        ("a text\n", "another program"),
    ],
)
def test_files_without_a_figure(text: str, why: str) -> None:
    assert why in refusal("abaqus", text)


@needs_logs
def test_a_real_job() -> None:
    counts = {("increments",): 100.0, ("iterations",): 100.0}
    assert figures("abaqus", sample(f"{JOB}-dat.txt")) == {("wall",): 1.0}
    assert figures("abaqus", sample(f"{JOB}-msg.txt")) == {("wall",): 1.0, **counts}
    assert figures("abaqus", sample(f"{JOB}-sta.txt")) == counts
    assert figures("abaqus", sample(f"{JOB}-log.txt")) == {("process_time",): 2.0}


@needs_logs
@pytest.mark.parametrize("job", ["std-2DPlaneStrain", "std-heattransfer"])
def test_real_jobs_of_less_than_a_second(job: str) -> None:
    for kind in "dat", "msg":
        assert "whole seconds" in refusal("abaqus", sample(f"abaqus/{job}-{kind}.txt"))
    assert figures("abaqus", sample(f"abaqus/{job}-sta.txt")) == {("increments",): 1.0, ("iterations",): 3.0}


@needs_logs
@pytest.mark.parametrize("kind", ["dat", "sta", "log"])
def test_damaged_files(kind: str) -> None:
    check_mutants("abaqus", (f"{JOB}-{kind}.txt",), unguarded=("wall",), fewer=("increments", "iterations"))
