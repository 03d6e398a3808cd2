"""The rooflines of devices: the rate of their memory, the rate of their vector units, and the kernels below.

A kernel is a point at its ratio of flop to bytes if its benchmark counts both in one run. Bytes that cross the link to
the host, and do not go to the device's memory, do not count.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from seatrial.analysis.roles import Source, figures_with, is_of_devices
from seatrial.benchmarks import benchmark_named, registry
from seatrial.model.figure_result import ExperimentResult, FigureResult
from seatrial.model.limit import ELEMENT_BITS
from seatrial.model.role import Role
from seatrial.report.charts.roofline_elements import (
    Point,
    Roof,
    Roofline,
    best,
    compute_roofs,
    origin_of,
    settings_text,
    with_ridges,
)
from seatrial.report.pages.view import TrialView
from seatrial.report.units import show_percent

_MOST = 4
"""Devices that are drawn; more devices are usually alike, and the table of figures has all."""


def device_rooflines(view: TrialView) -> Iterator[tuple[str, Roofline]]:
    """(device, roofline) of the first devices that were measured alone."""
    by_device: dict[tuple[str, int], list[ExperimentResult]] = {}
    for benchmark in view.benchmarks:
        for result in filter(is_of_devices, benchmark.results):
            parameters = result.experiment.parameters
            backend, number = parameters.get("backend"), parameters.get("device")
            if isinstance(number, int) and parameters.get("devices") == 1:
                by_device.setdefault((str(backend), number), []).append(result)
    drawn = 0
    for (backend, number), results in sorted(by_device.items()):
        model = _roofline(results)
        if model is not None and drawn < _MOST:
            drawn += 1
            yield f"device {number} ({backend})", model


def _roofline(results: Sequence[ExperimentResult]) -> Roofline | None:
    memory = _of_largest(_sources(results, Role.DEVICE_MEMORY_BANDWIDTH))
    peaks = _sources(results, Role.DEVICE_FMA_RATE)
    if not memory or not peaks:
        return None
    compute = [roof for precision in ELEMENT_BITS for roof in compute_roofs(peaks, precision)]
    return with_ridges((*_memory_roofs(memory), *compute), list(_points(results)))


def _sources(results: Sequence[ExperimentResult], role: Role) -> list[Source]:
    return [source for source in figures_with(results, role) if source[1].median > 0]


def _of_largest(sources: Sequence[Source]) -> list[Source]:
    """Those with the largest data, by the order of the parameter's values: data in a cache do not measure memory."""

    def size(source: Source) -> float:
        words = benchmark_named(source[0].experiment.benchmark).parameter("size").words
        word = source[0].experiment.parameters.get("size")
        return words.index(word) if isinstance(word, str) and word in words else math.inf

    largest = max(map(size, sources), default=0)
    return [source for source in sources if size(source) == largest]


def _memory_roofs(sources: Sequence[Source]) -> Iterator[Roof]:
    result, figure = best(sources)
    share = f", {show_percent(figure.fraction_of_limit)} of the limit" if figure.fraction_of_limit else ""
    origin = f"best of {result.experiment.benchmark} {figure.name}: {settings_text(result)}{share}"
    yield Roof("memory", figure.median, True, "measured", origin)
    if figure.limit is not None and figure.limit.value and figure.limit.is_physical:
        yield Roof("memory", figure.limit.value, True, "limit", figure.limit.derivation)


def _points(results: Sequence[ExperimentResult]) -> Iterator[Point]:
    """The best of each benchmark and precision."""
    found: dict[tuple[str, str], tuple[Source, FigureResult]] = {}
    for result in results:
        for flop, byte in _pairs(result):
            key = result.experiment.benchmark, str(result.experiment.parameters.get("precision", ""))
            if key not in found or flop.median > found[key][0][1].median:
                found[key] = (result, flop), byte
    for (name, precision), ((result, flop), byte) in found.items():
        own = f"{name.partition('.')[2]} {precision}".rstrip()
        counting = f"{own}: {flop.work or 'flop'}; bytes: {byte.work or 'as counted for its bandwidth'}."
        intensity = flop.median / byte.median
        yield Point(own, intensity, flop.median, counting, origin_of(result), precision)


def _pairs(result: ExperimentResult) -> Iterator[tuple[FigureResult, FigureResult]]:
    """Pairs of figures, in flop/s and in B/s, from the same samples."""
    benchmark = registry().get(result.experiment.benchmark)
    if benchmark is None:
        return
    series = {figure.name: figure.series for figure in benchmark.figures if figure.role is not Role.LINK_TRAFFIC}
    for flop in result.figures:
        for byte in result.figures:
            is_pair = (flop.unit, byte.unit) == ("flop/s", "B/s") and flop.point == byte.point
            is_pair = is_pair and byte.name in series and series.get(flop.name) == series[byte.name]
            if is_pair and byte.median > 0 and flop.median > 0:
                yield flop, byte
