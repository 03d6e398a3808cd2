"""Figures of several devices at once, made comparable over the number of devices.

If copies of a problem run on several devices (EP), each has its figure, and NAME_all is the sum; a single device has
only NAME. For scaling over the number of devices, the figure of a single device is its sum.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from seatrial.model.benchmark.parameter import Value
from seatrial.model.results.figure_result import ExperimentResult, FigureResult

DEVICES = "devices"
"""The parameter with the number of devices used at once."""
ALL = "_all"

Key = tuple[str, Value | None]


def sums_of_devices(results: Sequence[ExperimentResult]) -> tuple[ExperimentResult, ...]:
    """The results with figures of all devices together: those of single devices are removed, and the figure of one
    device alone gets the name of the sum."""
    summed = summed_figures(results)
    return tuple(
        replace(
            result, figures=tuple(whole for figure in result.figures if (whole := whole_of(result, figure, summed)))
        )
        for result in results
    )


def summed_figures(results: Sequence[ExperimentResult]) -> dict[Key, frozenset[str]]:
    """Benchmark and mode -> the figures that have a NAME_all there."""
    found: dict[Key, frozenset[str]] = {}
    for result in results:
        names = {figure.name.removesuffix(ALL) for figure in result.figures if figure.name.endswith(ALL)}
        found[_key(result)] = found.get(_key(result), frozenset()) | names
    return found


def whole_of(result: ExperimentResult, figure: FigureResult, summed: dict[Key, frozenset[str]]) -> FigureResult | None:
    """The figure as one of all devices of its experiment; None if it is of one of several."""
    if figure.name not in summed.get(_key(result), frozenset()):
        return figure
    return replace(figure, name=figure.name + ALL) if result.experiment.parameters.get(DEVICES) == 1 else None


def _key(result: ExperimentResult) -> Key:
    return result.experiment.benchmark, result.experiment.parameters.get("mode")
