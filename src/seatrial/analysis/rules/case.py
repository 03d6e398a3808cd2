"""The input of a rule, and how it cites its evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import field

from seatrial.model.frozen import Frozen
from seatrial.model.machine.fact import Fact, Facts
from seatrial.model.machine.machine import Device, DeviceKind, Machine
from seatrial.model.results.figure_result import ExperimentResult

Seen = Mapping[tuple[str, int], Mapping[str, Any]]
"""(experiment id, repeat) -> what probes recorded during that repeat."""


class Case(Frozen):
    """One machine with its results."""

    machine: Machine
    results: tuple[ExperimentResult, ...] = ()
    seen: Seen = field(default_factory=dict)


def cite(name: str, fact: Fact) -> str:
    """One fact as evidence: its value and source."""
    value = str(fact.value).lower() if isinstance(fact.value, bool) else fact.value
    unit = f" {fact.unit}" if fact.unit not in (None, "1") else ""
    return f"{name} = {value}{unit} ({fact.source})"


def cite_best(facts: Facts, name: str) -> str:
    """The most trusted fact of that name as evidence, or "" if there is none."""
    fact = facts.best(name)
    return "" if fact is None else cite(name, fact)


def is_true(facts: Facts, name: str) -> bool:
    """Whether the fact is known and true; some sources write 1 for true."""
    fact = facts.best(name)
    return fact is not None and not isinstance(fact.value, str) and fact.value == 1


def is_false(facts: Facts, name: str) -> bool:
    """Whether the fact is known and false."""
    fact = facts.best(name)
    return fact is not None and not isinstance(fact.value, str) and fact.value == 0


def finite_numbers(values: Iterable[object]) -> list[float]:
    """The finite numbers among values from probes, which write null for what they could not read."""
    return [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool) and v - v == 0]


def cpu_facts(machine: Machine, name: str) -> list[tuple[Device, Fact]]:
    """A fact of the CPUs, cores or packages: the most trusted one of each device of the first of these kinds that has
    it."""
    for kind in (DeviceKind.PU, DeviceKind.CORE, DeviceKind.PACKAGE):
        found = [(device, fact) for device in machine.of_kind(kind) if (fact := device.facts.best(name)) is not None]
        if found:
            return found
    return []


def device_number(devices: Sequence[tuple[Device, Fact]]) -> float | None:
    """The largest number among these facts, or None."""
    numbers = [
        float(fact.value)
        for _, fact in devices
        if isinstance(fact.value, int | float) and not isinstance(fact.value, bool)
    ]
    return max(numbers, default=None)
