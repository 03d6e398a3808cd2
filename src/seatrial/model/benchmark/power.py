"""The figures that the probe `power` adds to every benchmark: energy and power of the time in which it takes its
samples, and what they mean for each of its figures.

Their samples are made from the readings of sensors, not by the program: one in a repeat for each scope. The error of a
value, which holds what the sensor cannot show, is half of the sample's resolution.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from seatrial.model.benchmark.benchmark import Benchmark, Better, Figure
from seatrial.model.benchmark.parameter import Value
from seatrial.model.benchmark.quotients import WorkRate
from seatrial.model.machine.power import Scope
from seatrial.model.results.sample import Sample

ENERGY, MEAN_POWER, PEAK_POWER, OVER_IDLE = "energy", "mean_power", "peak_power", "energy_over_idle"
SCOPE = "scope"
"""The coordinate of these figures: what the sensors measure."""
SCOPES = (Scope.NODE, Scope.PACKAGE, Scope.MEMORY, Scope.DEVICE)
"""Those whose power may be that of a benchmark: all of its node, or all parts of one kind in the node."""
_SERIES = "power."
_AMOUNT = "amount"
_OWN = (
    (ENERGY, "J", "of the sampling phase; of a command or an application, of one run"),
    (MEAN_POWER, "W", "energy over time"),
    (PEAK_POWER, "W", "the highest value that the sensors showed"),
    (OVER_IDLE, "J", "less the idle power before and after, for the same time"),
)


def is_of_power(figure: Figure) -> bool:
    """Whether it is one of these figures."""
    return figure.series.startswith(_SERIES)


def with_power(benchmark: Benchmark) -> Benchmark:
    """The benchmark with these figures; as it is if its results are always of other tools."""
    program = benchmark.program
    if not program.can_run and getattr(program, "declaration", None) is None:
        return benchmark
    taken = {figure.name for figure in benchmark.figures}
    each = (of_result(figure) for figure in benchmark.figures if not figure.is_secondary)
    added = (*(_figure(name, unit, Better.LOWER, work) for name, unit, work in _OWN), *filter(None, each))
    return replace(benchmark, figures=(*benchmark.figures, *(figure for figure in added if figure.name not in taken)))


def of_result(figure: Figure) -> Figure | None:
    """What a figure costs: of a rate, the work per joule, which is the rate per watt; of a time, its energy. None if it
    is neither."""
    if figure.is_rate:
        unit = f"{figure.unit.removesuffix('/s')}/J"
        return _figure(f"{figure.name}_per_watt", unit, Better.HIGHER, "its median rate over the mean power")
    if figure.unit == "s" and figure.better is Better.LOWER:
        return _figure(f"{figure.name}_energy", "J", Better.LOWER, "its median time at the mean power")
    return None


def value_of_result(figure: Figure, value: float, mean_W: float) -> float:
    """The value of `of_result`. Raises ZeroDivisionError."""
    return value / mean_W if figure.is_rate else value * mean_W


def power_sample(name: str, scope: Scope, value: float, error: float, point: Mapping[str, Value] = {}) -> Sample:
    """A sample of the figure of that name. `error` is a half-width in its unit."""
    resolution = 2.0 * error / abs(value) if value else 0.0
    return Sample(
        _SERIES + name, 0, 1.0, {_AMOUNT: value}, 0, {**point, SCOPE: scope.value}, {"resolution": resolution}
    )


def _figure(name: str, unit: str, better: Better, work: str) -> Figure:
    return Figure(name, unit, better, WorkRate(_AMOUNT), work, _SERIES + name, is_secondary=True)
