"""Output of PAM-CRASH: what is documented of it is read, all else refused."""

from __future__ import annotations

import pytest
from applications.engineering_logs import figures, refusal, stated
from applications.result_texts import PAM_CRASH as OUTPUT

from seatrial.applications.readers import reader_of


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
