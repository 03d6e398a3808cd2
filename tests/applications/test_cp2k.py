"""Logs of CP2K: real ones, and damaged ones."""

from __future__ import annotations

import pytest
from applications.log_damage import check_mutants, counted_once, figures, log, needs_logs, noisy, others, refused

from seatrial.applications.readers import reader_of
from seatrial.errors import ParseError

READ: dict[str, dict[str, list[float]]] = {
    "cp2k/cp2k7.1-H2O64-1node-128cores-2threads.txt": {"wall": [26.040]},
    "cp2k/cp2k7.1-LiH-HFX-24nodes.txt": {"wall": [258.937]},
}
REFUSED: dict[str, str] = {
    "cp2k/cp2k-LiH-HFX-1node-short.txt": "has not ended",
}


@needs_logs
@pytest.mark.parametrize("name", READ)
def test_the_elapsed_time_counts(name: str) -> None:
    assert figures("cp2k", log(name)) == READ[name]


@needs_logs
@pytest.mark.parametrize("name", REFUSED)
def test_runs_without_a_figure_are_refused(name: str) -> None:
    refused("cp2k", log(name), REFUSED[name])


@needs_logs
def test_a_log_pasted_twice_counts_once() -> None:
    counted_once("cp2k", log(next(iter(READ))))


@needs_logs
@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"0.555   26.040   26.040", b"0.555   29.040   29.040", "from its begin to its end"),
        (b"0.555   26.040   26.040", b"0.555   26.040   25.040", "the mean of all ranks is above"),
        (b"0.555   26.040   26.040", b"0.555   16.040   26.040", "far below the most"),
        (b"0.555   26.040   26.040", b"0.555   22.040   22.040", "longer than the whole run"),
        (b"PROGRAM ENDED AT ", b"PROGRAM ", "has not ended"),
        (b"*** SCF run converged in     7 steps ***", b"* [ABORT]  SCF run NOT converged *", "CP2K stopped here"),
    ],
)
def test_what_has_no_figure_is_refused(old: bytes, new: bytes, why: str) -> None:
    text = log("cp2k/cp2k7.1-H2O64-1node-128cores-2threads.txt")
    assert old in text
    refused("cp2k", text.replace(old, new), why)


@needs_logs
def test_noise_is_survived() -> None:
    text = log("cp2k/cp2k7.1-LiH-HFX-24nodes.txt")
    assert figures("cp2k", noisy(text)) == figures("cp2k", text)


@needs_logs
def test_logs_of_other_programs_are_refused() -> None:
    for path in others("cp2k"):
        with pytest.raises(ParseError):
            reader_of("cp2k").read(path.read_bytes())


@needs_logs
def test_damaged_logs() -> None:
    # The slowest rank is known to within 10 %: from the mean, the begin and the end.
    check_mutants("cp2k", tuple(READ), near=0.1, share=0.2)
