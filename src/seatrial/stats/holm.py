"""p-values of a family, adjusted by Holm's step-down procedure.

S. Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6 (1979). It bounds the chance of
any false alarm in the family, however its members depend on each other.
"""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """The adjusted p-values, in the given order: at most alpha where the family, taken together, rejects at alpha.

    None (nothing could be tested) stays None and does not count. ValueError: not a probability.
    """
    tested = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for passed, (p, place) in enumerate(tested):
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"a p-value lies between 0 and 1, not {p}")
        largest = max(largest, min(1.0, (len(tested) - passed) * p))
        adjusted[place] = largest
    return adjusted
