"""Logs of CASTEP: real ones, and damaged ones."""

from __future__ import annotations

import pytest
from applications.log_damage import check_mutants, counted_once, figures, log, needs_logs, noisy, others, refused

from seatrial.applications.readers import reader_of
from seatrial.errors import ParseError

READ: dict[str, dict[str, list[float]]] = {
    "castep/castep-al3x3-16nodes-2048ranks.txt": {"wall": [139.28], "calculation": [120.85]},
}


@needs_logs
@pytest.mark.parametrize("name", READ)
def test_the_elapsed_time_counts(name: str) -> None:
    assert figures("castep", log(name)) == READ[name]


@needs_logs
def test_a_log_pasted_twice_counts_once() -> None:
    counted_once("castep", log(next(iter(READ))))


@needs_logs
@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"139.28 s", b"149.28 s", "not the sum"),
        (b"120.85 s", b"128.85 s", "not the sum"),
        (b"Total time ", b"Total ", "has not ended"),
        (b"Finalisation time", b"Finalisation", "did not end"),
    ],
)
def test_what_has_no_figure_is_refused(old: bytes, new: bytes, why: str) -> None:
    text = log("castep/castep-al3x3-16nodes-2048ranks.txt")
    assert old in text
    refused("castep", text.replace(old, new), why)


@needs_logs
def test_noise_is_survived() -> None:
    text = log("castep/castep-al3x3-16nodes-2048ranks.txt")
    assert figures("castep", noisy(text)) == figures("castep", text)


@needs_logs
def test_logs_of_other_programs_are_refused() -> None:
    for path in others("castep"):
        with pytest.raises(ParseError):
            reader_of("castep").read(path.read_bytes())


@needs_logs
def test_damaged_logs() -> None:
    check_mutants("castep", tuple(READ), share=0.5)
