"""Logs of VASP: real ones, and damaged ones."""

from __future__ import annotations

import pytest
from applications.log_damage import check_mutants, figures, log, needs_logs, noisy, others, refused

from seatrial.applications.readers import reader_of
from seatrial.errors import ParseError

READ: dict[str, dict[str, list[float]]] = {
    "vasp/vasp6.4.1-CdTe-1node.txt": {"wall": [6139.715], "loop": [6120.8463]},
}
REFUSED: dict[str, str] = {
    "vasp/vasp6.4.1-CdTe-crash-early.txt": "from another program",
}


@needs_logs
@pytest.mark.parametrize("name", READ)
def test_the_elapsed_time_counts(name: str) -> None:
    assert figures("vasp", log(name)) == READ[name]


@needs_logs
@pytest.mark.parametrize("name", REFUSED)
def test_runs_without_a_figure_are_refused(name: str) -> None:
    refused("vasp", log(name), REFUSED[name])


@needs_logs
def test_ionic_steps_that_are_not_all_in_the_file_have_no_sum() -> None:
    text = log("vasp/vasp6.4.1-CdTe-1node.txt")
    assert "loop" not in figures("vasp", text.replace(b"LOOP+:", b"LOOPS:"))
    assert "loop" not in figures("vasp", text.replace(b"Iteration      1(   1)", b"Iteration      2(   1)"))


@needs_logs
def test_two_runs_in_one_file_are_refused() -> None:
    refused("vasp", log(next(iter(READ))) * 2, "a second run begins here")


@needs_logs
@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"6139.715", b"5139.715", "longer than the whole run"),
        (b"6139.715", b"61390715", "has not ended"),
        (b"6120.8463", b"4120.8463", "electronic steps before it took longer"),
        (b"Elapsed time (sec)", b"Elapsed", "has not ended"),
        (b"Total CPU time used (sec):     6", b"Total CPU time used (sec):    76", "more CPU time"),
    ],
)
def test_what_has_no_figure_is_refused(old: bytes, new: bytes, why: str) -> None:
    text = log("vasp/vasp6.4.1-CdTe-1node.txt")
    assert old in text
    refused("vasp", text.replace(old, new), why)


@needs_logs
def test_noise_is_survived() -> None:
    text = log("vasp/vasp6.4.1-CdTe-1node.txt")
    assert figures("vasp", noisy(text)) == figures("vasp", text)


@needs_logs
def test_logs_of_other_programs_are_refused() -> None:
    for path in others("vasp"):
        with pytest.raises(ParseError):
            reader_of("vasp").read(path.read_bytes())


@needs_logs
def test_damaged_logs() -> None:
    check_mutants("vasp", tuple(READ), unguarded=("wall", "loop"), share=0.2)
