"""The elements of a roofline: roofs, points and ridges, each from a figure or a known limit, never from a guess.

The model: S. Williams, A. Waterman, D. Patterson, "Roofline: An Insightful Visual Performance Model for Multicore
Architectures", CACM 52(4), 2009. A program of intensity I (flop/B) reaches at most min(peak, I x bandwidth).

The figures declare whether they are roofs (`Role`), and their intensity (`Intensity`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.analysis.roles import Source, role_of
from seatrial.benchmarks import declared_figure
from seatrial.model.figure_result import ExperimentResult
from seatrial.model.frozen import Frozen
from seatrial.model.limit import ELEMENT_BITS, Basis
from seatrial.model.role import Intensity, Role
from seatrial.report.pages.view import TrialView
from seatrial.report.units import settings, show_percent


class Roof(Frozen):
    """`value` is in B/s for a memory roof, in flop/s for a compute roof; `origin` is its source."""

    name: str
    value: float
    is_memory: bool
    basis: str
    origin: str
    precision: str = ""


class Point(Frozen):
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
    points: tuple[Point, ...]
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


def with_ridges(roofs: Sequence[Roof], points: Sequence[Point]) -> Roofline:
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
    limit = view.trial.machine.named_limit("dram.bandwidth")
    known = limit.value if limit is not None and limit.basis is Basis.PHYSICAL else None
    share = f", {show_percent(figure.median / known)} of the limit" if known else ""
    origin = f"best {figure.name} of {result.experiment.benchmark}: {settings_text(result)}{share}"
    yield Roof(figure.name, figure.median, True, "measured", origin)
    if limit is not None and known:
        yield Roof("DRAM", known, True, "limit", limit.derivation)


def compute_roofs(peaks: Sequence[Source], precision: str) -> Iterator[Roof]:
    """The measured rate in a precision, and its limit if known."""
    own = [source for source in peaks if source[0].experiment.parameters.get("precision") == precision]
    if not own:
        return
    result, figure = best(own)
    limit = figure.limit
    known = limit.value if limit is not None and limit.basis is Basis.PHYSICAL else None
    share = f", {show_percent(figure.fraction_of_limit)} of the limit" if known and figure.fraction_of_limit else ""
    origin = f"best of {result.experiment.benchmark}: {settings_text(result)}{share}"
    yield Roof(f"{precision} FMA", figure.median, False, "measured", origin, precision)
    if limit is not None and known:
        yield Roof(f"{precision} FMA", known, False, "limit", limit.derivation, precision)


def _points(measured: Sequence[Source]) -> list[Point]:
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
        points.append(Point(name, at, rate, declared_as.counting, origin_of(result), precision))
    return points


def origin_of(result: ExperimentResult) -> str:
    """The experiment that an element comes from, as text."""
    return f"{result.experiment.benchmark}: {settings_text(result)}"


def settings_text(result: ExperimentResult) -> str:
    """The settings of an experiment, as text."""
    return settings(result.experiment.parameters)
