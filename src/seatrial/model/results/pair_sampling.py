"""Which of all pairs of ranks a run measured, and what that covers."""

from __future__ import annotations

from typing import Annotated

from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import Count, Keywords, OneOrMore, key

FEWEST_PARTNERS = 3
"""A rank or node with fewer measured partners cannot be distinguished from a slow link to one of them."""


class PairSampling(Frozen):
    """`pairs` of the `of_pairs` pairs of ranks were measured; a rank met from `least_partners` to `most_partners`
    others. `seed` and `rounds` of `of_rounds` of the tournament determine which (None: not known)."""

    pairs: Count
    of_pairs: OneOrMore
    least_partners: Count
    most_partners: Count
    seed: int | None = None
    rounds: int | None = None
    of_rounds: int | None = None

    @property
    @key
    def share(self) -> Annotated[float, Keywords(minimum=0, maximum=1)]:
        """The share of pairs that were measured, which is the chance that one given slow link was."""
        return self.pairs / self.of_pairs

    @property
    @key
    def tells_ranks(self) -> bool:
        """Whether every rank met enough others to distinguish a slow rank from a slow pair."""
        return self.least_partners >= FEWEST_PARTNERS
