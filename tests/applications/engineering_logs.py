"""What the tests of logs of engineering codes share: figures, parameters and the refusal of a file."""

from __future__ import annotations

import pytest

from seatrial.applications.readers import reader_of
from seatrial.benchmarks import benchmark_named
from seatrial.errors import ParseError
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import readings

Figures = dict[tuple[str, ...], float]


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
