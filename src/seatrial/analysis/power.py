"""What the probe `power` recorded of repeats, read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seatrial.model.benchmark.benchmark import Better
from seatrial.model.benchmark.power import ENERGY, SCOPE, SCOPES
from seatrial.model.json_object import record_of
from seatrial.model.machine.power import Scope
from seatrial.model.results.energy import MeasuredEnergy
from seatrial.model.results.figure_result import MissingFigure
from seatrial.model.results.record import RepeatRecord

RECORDED = "power"
"""Its part of what was observed in a repeat."""


def energies_of(seen: Mapping[str, Any]) -> tuple[MeasuredEnergy, ...] | None:
    """What each sensor showed of a repeat; None if power was not measured, or not in the form of this version."""
    found = seen.get(RECORDED)
    try:
        return None if found is None else tuple(record_of(MeasuredEnergy, one) for one in found.get("energies", ()))
    except (ValueError, AttributeError):
        return None


def missing_energy(records: Sequence[RepeatRecord]) -> tuple[MissingFigure, ...]:
    """The scopes whose energy was asked for and is not known of the latest ok repeat, with the reason; that of the node
    in any case."""
    latest = next((one for one in reversed(records) if one.outcome.is_ok), None)
    energies = None if latest is None else energies_of(latest.seen)
    if latest is None or energies is None:
        return ()
    nodes = latest.seen[RECORDED].get("nodes", [""])
    own = [one for one in energies if one.node in nodes]
    reasons = {scope: why for scope in SCOPES if (why := _why_none(scope, own))}
    for node in nodes:
        if not any(one.scope is Scope.NODE and one.node == node for one in own):
            why_not = latest.seen[RECORDED].get("why_not")
            usual = (
                f"no usable sensor measures the whole of {node}" if node else "no usable sensor measures the whole node"
            )
            reasons[Scope.NODE] = str(why_not or usual)
    return tuple(
        MissingFigure(ENERGY, {SCOPE: scope.value}, "J", Better.LOWER, reason) for scope, reason in reasons.items()
    )


def _why_none(scope: Scope, energies: Sequence[MeasuredEnergy]) -> str:
    """Why the energy of a scope is not known; "" if it is, or has no sensor. Any sensor of a part suffices, and any of
    the node; each part is needed."""
    unknown: dict[tuple[str, str], str] = {}
    for one in sorted((one for one in energies if one.scope is scope), key=lambda one: one.energy is None):
        unknown.setdefault(one.part, one.reason if one.energy is None else "")
    return next(filter(None, unknown.values()), "")
