"""Pivots for the search of tables of sums."""

from __future__ import annotations

import math

LISTED = 30_000
"""Up to this number of sums, sorting a list is fastest."""

SAMPLE = 500
"""The number of entries sampled for a pivot."""


def place_beyond(share: float) -> int:
    """The position in a sorted sample of an entry slightly beyond this share of all, on the side of more entries, so
    that these are likely to be cut."""
    beyond = 2.0 * math.sqrt(share * (1.0 - share) / SAMPLE)
    place = share + beyond if share < 0.5 else share - beyond
    return min(max(int(place * SAMPLE), 0), SAMPLE - 1)
