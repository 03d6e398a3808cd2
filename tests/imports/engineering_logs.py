"""What the tests of logs of engineering codes share: the samples, the figures in a file, and mutants of a sample."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from random import Random

import pytest
from conftest import SHARED_DATA

from seatrial.benchmarks import benchmark_named
from seatrial.errors import ParseError
from seatrial.imports.readers import reader_of
from seatrial.model.machine import Machine
from seatrial.model.reading import readings

SAMPLES = SHARED_DATA / "applications"
needs_samples = pytest.mark.skipif(
    not SAMPLES.is_dir(), reason="the third-party samples (shared/data/applications) are not here"
)
MUTANTS = int(os.environ.get("SEATRIAL_MUTATIONS", "60"))
"""Mutants of each sample and kind of damage; SEATRIAL_MUTATIONS=2000 in the environment makes so many."""

Figures = dict[tuple[str, ...], float]


def sample(name: str) -> bytes:
    return (SAMPLES / name).read_bytes()


def figures(kind: str, data: bytes | str) -> Figures:
    """Every figure with the parameters that tell experiments of one file apart. Raises ParseError."""
    file = reader_of(kind).read(data.encode() if isinstance(data, str) else data)
    assert not file.failed
    found: Figures = {}
    for experiment in file.experiments:
        assert not experiment.failed
        benchmark = benchmark_named(experiment.benchmark)
        point = benchmark.point(experiment.parameters)
        apart = [f"timer={point['timer']}"] if "timer" in point else []
        for reading in readings(benchmark, Machine("m"), point, experiment.samples):
            found[(reading.figure.name, *apart)] = reading.value
    return found


def stated(kind: str, data: bytes | str) -> dict[str, object]:
    """The parameters of the only experiment of a file."""
    (experiment,) = reader_of(kind).read(data.encode() if isinstance(data, str) else data).experiments
    return dict(experiment.parameters)


def refusal(kind: str, data: bytes | str) -> str:
    """The message with which a file is refused: one sentence in one line."""
    with pytest.raises(ParseError) as error:
        figures(kind, data)
    assert "\n" not in error.value.message
    return error.value.message


def cut_mutants(data: bytes, seed: str) -> Iterator[bytes]:
    """The file with lines lost, doubled or moved, cut at either end, glued to itself, with bytes that are no UTF-8 or
    colours between its lines. No number is changed, so a figure that is still there must be the true one."""
    lines = data.splitlines(keepends=True)
    for number in range(MUTANTS):
        dice = Random(f"{seed} {number}")
        changed = list(lines)
        for _ in range(dice.choice((1, 1, 2, 4))):
            at = dice.randrange(len(changed) + 1)
            span = dice.choice((1, 1, 2, 10, 100))
            what = dice.randrange(6)
            if what == 0:
                del changed[at : at + span]
            elif what == 1:
                changed[at:at] = changed[at : at + span]
            elif what == 2:
                changed = changed[:at] if dice.randrange(2) else changed[at:]
            elif what == 3:
                changed.insert(at, b"\x1b[1;31m\xff\xfe srun: job 17 \x80 queued\x1b[0m\r\n")
            elif what == 4:
                moved = changed[at : at + span]
                del changed[at : at + span]
                place = dice.randrange(len(changed) + 1)
                changed[place:place] = moved
            else:
                changed += lines
        yield b"".join(changed)


def number_mutants(data: bytes, seed: str) -> Iterator[bytes]:
    """The file with one to three characters of its numbers changed."""
    places = [i for i, character in enumerate(data) if chr(character) in "0123456789.+-eE"]
    for number in range(MUTANTS):
        dice = Random(f"{seed} {number}")
        changed = bytearray(data)
        for _ in range(dice.choice((1, 1, 3))):
            changed[dice.choice(places)] = dice.choice(b"0123456789.eE+- xn")
        yield bytes(changed)


def survives(kind: str, name: str, apart: Mapping[str, float] | None = None) -> None:
    """Cut mutants of a sample give its own figures or none; changed numbers never end in anything but a ParseError.

    `apart` are figures that may differ by this share, where lines at the end are gone that nothing else refers to.
    """
    shares = apart or {}
    data = sample(name)
    try:
        whole = figures(kind, data)
    except ParseError:
        whole = {}
    for mutant in cut_mutants(data, name):
        try:
            found = figures(kind, mutant)
        except ParseError:
            continue
        for key, value in found.items():
            true = whole.get(key)
            assert true is not None, (name, key, mutant[-300:])
            assert value == pytest.approx(true, rel=shares.get(key[0], 1e-9)), (name, key, mutant[-300:])
    for mutant in number_mutants(data, name):
        try:
            found = figures(kind, mutant)
        except ParseError:
            continue
        assert all(value > 0 for value in found.values())
