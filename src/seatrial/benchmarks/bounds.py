"""The bounds of checks that many benchmarks have."""

from __future__ import annotations

from collections.abc import Callable

from seatrial.model.benchmark import Bound
from seatrial.model.machine import Machine
from seatrial.model.parameter import Params, whole


def zero(machine: Machine, params: Params) -> tuple[float, float]:
    """Nothing of it: errors, lost messages, wrong bytes."""
    return (0, 0)


def between(low: float, high: float) -> Bound:
    """From one number to another, both allowed."""
    return lambda machine, params: (low, high)


def exactly(value: str | float | Callable[[Params], float]) -> Bound:
    """A number, or that of the parameter of this name, or what follows from all parameters."""

    def bound(machine: Machine, params: Params) -> tuple[float, float]:
        if isinstance(value, str):
            number: float = whole(params[value])
        else:
            number = value(params) if callable(value) else value
        return (number, number)

    return bound
