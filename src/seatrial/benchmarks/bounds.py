"""The bounds of checks that many benchmarks have."""

from __future__ import annotations

from seatrial.model.benchmark import Bound
from seatrial.model.machine import Machine
from seatrial.model.parameter import Params, whole


def zero(machine: Machine, params: Params) -> tuple[float, float]:
    """Nothing of it: errors, lost messages, wrong bytes."""
    return (0, 0)


def exactly(value: str | float) -> Bound:
    """A number, or that of the parameter of this name."""

    def bound(machine: Machine, params: Params) -> tuple[float, float]:
        number = whole(params[value]) if isinstance(value, str) else value
        return (number, number)

    return bound
