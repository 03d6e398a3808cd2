"""Logs of NWChem: real ones, and damaged ones."""

from __future__ import annotations

import pytest
from applications.log_damage import check_mutants, counted_once, figures, log, needs_logs, noisy, others, refused

from seatrial.applications.readers import reader_of
from seatrial.errors import ParseError

READ: dict[str, dict[str, list[float]]] = {
    "nwchem/nwchem-c240-128ranks.txt": {"wall": [745.1]},
}


@needs_logs
@pytest.mark.parametrize("name", READ)
def test_the_elapsed_time_counts(name: str) -> None:
    assert figures("nwchem", log(name)) == READ[name]


@needs_logs
def test_a_log_pasted_twice_counts_once() -> None:
    counted_once("nwchem", log(next(iter(READ))))


@needs_logs
@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"745.1s", b"74.1s", "longer than the whole run"),
        (b"745.1s", b"7451s", "has not ended"),
        (b" Total times ", b" Total ", "has not ended"),
        (b" Task  times ", b" For more information see the NWChem manual\n Task  times ", "NWChem failed"),
    ],
)
def test_what_has_no_figure_is_refused(old: bytes, new: bytes, why: str) -> None:
    text = log("nwchem/nwchem-c240-128ranks.txt")
    assert old in text
    refused("nwchem", text.replace(old, new), why)


@needs_logs
def test_noise_is_survived() -> None:
    text = log("nwchem/nwchem-c240-128ranks.txt")
    assert figures("nwchem", noisy(text)) == figures("nwchem", text)


@needs_logs
def test_logs_of_other_programs_are_refused() -> None:
    for path in others("nwchem"):
        with pytest.raises(ParseError):
            reader_of("nwchem").read(path.read_bytes())


@needs_logs
def test_damaged_logs() -> None:
    check_mutants("nwchem", tuple(READ), unguarded=("wall",), share=0.2)
