"""What happens to result files on their way: cut, a stretch lost, a character changed. And the values in one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from seatrial.benchmarks import benchmark_named
from seatrial.errors import ParseError
from seatrial.model.results.imported import ImportedFile
from seatrial.model.results.sample import point_key

OUTPUTS = Path(__file__).resolve().parents[3] / "shared" / "data" / "outputs"

Found = dict[tuple[object, ...], tuple[float, ...]]


def sample_file(name: str) -> bytes:
    """A result file of another tool, read in place."""
    if not (OUTPUTS / name).exists():
        pytest.skip(f"needs {OUTPUTS / name}, which is not part of the repository")
    return (OUTPUTS / name).read_bytes()


def figures_in(file: ImportedFile) -> Found:
    """(benchmark, parameters, figure, point) -> the values of its samples, read by the declarations themselves."""
    found: dict[tuple[object, ...], list[float]] = {}
    for experiment in file.experiments:
        benchmark = benchmark_named(experiment.benchmark)
        parameters = tuple(sorted(benchmark.point(experiment.parameters).items()))
        for figure in benchmark.figures:
            for sample in experiment.samples:
                if sample.series == figure.series:
                    key = (experiment.benchmark, parameters, figure.name, point_key(sample.point))
                    found.setdefault(key, []).append(figure.value(sample))
        known = {figure.series for figure in benchmark.figures}
        assert {sample.series for sample in experiment.samples} <= known
    return {key: tuple(values) for key, values in found.items()}


def values_of(file: ImportedFile, figure: str) -> dict[object, float]:
    """Value of a figure by `size_B`, of a file with one experiment that has it."""
    return {dict(key[3]).get("size_B"): values[0] for key, values in figures_in(file).items() if key[2] == figure}


def cuts(data: bytes) -> Iterator[bytes]:
    """The file cut at each of its bytes (of a long file at 500 places), and there with a line break."""
    step = max(1, len(data) // 500)
    for end in range(0, len(data), step):
        yield data[:end]
        yield data[:end] + b"\n"


def losses(data: bytes, seed: int, tries: int = 400) -> Iterator[bytes]:
    """The file without a stretch of 1 to 400 bytes that is no whole number of lines of one length."""
    dice = random.Random(seed)
    for _ in range(tries):
        start = dice.randrange(len(data))
        length = dice.randint(1, 400)
        yield data[:start] + data[start + length :]


def changes(data: bytes, seed: int, tries: int = 400) -> Iterator[bytes]:
    """The file with one byte that is another, one more, or one fewer."""
    dice = random.Random(seed)
    for _ in range(tries):
        at = dice.randrange(len(data))
        other = bytes([dice.choice(b"0123456789.,-eE# \n\tNaxK")])
        yield dice.choice(
            (data[:at] + other + data[at + 1 :], data[:at] + other + data[at:], data[:at] + data[at + 1 :])
        )


def readable(read: Callable[[bytes], ImportedFile], data: bytes) -> Found | None:
    """The figures of a file, None where it is refused; any other exception is a defect."""
    try:
        return figures_in(read(data))
    except ParseError:
        return None


def is_part_of(found: Found, whole: Found) -> bool:
    """Whether every value stands in the undamaged file, under whichever parameters (a lost comment takes them away)."""
    known: dict[tuple[object, ...], set[float]] = {}
    for key, values in whole.items():
        known.setdefault((key[0], *key[2:]), set()).update(values)
    return all(set(values) <= known.get((key[0], *key[2:]), set()) for key, values in found.items())
