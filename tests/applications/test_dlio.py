"""Results of DLIO: a real one, and damaged ones."""

from __future__ import annotations

import pytest
from applications.log_damage import check_mutants, figures, log, needs_logs, noisy, others, refused

from seatrial.applications.readers import reader_of
from seatrial.errors import ParseError

SUMMARY = "dlio/summary.json.txt"
LOG = """\
[OUTPUT] 2023-04-04T16:35:55.155745 Saved outputs in /out
[OUTPUT] Averaged metric over all steps/epochs
[METRIC] ==========================================================
[METRIC] Number of Simulated Accelerators: 2
[METRIC] Training Accelerator Utilization [AU] (%): 97.9907 (1.9628)
[METRIC] Training Throughput (samples/second): 5.0950 (0.0533)
[METRIC] Training I/O Throughput (MB/second): 1139.7296 (11.9197)
[METRIC] train_au_meet_expectation: success
[METRIC] ==========================================================
"""


@needs_logs
def test_means_over_the_epochs() -> None:
    assert figures("dlio", log(SUMMARY)) == {
        "train_throughput": [5.095023867138283],
        "train_io": [pytest.approx(1139.7296277439752 * 2**20)],
        "train_utilisation": [pytest.approx(0.9799071109677541)],
    }
    file = reader_of("dlio").read(log(SUMMARY))
    assert (file.host, file.experiments[0].parameters) == ("7a3725255f7c", {"accelerators": 2, "epochs": 4})


def test_metrics_of_a_log() -> None:
    found = figures("dlio", LOG.encode())
    assert found["train_throughput"] == [5.095]
    assert found["train_io"] == [pytest.approx(1139.7296 * 2**20)]
    (experiment,) = reader_of("dlio").read(LOG.replace("success", "fail").encode()).experiments
    assert "waited for data" in experiment.remarks[0]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("[METRIC] Number", "[MET] Number", "from another program"),
        ("97.9907", "197.9907", "a utilisation of"),
        ("1139.7296 (11", "2139.7296 (11", "its deviation is not"),
        ("Training I/O", "I/O", "no line `[METRIC]` of train"),
        ("Training", "Other", "no throughput"),
    ],
)
def test_a_damaged_log_is_refused(old: str, new: str, why: str) -> None:
    assert old in LOG
    refused("dlio", LOG.replace(old, new).encode(), why)


@needs_logs
@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"97.99071109677541", b"96.99071109677541", "not that of the epochs"),
        (b"5.085087117188613", b"6.085087117188613", "not that of the epochs"),
        (b"5.085087117188613,", b"", "3 epochs of 4"),
        (b"1139.7296277439752", b"1239.7296277439752", "its deviation is not"),
        (b'"metric"', b'"other"', "not the summary.json"),
        (b"2023-04-04T16:35:55", b"2023-04-04T16:30:55", "has not ended"),
    ],
)
def test_a_damaged_summary_is_refused(old: bytes, new: bytes, why: str) -> None:
    assert old in log(SUMMARY)
    refused("dlio", log(SUMMARY).replace(old, new), why)


@needs_logs
@pytest.mark.parametrize("name", ["0_output", "per_epoch_stats"])
def test_other_files_of_DLIO_are_refused(name: str) -> None:
    refused("dlio", log(f"dlio/{name}.json.txt"), "not the summary.json")


def test_two_runs_in_one_file_are_refused() -> None:
    refused("dlio", (LOG * 2).encode(), "a second run")


def test_noise_is_survived() -> None:
    text = LOG.encode()
    assert figures("dlio", noisy(text)) == figures("dlio", text)


@needs_logs
def test_results_of_other_programs_are_refused() -> None:
    for path in others("dlio"):
        with pytest.raises(ParseError):
            reader_of("dlio").read(path.read_bytes())


@needs_logs
def test_damaged_results() -> None:
    check_mutants("dlio", (SUMMARY,))
