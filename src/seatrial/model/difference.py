"""A difference: something other than the figures that is not the same on both sides of a comparison."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """`what` names it as in records ("parameter threads", "library libm.so.6", "fact governor"). The sides are spelled
    for people; None: this side does not have it. `intended`: it is what the comparison is about, or follows from it."""

    what: str
    baseline: str | None
    candidate: str | None
    intended: bool
    follows_from: str = ""
    """Why it counts as intended although nobody asked for it: the axis that brings it along."""
