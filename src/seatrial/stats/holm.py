"""p-values of a family, adjusted by Holm's step-down procedure.

S. Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6 (1979). It bounds the
probability of any false alarm in the family, for any dependence between its members.
"""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """The adjusted p-values, in the given order: at most alpha if the family-wise test rejects at alpha.

    None (not testable) stays None and does not count. Raises ValueError for a value that is not a probability.
    """
    tested = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for passed, (p, place) in enumerate(tested):
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"a p-value must be between 0 and 1, not {p}")
        largest = max(largest, min(1.0, (len(tested) - passed) * p))
        adjusted[place] = largest
    return adjusted
