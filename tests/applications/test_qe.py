"""Logs of Quantum ESPRESSO: real ones, and damaged ones."""

from __future__ import annotations

import pytest
from applications.log_damage import check_mutants, counted_once, figures, log, needs_logs, noisy, others, refused

from seatrial.applications.readers import reader_of
from seatrial.errors import ParseError

READ: dict[str, dict[str, list[float]]] = {
    "qe/pw6.6-scf-done.txt": {"wall": [1.46]},
    "qe/pw7.5-scf-done.txt": {"wall": [2.33]},
    "qe/nomad-benchmark2-HO-scf.txt": {"wall": [4.71]},
}
REFUSED: dict[str, str] = {
    "qe/pw6.6-out-of-walltime-JOB-DONE.txt": "stopped before it was done",
    "qe/pw6.6-out-of-walltime-interrupted.txt": "stopped before it was done",
    "qe/pw6.8-npools-too-high.txt": "no line `PWSCF",
}


@needs_logs
@pytest.mark.parametrize("name", READ)
def test_the_elapsed_time_counts(name: str) -> None:
    assert figures("qe", log(name)) == READ[name]


@needs_logs
@pytest.mark.parametrize("name", REFUSED)
def test_runs_without_a_figure_are_refused(name: str) -> None:
    refused("qe", log(name), REFUSED[name])


@needs_logs
def test_a_log_pasted_twice_counts_once() -> None:
    counted_once("qe", log(next(iter(READ))))


@needs_logs
@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"4.71s WALL", b"9.71s WALL", "from its begin to its end"),
        (b"4.71s WALL", b"4m71.00s WALL", "from its begin to its end"),
        (b"4.71s WALL", b"0.00s WALL", "0 s"),
        (b"4.71s WALL", b"3.71s WALL", "the stages of the run took"),
        (b"14:41:21", b"15:41:21", "from its begin to its end"),
        (b"JOB DONE.", b"", "has not ended"),
        (
            b"convergence has been achieved in   8",
            b"convergence NOT achieved after   8 iterations: stopping",
            "did not converge",
        ),
        (
            b"     Writing output data",
            b"     Maximum CPU time exceeded\n     Writing output data",
            "stopped before it was done",
        ),
        (b"     Writing output data", b"     Error in routine davcio (10):\n     Writing output data", "pw.x failed"),
    ],
)
def test_what_has_no_figure_is_refused(old: bytes, new: bytes, why: str) -> None:
    text = log("qe/nomad-benchmark2-HO-scf.txt")
    assert old in text
    refused("qe", text.replace(old, new), why)


@needs_logs
def test_noise_is_survived() -> None:
    text = log("qe/pw7.5-scf-done.txt")
    assert figures("qe", noisy(text)) == figures("qe", text)


@needs_logs
def test_logs_of_other_programs_are_refused() -> None:
    for path in others("qe"):
        with pytest.raises(ParseError):
            reader_of("qe").read(path.read_bytes())


@needs_logs
def test_damaged_logs() -> None:
    # Only the whole seconds of the begin and the end confirm the last digits of these short runs.
    check_mutants("qe", tuple(READ), near=1.0)
