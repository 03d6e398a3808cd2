"""LS-DYNA's messages: a real file, and forms of other versions."""

from __future__ import annotations

import pytest
from applications.engineering_logs import figures, refusal, stated
from applications.log_damage import check_mutants, needs_logs
from applications.log_damage import log as sample

REAL = "ls-dyna/r16-smp-d-one-cycle-messag.txt"
MESSAGES = """
     |  LS-DYNA, A Program for Nonlinear Dynamic         |
     |  Version : mpp d R12                              |
     |  Precision  : Double precision (I8R8)             |
 MPP execution with      16 procs
 *** termination time reached ***
 N o r m a l    t e r m i n a t i o n                          11/18/15 08:24:40
 T i m i n g   i n f o r m a t i o n
                        CPU(seconds)   %CPU  Clock(seconds) %Clock
  ----------------------------------------------------------------
  Initialization ....... 0.0000E+00    0.00     1.0000E+00    2.00
    Init Proc Phase 1 .. 0.0000E+00    0.00     7.3000E-02    0.14
  Element processing ... 3.5000E+01   68.63     4.7500E+01   95.00
  Other ................ 5.0000E+00    9.80     1.5000E+00    3.00
  ----------------------------------------------------------------
  T o t a l s            4.0000E+01  100.00     5.0000E+01  100.00
 Problem cycle      =     20000
 Clock time per zone cycle=       678 nanoseconds
 Start time   11/18/2015 08:23:51
 End time     11/18/2015 08:24:40
 Elapsed time      49 seconds(   0 hours  0 min. 49 sec.) for   20000 cycles
 N o r m a l    t e r m i n a t i o n
"""


def test_the_whole_run_the_solution_and_a_cycle() -> None:
    assert figures("ls-dyna", MESSAGES) == {
        ("wall",): 50.0,
        ("solution_time",): 49.0,
        ("step",): 49.0 / 20000,
        ("zone_cycle_time",): 678e-9,
    }
    assert stated("ls-dyna", MESSAGES) == {"ranks": 16, "precision": "double"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (MESSAGES.replace("N o r m a l", "E r r o r"), "failed"),
        (MESSAGES.replace(" N o r m a l", " X"), "not ended"),
        (MESSAGES.partition(" T i m i n g")[0], "not ended"),
        (MESSAGES + MESSAGES, "two runs"),
        (MESSAGES.replace("4.7500E+01", "4.4500E+01"), "add up"),
        (MESSAGES.replace("5.0000E+01", "6.0000E+01"), "add up"),
        (MESSAGES.replace("time      49", "time      48"), "elapsed seconds"),
        (MESSAGES.replace("08:23:51", "08:22:51"), "contradicts"),
        (MESSAGES.replace("for   20000", "for   21000"), "cycles"),
        (MESSAGES.replace("nanoseconds", "fortnights"), "unit"),
        (MESSAGES.replace("*** termination time", "*** Error 10246"), "failed"),
        ("a text\n", "another program"),
    ],
)
def test_runs_without_a_figure(text: str, why: str) -> None:
    assert why in refusal("ls-dyna", text)


@needs_logs
def test_a_real_run_whose_elapsed_seconds_are_none() -> None:
    assert figures("ls-dyna", sample(REAL)) == {("wall",): 2.068, ("zone_cycle_time",): pytest.approx(630848.492e-12)}
    assert stated("ls-dyna", sample(REAL)) == {"ranks": 1, "threads": 4, "precision": "double"}


@needs_logs
def test_damaged_messages() -> None:
    check_mutants("ls-dyna", (REAL,), near=0.005, unguarded=("zone_cycle_time",))
