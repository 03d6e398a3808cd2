"""A difference: something other than the figures that is not the same on both sides of a comparison."""

from __future__ import annotations

from seatrial.model.frozen import Frozen


class Difference(Frozen):
    """`what` names it as in records ("parameter threads", "library libm.so.6", "fact governor"). The sides are
    text for messages; None: missing on this side. `intended`: it is what the comparison varies, or follows from it."""

    what: str
    baseline: str | None
    candidate: str | None
    intended: bool
    follows_from: str = ""
    """The axis that causes an intended difference which is not part of the comparison itself."""
