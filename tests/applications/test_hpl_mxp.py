"""HPL-MxP: a real output of NVIDIA's build, and what goes wrong in it."""

from __future__ import annotations

import pytest
from applications.log_damage import check_mutants, counted_once, figures, log, needs_logs, others, refused

from seatrial.applications.readers import reader_of
from seatrial.errors import ParseError

H100 = "hpl-mxp/hpl-mxp-nvidia-h100-4gpu.txt"


def with_two_loops() -> bytes:
    head, start, rest = log(H100).partition(b" ****** test 1 of 1 starts")
    body, end, tail = rest.partition(b" ****** test loop 1 of 1 done")
    slower = body.replace(b"= 1.9768e+05, per GPU =   49420.46", b"= 1.9764e+05, per GPU =   49410.00")
    head = head.replace(b"--test-loop                        = 1", b"--test-loop                        = 2")
    return head + start + body + end + slower + end + tail


@needs_logs
def test_the_rate_with_iterative_refinement_counts() -> None:
    found = figures("hpl-mxp", log(H100))
    assert (found["rate"], found["lu_rate"]) == ([1.9768e14], [8.7595e14])
    assert found["time"] == [pytest.approx(5.26 + 18.04, rel=5e-4)]
    file = reader_of("hpl-mxp").read(log(H100))
    (experiment,) = file.experiments
    assert file.version == "25.4.0" and experiment.notes == {"residuals": [6.189581e-04]}
    assert experiment.parameters == {"n": 190464, "nb": 1024, "p": 2, "q": 2, "ranks": 4, "precision": "fp16"}


@needs_logs
def test_loops_are_samples() -> None:
    (experiment,) = reader_of("hpl-mxp").read(with_two_loops()).experiments
    assert [s.work["amount"] for s in experiment.samples if s.series == "rate"] == [1.9768e14, 1.9764e14]
    refused("hpl-mxp", with_two_loops().replace(b"= 2 \n", b"= 3 \n"), "has not ended, or the file is cut off: 2 of 3")


@needs_logs
def test_a_failed_residual_has_no_figure() -> None:
    text = log(H100).replace(b"6.189581E-04 ...... PASSED", b"6.189581E+04 ...... FAILED")
    (experiment,) = reader_of("hpl-mxp").read(text).experiments
    assert experiment.failed.startswith("residual FAILED")
    assert not figures("hpl-mxp", text)
    refused("hpl-mxp", text.replace(b"FAILED", b"PASSED"), "not below the threshold 16")
    refused("hpl-mxp", text.replace(b"6.189581E+04 ...... FAILED", b"nan ...... PASSED"), "not below the threshold")


@needs_logs
@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"      GFLOPS = 1.9768e+05", b"      GFLOPS = 1.9868e+05", "are not 4 x 49420.46"),
        (b"1.9768e+05, per GPU =   49420.46", b"1.9968e+05, per GPU =   49920.00", "too high for the work"),
        (b"1.9768e+05, per GPU =   49420.46", b"1.9568e+05, per GPU =   48920.00", "too low for the work"),
        (b"8.7595e+05, per GPU =  218987.25", b"8.8595e+05, per GPU =  221487.25", "too high for the work"),
        (b"    N = 190464", b"    N = 180464", "for the work of N = 180464"),
        (b"    LU GFLOPS", b"    LU", "no lines with `LU GFLOPS`"),
        (b"test 1 of 1 starts", b"test 1 of 2 starts", "1 of 2 results"),
        (b"HPL-MxP-NVIDIA 25", b"HPL-AI 25", "from another program"),
    ],
)
def test_what_contradicts_itself_is_refused(old: bytes, new: bytes, why: str) -> None:
    refused("hpl-mxp", log(H100).replace(old, new), why)


@needs_logs
def test_two_runs_and_rates_alone_are_refused() -> None:
    counted_once("hpl-mxp", log(H100))
    refused("hpl-mxp", log("hpl-mxp/intel-hpl-mxp-summary-lines.txt"), "without the size of the system")


@needs_logs
def test_outputs_of_other_programs_are_refused() -> None:
    for path in others("hpl-mxp"):
        with pytest.raises(ParseError):
            reader_of("hpl-mxp").read(path.read_bytes())


@needs_logs
def test_damaged_outputs() -> None:
    check_mutants("hpl-mxp", (H100,), near=2e-3)
