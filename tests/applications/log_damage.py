"""Damaged logs of applications: cut at any line, lines lost, repeated or swapped, characters changed.

A damaged log is refused, or gives numbers of the whole one. SEATRIAL_MUTATIONS=10000 in the environment makes so many
mutants of a format, in place of 150.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random

import pytest
from conftest import SHARED_DATA

from seatrial.applications.readers import reader_of
from seatrial.benchmarks import benchmark_named
from seatrial.errors import ParseError
from seatrial.model.machine.machine import Machine
from seatrial.model.results.imported import ImportedFile
from seatrial.model.results.record import readings

APPLICATIONS = SHARED_DATA / "applications"
MUTANTS = int(os.environ.get("SEATRIAL_MUTATIONS", "150"))
needs_logs = pytest.mark.skipif(
    not APPLICATIONS.is_dir(), reason="the logs of real applications (shared/data/applications) are not here"
)


def log(name: str) -> bytes:
    """The content of a real log."""
    return (APPLICATIONS / name).read_bytes()


def figures(kind: str, data: bytes) -> dict[str, list[float]]:
    """Figure -> its values, of all experiments that are not reported as wrong. Raises ParseError."""
    return figures_of(reader_of(kind).read(data))


def figures_of(file: ImportedFile) -> dict[str, list[float]]:
    """As `figures`, of a file that was read."""
    found: dict[str, list[float]] = {}
    for experiment in file.experiments:
        if file.failed or experiment.failed:
            continue
        benchmark = benchmark_named(experiment.benchmark)
        point = benchmark.point(experiment.parameters)
        for reading in readings(benchmark, Machine("m"), point, experiment.samples):
            found.setdefault(reading.figure.name, []).append(reading.value)
    return found


def refused(kind: str, data: bytes, why: str) -> None:
    """Assert that a reader refuses this file with these words."""
    with pytest.raises(ParseError) as caught:
        reader_of(kind).read(data)
    assert why in str(caught.value), str(caught.value)


def counted_once(kind: str, data: bytes) -> None:
    """Assert that a log which was pasted twice counts once, and that a remark says so."""
    wanted, twice = reader_of(kind).read(data), reader_of(kind).read(data * 2)
    assert [e.samples for e in twice.experiments] == [e.samples for e in wanted.experiments]
    assert "the same results again" in twice.experiments[0].remarks[0]


def noisy(text: bytes) -> bytes:
    """A log as `mpirun --tag-output` and a terminal give it, with bytes that are no UTF-8 around it."""
    tagged = b"".join(b"[1,0]<stdout>:" + line.rstrip(b"\n") + b"\r\n" for line in text.splitlines(keepends=True))
    return b"\x1b[1;33mwarning: \xff\xfe\xe9\x1b[0m\r\n" + tagged + b"srun: job 17 done \x80\n"


def check_mutants(
    kind: str,
    names: tuple[str, ...],
    *,
    near: float = 1e-3,
    unguarded: tuple[str, ...] = (),
    fewer: tuple[str, ...] = (),
    share: float = 1.0,
) -> None:
    """Assert that every mutant is refused, or that each figure is `near` (a share) one of the whole log's.

    `unguarded` figures stand in the log once, so that nothing contradicts a changed digit; `fewer` are those that are
    less if the last steps are lost and nothing states how many there were. Of long logs, a `share` of the mutants is
    tried, to save time.
    """
    texts = [log(name) for name in names]
    whole = [_or_none(kind, text) for text in texts]
    for number in range(round(share * MUTANTS)):
        which = number % len(texts)
        data = mutant(texts[which], Random(f"{kind} {number}"))
        found = _or_none(kind, data)
        for figure, values in (found or {}).items():
            if figure in unguarded:
                continue
            true = (whole[which] or {}).get(figure, [])
            for value in values:
                is_near = any(abs(value - one) <= near * one for one in true)
                is_fewer = figure in fewer and any(0 < value < one for one in true)
                assert is_near or is_fewer, (names[which], number, figure, value, true)


def mutant(data: bytes, rng: Random) -> bytes:
    """The bytes after some damage: the same for the same state of `rng`."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        lines = data.splitlines(keepends=True) or [b""]
        at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
        match rng.randrange(8):
            case 0:
                lines = lines[:at]
            case 1:
                lines = lines[at:]
            case 2:
                del lines[at : at + rng.choice((1, 1, 3, 20))]
            case 3:
                lines.insert(at, lines[other])
            case 4:
                lines[at], lines[other] = lines[other], lines[at]
            case 5:
                lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]
            case _:
                for _ in range(rng.choice((1, 1, 2, 10))):
                    lines[at] = _changed(lines[at], rng)
                    at = rng.randrange(len(lines))
        data = b"".join(lines)
    return data


def _changed(line: bytes, rng: Random) -> bytes:
    """One character changed, of a number if there is one."""
    if not line:
        return line
    places = [i for i, byte in enumerate(line) if chr(byte).isdigit()]
    place = rng.choice(places) if places and rng.random() < 0.8 else rng.randrange(len(line))
    new = rng.choice(b"0123456789") if rng.random() < 0.8 else rng.choice(b".-+eE ,\xff\x1b:=x")
    return line[:place] + bytes([new]) + line[place + 1 :]


def _or_none(kind: str, data: bytes) -> Mapping[str, list[float]] | None:
    try:
        return figures(kind, data)
    except ParseError as error:
        assert str(error).strip()
        return None


def others(kind_folder: str) -> Iterator[Path]:
    """The real logs of other programs."""
    return (path for path in sorted(APPLICATIONS.rglob("*.txt")) if path.parent.name != kind_folder)
