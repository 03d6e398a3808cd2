"""The elements of a roofline chart, and those of each device.

The elements of a roofline: roofs, points and ridges, each from a figure or a known limit, never from a guess.

The model: S. Williams, A. Waterman, D. Patterson, "Roofline: An Insightful Visual Performance Model for Multicore
Architectures", CACM 52(4), 2009. A program of intensity I (flop/B) reaches at most min(peak, I x bandwidth).

The figures declare whether they are roofs (`Role`), and their intensity (`Intensity`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from seatrial.analysis.roles import Source, figures_with, is_of_devices, role_of
from seatrial.benchmarks import benchmark_named, declared_figure, registry
from seatrial.model.benchmark.benchmark import Intensity, Role
from seatrial.model.frozen import Frozen
from seatrial.model.machine.limit import ELEMENT_BITS, Basis, Limit
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.spelling import settings
from seatrial.report.intervals import of_limit_words
from seatrial.report.pages.view import TrialView


class Roof(Frozen):
    """`value` is in B/s for a memory roof, in flop/s for a compute roof; `origin` is its source."""

    name: str
    value: float
    is_memory: bool
    basis: str
    origin: str
    precision: str = ""


class RooflinePoint(Frozen):
    """A figure at its arithmetic intensity (flop/B); `rate` in flop/s."""

    name: str
    intensity: float
    rate: float
    counting: str
    """How its intensity was counted, as a sentence."""
    origin: str
    precision: str = ""


class Ridge(Frozen):
    """Where a memory roof meets a compute roof: above this intensity, arithmetic is the limit, not memory."""

    intensity: float
    rate: float
    memory: Roof
    compute: Roof


class Roofline(Frozen):
    """All elements of one roofline chart."""

    roofs: tuple[Roof, ...]
    points: tuple[RooflinePoint, ...]
    ridges: tuple[Ridge, ...]


def roofline(view: TrialView) -> Roofline | None:
    """The roofline of a trial; None without a measured memory roof or a measured compute roof."""
    measured = [(row.result, figure) for own in view.benchmarks for row, figure in own.measured if figure.median > 0]
    bandwidths = [source for source in measured if role_of(*source) is Role.MEMORY_BANDWIDTH]
    peaks = [source for source in measured if role_of(*source) is Role.FMA_RATE]
    if not bandwidths or not peaks:
        return None
    compute = [roof for precision in ELEMENT_BITS for roof in compute_roofs(peaks, precision)]
    return with_ridges((*_memory_roofs(view, bandwidths), *compute), _points(measured))


def with_ridges(roofs: Sequence[Roof], points: Sequence[RooflinePoint]) -> Roofline:
    """The roofline with its ridges; at least one memory roof and one compute roof must be measured."""
    measured = [roof for roof in roofs if roof.basis == "measured"]
    bandwidth = next(roof for roof in measured if roof.is_memory)
    ridges = [
        Ridge(roof.value / bandwidth.value, roof.value, bandwidth, roof) for roof in measured if not roof.is_memory
    ]
    return Roofline(tuple(roofs), tuple(points), tuple(ridges))


def best(sources: Sequence[Source]) -> Source:
    """The source with the highest median."""
    return max(sources, key=lambda source: source[1].median)


def _memory_roofs(view: TrialView, bandwidths: Sequence[Source]) -> Iterator[Roof]:
    result, figure = best(bandwidths)
    limit = _physical(view.trial.machine.named_limit("dram.bandwidth"))
    share = ""
    if limit is not None and limit.value:
        share = of_limit_words(result, replace(figure, fraction_of_limit=figure.median / limit.value))
    origin = ", ".join(filter(None, (f"best {figure.name} of {origin_of(result)}", share)))
    return _roofs((figure.name, "DRAM"), figure.median, limit, origin)


def _physical(limit: Limit | None) -> Limit | None:
    return limit if limit is not None and limit.basis is Basis.PHYSICAL else None


def _roofs(
    names: tuple[str, str], measured: float, limit: Limit | None, origin: str, precision: str = ""
) -> Iterator[Roof]:
    """The measured roof, and the limit if it is known; of arithmetic in a precision, else of memory."""
    yield Roof(names[0], measured, not precision, "measured", origin, precision)
    if limit is not None and limit.value:
        yield Roof(names[1], limit.value, not precision, "limit", limit.derivation, precision)


def compute_roofs(peaks: Sequence[Source], precision: str) -> Iterator[Roof]:
    """The measured rate in a precision, and its limit if known."""
    own = [source for source in peaks if source[0].experiment.parameters.get("precision") == precision]
    if not own:
        return
    result, figure = best(own)
    limit = _physical(figure.limit)
    share = of_limit_words(result, figure) if limit is not None and limit.value else ""
    origin = ", ".join(filter(None, (f"best of {origin_of(result)}", share)))
    yield from _roofs((f"{precision} FMA", f"{precision} FMA"), figure.median, limit, origin, precision)


def _points(measured: Sequence[Source]) -> list[RooflinePoint]:
    """The best figure of each name among those with an intensity, bandwidths first."""
    found: dict[tuple[bool, str], tuple[Source, Intensity]] = {}
    for result, figure in measured:
        declared = declared_figure(result.experiment.benchmark, figure.name)
        if declared is None or declared.intensity is None:
            continue
        intensity = declared.intensity(result.experiment.parameters)
        if intensity is not None:
            key = figure.unit == "flop/s", intensity.name
            if key not in found or figure.median > found[key][0][1].median:
                found[key] = (result, figure), intensity
    points = []
    for (is_rate, name), ((result, figure), declared_as) in sorted(found.items(), key=lambda entry: entry[0]):
        at = declared_as.flop / declared_as.bytes
        rate = figure.median if is_rate else figure.median * at
        precision = str(result.experiment.parameters.get("precision", ""))
        points.append(RooflinePoint(name, at, rate, declared_as.counting, origin_of(result), precision))
    return points


def origin_of(result: ExperimentResult) -> str:
    """The experiment that an element comes from, as text."""
    return f"{result.experiment.benchmark}: {settings(result.experiment.parameters)}"


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
    return with_ridges((*_device_roofs(memory), *compute), list(_device_points(results)))


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


def _device_roofs(sources: Sequence[Source]) -> Iterator[Roof]:
    result, figure = best(sources)
    experiment = result.experiment
    origin = f"best of {experiment.benchmark} {figure.name}: {settings(experiment.parameters)}"
    origin = ", ".join(filter(None, (origin, of_limit_words(result, figure))))
    limit = figure.limit if figure.limit is not None and figure.limit.is_physical else None
    return _roofs(("memory", "memory"), figure.median, limit, origin)


def _device_points(results: Sequence[ExperimentResult]) -> Iterator[RooflinePoint]:
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
        yield RooflinePoint(own, intensity, flop.median, counting, origin_of(result), precision)


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
