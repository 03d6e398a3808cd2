"""Text about the interval of one figure: why there is none, and what widened it."""

from __future__ import annotations

from seatrial.model.figure_result import FigureResult
from seatrial.stats.interval import MINIMUM_REPEATS


def no_interval_words(n_repeats: int) -> str:
    """Why a figure with so many repeats has no interval."""
    if n_repeats < MINIMUM_REPEATS:
        return f"needs {MINIMUM_REPEATS} repeats"
    return "none: repeats depend on each other"


def dependence_words(figure: FigureResult) -> str:
    """That each repeat resembles the one before, and what follows from it; "" if it does not."""
    if not figure.dependence:
        return ""
    then = "no interval" if figure.ci95 is None else "wider interval"
    return f"successive repeats are correlated (r = {figure.dependence:.2f}): {then}"
