"""The derivation of a limit in one sentence, with the share of it that the counted work can reach."""

from __future__ import annotations

from seatrial.model.benchmark import Attainable
from seatrial.model.limit import Limit


def derivation(limit: Limit, attainable: Attainable) -> str:
    """Such as: "12 populated channels x 8 B x ...; plain stores: at most 75 % of it can be counted, 24 B of 32 B"."""
    known = limit.value is not None and attainable.why
    return f"{limit.derivation}; {attainable.why}" if known else limit.derivation
