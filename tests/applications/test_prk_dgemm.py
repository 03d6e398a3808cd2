"""DGEMM of the Parallel Research Kernels: a real run, and damaged ones."""

from __future__ import annotations

import pytest
from applications.log_damage import figures, noisy, refused
from shared_samples import OUTPUTS

from seatrial.applications.readers import reader_of

SAMPLE = OUTPUTS / "prk_dgemm_run1.txt"
pytestmark = pytest.mark.skipif(not SAMPLE.is_file(), reason=f"needs {SAMPLE.name} of the shared data")


def test_the_rate_and_the_time_are_read() -> None:
    text = SAMPLE.read_bytes()
    assert figures("prk-dgemm", text) == figures("prk-dgemm", noisy(text)) == {"rate": [52.632e9], "time": [0.303998]}
    (experiment,) = reader_of("prk-dgemm").read(text).experiments
    assert experiment.parameters == {"n": 2000, "iterations": 3}


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"Solution validates\n", b"", "no line `Solution validates`"),
        (b"No batching", b"Batch size = 8", "no line `No batching`"),
        (b"C++11/CBLAS", b"C++11/Eigen", "no line `C++11/CBLAS Dense"),
        (b"52.632", b"52.732", "are not the 16000000000 operations"),
        (b"order         = 2000", b"order         = 2001", "are not the"),
        (b"FP64 Rate", b"FP", "the run has not ended"),
        (b"Parallel Research Kernels\n", b"Kernels\n", "from another program"),
    ],
)
def test_what_has_no_figure_is_refused(old: bytes, new: bytes, why: str) -> None:
    text = SAMPLE.read_bytes()
    assert old in text
    refused("prk-dgemm", text.replace(old, new), why)


def test_two_runs_in_one_file_are_two_experiments() -> None:
    assert len(reader_of("prk-dgemm").read(SAMPLE.read_bytes() * 2).runs) == 2
