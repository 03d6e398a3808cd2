"""Results of IO500: real ones, and damaged ones."""

from __future__ import annotations

import math

import pytest
from applications.log_damage import check_mutants, figures, log, needs_logs, noisy, others, refused

from seatrial.applications.readers import reader_of
from seatrial.errors import ParseError

DAOS = "io500/daos-lrz-2023-result.txt"
DDN = "io500/ddn-2025-result-summary.txt"
CERN = "io500/cern-2019-old-format-summary.txt"
GIB = 2.0**30


@needs_logs
def test_the_score_is_the_root_of_bandwidth_and_operations() -> None:
    found = figures("io500", log(DDN))
    assert found["score"] == [115.514482]
    assert found["bandwidth"] == [pytest.approx(39.259077 * GIB)]
    assert found["operations"] == [339885.612]
    assert found["ior_hard_read"] == [pytest.approx(56.444105 * GIB)]
    assert len(found) == 3 + 4 + 8


@needs_logs
def test_sections_with_keys() -> None:
    found = figures("io500", log(DAOS))
    assert found["score"] == [2111.059073]
    assert found["bandwidth"] == [pytest.approx(433.050081 * GIB)]
    assert found["find"] == [pytest.approx(19221771.64)]
    file = reader_of("io500").read(log(DAOS))
    assert (file.version, file.experiments[0].parameters) == ("isc23", {"mode": "standard", "ranks": 2688})


@needs_logs
def test_old_versions_print_GB_and_a_product() -> None:
    found = figures("io500", log(CERN))
    assert found["product"] == [36.0674]
    assert found["score"] == [pytest.approx(math.sqrt(36.0674), rel=1e-5)]
    assert found["bandwidth"] == [2.85287e9]
    (experiment,) = reader_of("io500").read(log(CERN)).experiments
    assert "square root" in experiment.remarks[0]


@needs_logs
@pytest.mark.parametrize(
    ("name", "old", "new", "why"),
    [
        (DDN, b"115.514482", b"116.514482", "the score is 116.514"),
        (DDN, b"Bandwidth 39.259077", b"Bandwidth 39.359077", "the geometric mean of its phases is 39.2591"),
        (DDN, b"8.085403 GiB/s", b"9.085403 GiB/s", "the geometric mean of its phases"),
        (DDN, b"8.085403 GiB/s", b"8.085403 GB/s", "in GB/s and in GiB/s"),
        (DDN, b"8.085403 GiB/s", b"8.085403 kIOPS", "not a unit of this phase"),
        (DDN, b"315.199 seconds", b"315.199 seconds [INVALID]", "is invalid"),
        (DDN, b"TOTAL 115.514482", b"TOTAL 115.514482 [INVALID]", "is invalid"),
        (DDN, b"[SCORE ]", b"[SCORE INVALID]", "is invalid"),
        (DDN, b"[SCORE ]", b"", "has not ended"),
        (DDN, b"[RESULT]                 find", b"[      ]                 find", "no result of find"),
        (DDN, b"time 315.199 seconds", b"time 315.199", "a damaged line"),
        (DAOS, b"SCORE           = 2111", b"SCORE           = 2011", "the score is 2011"),
        (DAOS, b"BW              = ", b"XX = ", "has not ended"),
        (DAOS, b"[mdtest-hard-read]", b"[mdtest-soft-read]", "no result of mdtest_hard_read"),
        (DAOS, b"; END", b"; ERROR INVALID Runtime of phase is below stonewall time\n; END", "is invalid"),
    ],
)
def test_a_damaged_or_invalid_run_is_refused(name: str, old: bytes, new: bytes, why: str) -> None:
    text = log(name)
    assert old in text
    refused("io500", text.replace(old, new), why)


@needs_logs
@pytest.mark.parametrize("name", [DAOS, DDN, CERN])
def test_two_runs_in_one_file_are_refused(name: str) -> None:
    with pytest.raises(ParseError):
        reader_of("io500").read(log(name) * 2)


@needs_logs
def test_noise_is_survived() -> None:
    text = log(DDN)
    assert figures("io500", noisy(text)) == figures("io500", text)


@needs_logs
def test_results_of_other_programs_are_refused() -> None:
    for path in others("io500"):
        with pytest.raises(ParseError):
            reader_of("io500").read(path.read_bytes())


@needs_logs
def test_damaged_results() -> None:
    # Two phases may be exchanged, which leaves the score as it is.
    phases = ("ior_easy_write", "ior_hard_write", "ior_easy_read", "ior_hard_read", "find")
    operations = [
        f"mdtest_{files}_{name}" for files in ("easy", "hard") for name in ("write", "stat", "read", "delete")
    ]
    check_mutants("io500", (DAOS, DDN, CERN), near=2e-3, unguarded=(*phases, *operations))


@needs_logs
def test_phases_that_were_printed_twice_count_once() -> None:
    """Old scripts print them as they run and again at the end."""
    text = log(DDN)
    rows = b"".join(row for row in text.splitlines(keepends=True) if row.startswith(b"[RESULT]"))
    assert figures("io500", rows + text) == figures("io500", text)
    refused("io500", rows.replace(b"8.085403 GiB/s", b"9.085403 GiB/s") + text, "another result of this phase")


@needs_logs
def test_phases_of_unlike_work_are_remarked() -> None:
    text = log(DDN)
    (experiment,) = reader_of("io500").read(text.replace(b"time 158.279 seconds", b"time 58.279 seconds")).experiments
    assert any("more work than the other phases" in remark for remark in experiment.remarks)
    assert not any("more work" in remark for one in reader_of("io500").read(text).experiments for remark in one.remarks)
