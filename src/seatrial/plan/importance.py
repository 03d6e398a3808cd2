"""The order in which the points of a trial are measured if there is no time for all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from seatrial.plan.points import Point


def by_importance(points: Sequence[Point], least_s: Callable[[Point], float]) -> list[Point]:
    """Breadth first: the first point of each benchmark before the second of any. Benchmarks with a figure that others
    are compared with (a role, such as memory bandwidth) come first, of those alike the shorter, by the time `least_s`
    in seconds."""
    seen: Counter[str] = Counter()
    keys = {}
    for point in points:
        has_role = any(figure.role is not None for figure in point.benchmark.figures)
        keys[id(point)] = (seen[point.benchmark.name], not has_role, least_s(point))
        seen[point.benchmark.name] += 1
    return sorted(points, key=lambda point: keys[id(point)])
