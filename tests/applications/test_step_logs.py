"""Logs of M-PSDNS and OpenSBLI: real ones, and what goes wrong in them."""

from __future__ import annotations

import pytest
from applications.log_damage import check_mutants, figures, log, needs_logs, others, refused

from seatrial.applications.readers import reader_of
from seatrial.errors import ParseError

PSDNS = ("psdns/m-psdns-2048-8tasks.txt", "psdns/m-psdns-16384-512nodes.txt", "psdns/m-psdns-32768-4096nodes.txt")
OPENSBLI = ("opensbli/opensbli-tgv512-1node.txt", "opensbli/opensbli-tgv512-thomas-short.txt")


@needs_logs
@pytest.mark.parametrize(("name", "step_s"), tuple(zip(PSDNS, (5.596, 13.698, 15.79), strict=True)))
def test_steady_steps_of_M_PSDNS(name: str, step_s: float) -> None:
    assert figures("psdns", log(name))["step"][0] == pytest.approx(step_s, rel=1e-3)


@needs_logs
def test_the_whole_run_of_M_PSDNS_is_another_figure() -> None:
    assert figures("psdns", log(PSDNS[0]))["wall"] == [181.2]
    (experiment,) = reader_of("psdns").read(log(PSDNS[0])).experiments
    assert experiment.parameters == {"nx": 2048, "ny": 2048, "nz": 2048, "ranks": 8, "p": 2, "q": 4}
    assert experiment.notes == {"steps": 20, "slower_steps_left_out": 1}


@needs_logs
@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"overall wall", b"wall", "no wall time"),
        (b"159.343", b"259.343", "the CPU time of the last step"),
        (b"181.2", b"81.2", "longer than the whole run"),
        (b"5.546      5.595", b"5.546      9.595", "apart"),
        (b"5.498      5.546", b"5.598      5.546", "min <= ave <= max"),
    ],
)
def test_a_damaged_M_PSDNS(old: bytes, new: bytes, why: str) -> None:
    refused("psdns", log(PSDNS[0]).replace(old, new), why)


@needs_logs
@pytest.mark.parametrize(("name", "time_s"), tuple(zip(OPENSBLI, (739.091139, 1162.875912), strict=True)))
def test_iterations_of_OpenSBLI(name: str, time_s: float) -> None:
    found = figures("opensbli", log(name))
    assert found["wall"] == [time_s]
    assert found["step"] == [pytest.approx(time_s / 100)]


@needs_logs
@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"Total Wall", b"Wall", "has not ended"),
        (b"739.091139", b"749.091139", "iterations of this time are not"),
        (b"performed 100", b"performed 200", "were performed"),
    ],
)
def test_a_damaged_OpenSBLI(old: bytes, new: bytes, why: str) -> None:
    refused("opensbli", log(OPENSBLI[0]).replace(old, new), why)


@needs_logs
@pytest.mark.parametrize(("kind", "folder", "names"), [("psdns", "psdns", PSDNS), ("opensbli", "opensbli", OPENSBLI)])
def test_only_one_run_of_its_own_format(kind: str, folder: str, names: tuple[str, ...]) -> None:
    for name in names if kind == "opensbli" else ():  # every rank prints what could begin a run
        with pytest.raises(ParseError):
            reader_of(kind).read(log(name) * 2)
    for path in others(folder):
        with pytest.raises(ParseError):
            reader_of(kind).read(path.read_bytes())


@needs_logs
def test_damaged_logs() -> None:
    check_mutants("psdns", PSDNS, near=0.02, unguarded=("wall",))
    check_mutants("opensbli", OPENSBLI)
