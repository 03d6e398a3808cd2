"""Figures that restate each other: a rate and the time it is computed from say the same about two sides."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence

from seatrial.model.study.comparison import Comparison
from seatrial.model.study.study import distinct

_ALIKE = 2e-3
"""Ratios this close (as logarithms) are one: a median of rates differs from the rate of a median time by less."""


def restated_figures(comparisons: Iterable[Comparison]) -> Mapping[tuple[Hashable, str], str]:
    """(sides, figure) -> the earlier figure that it restates at every point, of the same benchmark and sides."""
    curves: dict[Hashable, dict[str, dict[Hashable, Comparison]]] = {}
    for one in comparisons:
        if one.is_secondary:  # it is measured by itself
            continue
        figures = curves.setdefault(sides_of(one), {})
        figures.setdefault(one.figure, {})[_point(one)] = one
    found: dict[tuple[Hashable, str], str] = {}
    for sides, figures in curves.items():
        originals: list[str] = []
        for figure, points in figures.items():
            same = next((other for other in originals if _all_restate(figures[other], points)), None)
            if same is None:
                originals.append(figure)
            else:
                found[sides, figure] = same
    return found


def sides_of(one: Comparison) -> Hashable:
    """What figures that may restate each other share."""
    return (one.benchmark, one.baseline.name, one.candidate.name)


def _point(one: Comparison) -> Hashable:
    return tuple(sorted((name, distinct(value)) for name, value in one.parameters.items()))


def _all_restate(first: Mapping[Hashable, Comparison], second: Mapping[Hashable, Comparison]) -> bool:
    return first.keys() == second.keys() and all(_restates(first[point], second[point]) for point in second)


def _restates(first: Comparison, second: Comparison) -> bool:
    """Whether both have the same ratio and interval, or inverse ones if only one of them is better higher."""
    if first.verdict is not second.verdict:
        return False
    sign = 1 if first.better is second.better else -1
    return _are_alike(_numbers(first, 1), _numbers(second, sign))


def _numbers(one: Comparison, sign: int) -> list[float | None]:
    ends = one.simultaneous or (None, None)
    return [_log(value, sign) for value in (one.ratio, *(ends if sign > 0 else reversed(ends)))]


def _log(value: float | None, sign: int) -> float | None:
    return sign * math.log(value) if value is not None and 0.0 < value < math.inf else None


def _are_alike(first: Sequence[float | None], second: Sequence[float | None]) -> bool:
    return first[0] is not None and all(
        (a is None and b is None) or (a is not None and b is not None and abs(a - b) <= _ALIKE)
        for a, b in zip(first, second, strict=True)
    )
