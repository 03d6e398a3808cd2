"""Bounds of checks, shared by many benchmarks."""

from __future__ import annotations

from collections.abc import Callable

from seatrial.model.benchmark.benchmark import Bound
from seatrial.model.benchmark.parameter import Params, whole
from seatrial.model.machine.machine import Machine


def zero(machine: Machine, params: Params) -> tuple[float, float]:
    """Must be zero: errors, lost messages, wrong bytes."""
    return (0, 0)


def between(low: float, high: float) -> Bound:
    """From `low` to `high`, both included."""
    return between(low, high)


def exactly(value: str | float | Callable[[Params], float]) -> Bound:
    """Exactly this number, the parameter of this name, or a function of the parameters."""

    def bound(machine: Machine, params: Params) -> tuple[float, float]:
        if isinstance(value, str):
            number: float = whole(params[value])
        else:
            number = value(params) if callable(value) else value
        return (number, number)

    return bound
