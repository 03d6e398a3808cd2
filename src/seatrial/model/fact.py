"""A fact about a machine: its value, its source, and the kind of source.

Sources disagree about real machines (three tools reported three memory sizes on one of ours), so a fact is kept for
each source and never merged; `Facts.best` gives one value, `Facts.disagreements` lists facts on which sources differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from seatrial.model.frozen import Frozen
from seatrial.model.units import Unit

FactValue = str | int | float | bool


class FactKind(StrEnum):
    """Where the value of a fact comes from."""

    ASSERTED = "asserted"  # from a document or a table
    DISCOVERED = "discovered"  # from the kernel, firmware or drivers of this machine
    MEASURED = "measured"


class Fact(Frozen):
    """The value from one source. `volatile` facts (load, free memory) are not part of a machine's identity."""

    value: FactValue
    source: str
    kind: FactKind = FactKind.DISCOVERED
    unit: Unit | None = None
    volatile: bool = False


class Disagreement(Frozen):
    """A fact for which sources report different values."""

    name: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Facts(Mapping[str, tuple[Fact, ...]]):
    """Name -> the facts of all sources, the most trusted first. An unknown fact is missing, never 0 or ""."""

    by_name: Mapping[str, tuple[Fact, ...]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> tuple[Fact, ...]:
        return self.by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_name)

    def __len__(self) -> int:
        return len(self.by_name)

    def best(self, name: str) -> Fact | None:
        """The fact from the most trusted source, or None."""
        facts = self.by_name.get(name, ())
        return facts[0] if facts else None

    def text(self, name: str) -> str | None:
        """The best value as text, or None."""
        fact = self.best(name)
        return None if fact is None else str(fact.value)

    def number(self, name: str) -> float | None:
        """The best value as a number, or None if it is missing or not a number."""
        fact = self.best(name)
        if fact is None or isinstance(fact.value, str | bool):
            return None
        return float(fact.value)

    def integer(self, name: str) -> int | None:
        """The best value as an integer, or None."""
        value = self.number(name)
        return None if value is None else int(value)

    def disagreements(self) -> tuple[Disagreement, ...]:
        """Facts on which sources differ; numbers differ if they are more than 1 % apart (memory sizes: 4 %)."""
        return tuple(
            Disagreement(name, facts)
            for name, facts in self.by_name.items()
            if len(facts) > 1 and not _agree(facts, _TOLERANCES.get(name, 0.01))
        )


_TOLERANCES = {"memory_total": 0.04}
"""MemTotal of Linux excludes its page structures (64 B per 4 KiB: 1.6 %), its own image and the memory reserved for a
crash kernel, so it differs from the firmware's size by about 3 %; one module of 24 is 4.2 %."""


def _agree(facts: tuple[Fact, ...], tolerance: float) -> bool:
    numbers = [f.value for f in facts if isinstance(f.value, int | float) and not isinstance(f.value, bool)]
    if len(numbers) == len(facts):
        return max(numbers) - min(numbers) <= tolerance * max(abs(n) for n in numbers)
    return len({f.value for f in facts}) == 1
