"""Output of CalculiX."""

from __future__ import annotations

import pytest
from applications.engineering_logs import figures, refusal, stated
from applications.log_damage import check_mutants, needs_logs
from applications.log_damage import log as sample

OWN_RUN = "calculix/ccx2.20-explicit-beamnldype-own-run.txt"
OUTPUT = """
CalculiX Version 2.21, Copyright(C) 1998-2023 Guido Dhondt

 Using up to 8 cpu(s) for the stress calculation.
  The numbers below are estimated upper bounds
   nodes:      70123
   elements:      45000
 STEP            1
 average force= 0.500000
 STEP            2

 Job finished

Total CalculiX Time: 81.250000
"""


def test_the_elapsed_time_and_the_model() -> None:
    assert figures("calculix", OUTPUT) == {("wall",): 81.25}
    assert stated("calculix", OUTPUT) == {"threads": 8, "nodes": 70123, "elements": 45000}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (OUTPUT.replace("Job finished", ""), "not ended"),
        (OUTPUT.replace("CalculiX Version", "Version"), "from another program"),
        (OUTPUT.replace(" STEP            2", " *ERROR: too many cutbacks"), "failed"),
        (OUTPUT.replace("force= 0.5", "force= nan"), "diverged"),
        (OUTPUT.replace("81.250000", "81.2500"), "damaged"),
        (OUTPUT.replace("81.250000", "0.000000"), "above zero"),
        (OUTPUT.replace("81.250000\n", "81.250000"), "cut off"),
    ],
)
def test_runs_without_a_figure(text: str, why: str) -> None:
    assert why in refusal("calculix", text)


@needs_logs
def test_a_real_run_and_its_mutants() -> None:
    assert figures("calculix", sample(OWN_RUN)) == {("wall",): 0.233314}
    assert stated("calculix", sample(OWN_RUN)) == {"threads": 2, "nodes": 261, "elements": 32}
    check_mutants("calculix", (OWN_RUN,), unguarded=("wall",))
