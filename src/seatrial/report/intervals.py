"""Text about the interval of one figure: why there is none, and what widened it."""

from __future__ import annotations

from seatrial.model.figure_result import FigureResult
from seatrial.stats.interval import MINIMUM_REPEATS


def no_interval_words(n_repeats: int) -> str:
    """Why a figure with so many repeats has no interval."""
    if n_repeats < MINIMUM_REPEATS:
        return f"needs {MINIMUM_REPEATS} repeats"
    return "none: repeats depend on each other"


_VISIBLE = 1e-3
"""The resolution from which it is mentioned."""


def widening_words(figure: FigureResult) -> str:
    """What widened the interval: correlated repeats, and a coarse timer or few printed digits; "" if nothing did."""
    words = []
    if figure.dependence:
        then = "no interval" if figure.ci95 is None else "wider interval"
        words.append(f"successive repeats are correlated (r = {figure.dependence:.2f}): {then}")
    if figure.resolution >= _VISIBLE:
        words.append(f"rounded to {100.0 * figure.resolution:.2g} % by the timer or the printed digits")
    return "; ".join(words)
