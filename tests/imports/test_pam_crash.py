"""Output of PAM-CRASH: what is documented of it is read, all else refused."""

from __future__ import annotations

import pytest
from imports.engineering_logs import figures, refusal, stated

from seatrial.imports.readers import reader_of

OUTPUT = """\
 | PAM-CRASH/SAFE                      |
 | Version   : 2018.01                 |
 | Precision : Single precision        |
 CYCLE  10000  TIME 0.100E+02
 CPU TIME          910.25
 ELAPSED TIME      230.50
 CPU TIME         1810.25
 ELAPSED TIME      460.75
 NORMAL TERMINATION
"""


def test_the_last_elapsed_time_counts() -> None:
    assert figures("pam-crash", OUTPUT) == {("wall",): 460.75}
    assert stated("pam-crash", OUTPUT) == {"precision": "single"}
    assert reader_of("pam-crash").read(OUTPUT.encode()).version == "2018.01"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (OUTPUT.replace("NORMAL", "ABNORMAL"), "failed"),
        (OUTPUT.replace(" NORMAL TERMINATION", ""), "not ended"),
        (OUTPUT + OUTPUT, "two runs"),
        (OUTPUT.replace("460.75", "4x0.75"), "damaged"),
        (OUTPUT.replace("460.75", "60.75"), "two runs"),
        (OUTPUT.replace("ELAPSED", "ELAPSE"), "not stated"),
        (OUTPUT.replace("PAM-CRASH", "LS-DYNA"), "another program"),
    ],
)
def test_runs_without_a_figure(text: str, why: str) -> None:
    assert why in refusal("pam-crash", text)
