"""What a roofline is drawn of: roofs, points and ridges, each of a figure or a limit that exists, and none of a guess.

The model: S. Williams, A. Waterman, D. Patterson, "Roofline: An Insightful Visual Performance Model for Multicore
Architectures", CACM 52(4), 2009. A program of intensity I (flop/B) reaches at most min(peak, I x bandwidth).

This and `roofline_devices` are the places of the page that know benchmarks by name, because what a figure counts cannot
be told by its shape: a triad has 2 flop for the 24 B that STREAM counts; a product of two n x n matrices has 2 n^3 flop
for at least 4 n^2 numbers that must move (both factors and the result read, the result written).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from seatrial.model.figure_result import ExperimentResult, FigureResult
from seatrial.model.limit import ELEMENT_BITS, Basis
from seatrial.report.pages.view import TrialView
from seatrial.report.units import settings, show_percent

_TRIAD_FLOP, _TRIAD_BYTES = 2, 24
_NUMBERS_MOVED = 4
"""For each element of an n x n product: two factors read, the result read and written."""
_PRODUCT_NAMES = {"fp64": "DGEMM", "fp32": "SGEMM"}


@dataclass(frozen=True, slots=True)
class Roof:
    """`value` is in B/s for a memory roof, in flop/s for a compute roof; `origin` says where it comes from."""

    name: str
    value: float
    is_memory: bool
    basis: str
    origin: str
    precision: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """A figure at the intensity (flop/B) of what it counts; `rate` in flop/s."""

    name: str
    intensity: float
    rate: float
    counting: str
    """How its intensity was counted, as a sentence."""
    origin: str
    precision: str = ""


@dataclass(frozen=True, slots=True)
class Ridge:
    """Where a memory roof meets a compute roof: from this intensity on, arithmetic bounds and not memory."""

    intensity: float
    rate: float
    memory: Roof
    compute: Roof


@dataclass(frozen=True, slots=True)
class Roofline:
    """All that is drawn."""

    roofs: tuple[Roof, ...]
    points: tuple[Point, ...]
    ridges: tuple[Ridge, ...]


Source = tuple[ExperimentResult, FigureResult]


def roofline(view: TrialView) -> Roofline | None:
    """The roofline of a trial; None without a measured memory roof or a measured compute roof."""
    triads = _figures(view, "memory.stream", "triad")
    peaks = _figures(view, "cpu.peak", "fma")
    if not triads or not peaks:
        return None
    memory = [*_memory_roofs(view, triads)]
    compute = [roof for precision in ELEMENT_BITS for roof in compute_roofs(peaks, precision)]
    points = [*_triad_points(triads), *_product_points(_figures(view, "cpu.gemm", "gemm"))]
    return with_ridges((*memory, *compute), points)


def with_ridges(roofs: Sequence[Roof], points: Sequence[Point]) -> Roofline:
    """The roofline of some roofs, of which one of memory and one of arithmetic at least were measured."""
    measured = [roof for roof in roofs if roof.basis == "measured"]
    bandwidth = next(roof for roof in measured if roof.is_memory)
    ridges = [
        Ridge(roof.value / bandwidth.value, roof.value, bandwidth, roof) for roof in measured if not roof.is_memory
    ]
    return Roofline(tuple(roofs), tuple(points), tuple(ridges))


def _figures(view: TrialView, benchmark: str, name: str) -> list[Source]:
    found: list[Source] = []
    for own in view.benchmarks:
        if own.name == benchmark:
            found += [(row.result, figure) for row, figure in own.measured if figure.name == name and figure.median > 0]
    return found


def best(sources: Sequence[Source]) -> Source:
    """The one with the highest median."""
    return max(sources, key=lambda source: source[1].median)


def _memory_roofs(view: TrialView, triads: Sequence[Source]) -> Iterator[Roof]:
    result, figure = best(triads)
    limit = view.trial.machine.named_limit("dram.bandwidth")
    known = limit.value if limit is not None and limit.basis is Basis.PHYSICAL else None
    share = f", {show_percent(figure.median / known)} of the limit" if known else ""
    origin = f"best triad of {result.experiment.benchmark}: {told(result)}{share}"
    yield Roof("triad", figure.median, True, "measured", origin)
    if limit is not None and known:
        yield Roof("DRAM", known, True, "limit", limit.derivation)


def compute_roofs(peaks: Sequence[Source], precision: str) -> Iterator[Roof]:
    """What was measured in a precision, and its limit where that is known."""
    own = [source for source in peaks if source[0].experiment.parameters.get("precision") == precision]
    if not own:
        return
    result, figure = best(own)
    limit = figure.limit
    known = limit.value if limit is not None and limit.basis is Basis.PHYSICAL else None
    share = f", {show_percent(figure.fraction_of_limit)} of the limit" if known and figure.fraction_of_limit else ""
    origin = f"best of {result.experiment.benchmark}: {told(result)}{share}"
    yield Roof(f"{precision} FMA", figure.median, False, "measured", origin, precision)
    if limit is not None and known:
        yield Roof(f"{precision} FMA", known, False, "limit", limit.derivation, precision)


def _triad_points(triads: Sequence[Source]) -> Iterator[Point]:
    """The best triad with plain and with non-temporal stores, where both were measured."""
    intensity = _TRIAD_FLOP / _TRIAD_BYTES
    for nontemporal, name in ((False, "triad"), (True, "triad, non-temporal")):
        own = [source for source in triads if source[0].experiment.parameters.get("nontemporal", False) is nontemporal]
        if own:
            result, figure = best(own)
            counting = f"Triad: {_TRIAD_FLOP} flop for {_TRIAD_BYTES} B, as STREAM counts."
            yield Point(name, intensity, figure.median * intensity, counting, origin_of(result))


def _product_points(products: Sequence[Source]) -> Iterator[Point]:
    for precision, bits in ELEMENT_BITS.items():
        own = [
            source
            for source in products
            if source[0].experiment.parameters.get("precision") == precision and _size(source[0]) is not None
        ]
        if own:
            result, figure = best(own)
            n, width = _size(result) or 0, bits // 8
            counting = f"GEMM: 2 n^3 flop for {_NUMBERS_MOVED} n^2 numbers, the least that must move."
            intensity = 2 * n / (_NUMBERS_MOVED * width)
            yield Point(_PRODUCT_NAMES[precision], intensity, figure.median, counting, origin_of(result), precision)


def _size(result: ExperimentResult) -> int | None:
    n = result.experiment.parameters.get("n")
    return n if isinstance(n, int) and not isinstance(n, bool) and n > 0 else None


def origin_of(result: ExperimentResult) -> str:
    """The experiment that an element comes from."""
    return f"{result.experiment.benchmark}: {told(result)}"


def told(result: ExperimentResult) -> str:
    """The settings of an experiment."""
    return settings(result.experiment.parameters)
