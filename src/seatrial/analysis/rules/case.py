"""What a rule is given, and how it cites its evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from seatrial.model.fact import Fact, Facts
from seatrial.model.figure_result import ExperimentResult
from seatrial.model.finding import Finding
from seatrial.model.machine import Device, DeviceKind, Machine

Seen = Mapping[tuple[str, int], Mapping[str, Any]]
"""(experiment id, repeat) -> what probes saw beside that repeat."""


@dataclass(frozen=True, slots=True)
class Case:
    """One machine with its results."""

    machine: Machine
    results: tuple[ExperimentResult, ...] = ()
    seen: Seen = field(default_factory=dict)


Rule = Callable[[Case], Iterable[Finding]]


def cite(name: str, fact: Fact) -> str:
    """One fact as evidence: what it says and who says it."""
    value = str(fact.value).lower() if isinstance(fact.value, bool) else fact.value
    unit = f" {fact.unit}" if fact.unit not in (None, "1") else ""
    return f"{name} = {value}{unit} ({fact.source})"


def cite_best(facts: Facts, name: str) -> str:
    """The most trusted statement of that name as evidence, or "" where nobody makes one."""
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
    """The finite numbers among what probes saw; they write null for what they could not read."""
    return [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool) and v - v == 0]


def cpu_facts(machine: Machine, name: str) -> list[tuple[Device, Fact]]:
    """A fact that may sit on the CPUs, the cores or the packages: the best statement of every device of the first of
    these kinds that has it."""
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
