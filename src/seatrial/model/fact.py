"""A fact about a machine: what is said, who says it, and in what capacity.

Sources disagree about real machines (three tools gave three memory sizes on one of ours), so a fact is kept for each
source and never merged; whoever needs one value asks for it through `Facts.best`, and `Facts.disagreements` names the
rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from seatrial.model.units import Unit

FactValue = str | int | float | bool


class FactKind(StrEnum):
    """In what capacity a source speaks."""

    ASSERTED = "asserted"  # a document or a table says so
    DISCOVERED = "discovered"  # the kernel, firmware or driver of this machine says so
    MEASURED = "measured"


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement of one source. `volatile` facts (load, free memory) say nothing about a machine's identity."""

    value: FactValue
    source: str
    kind: FactKind = FactKind.DISCOVERED
    unit: Unit | None = None
    volatile: bool = False


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Several sources that give one fact different values."""

    name: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Facts(Mapping[str, tuple[Fact, ...]]):
    """Name -> the statements about it, the most trusted source first. Missing is missing, never 0 or ""."""

    by_name: Mapping[str, tuple[Fact, ...]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> tuple[Fact, ...]:
        return self.by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_name)

    def __len__(self) -> int:
        return len(self.by_name)

    def best(self, name: str) -> Fact | None:
        """The statement of the most trusted source, or None."""
        facts = self.by_name.get(name, ())
        return facts[0] if facts else None

    def text(self, name: str) -> str | None:
        """The best value as text, or None."""
        fact = self.best(name)
        return None if fact is None else str(fact.value)

    def number(self, name: str) -> float | None:
        """The best value as a number, or None when it is missing or no number."""
        fact = self.best(name)
        if fact is None or isinstance(fact.value, str | bool):
            return None
        return float(fact.value)

    def integer(self, name: str) -> int | None:
        """The best value as a whole number, or None."""
        value = self.number(name)
        return None if value is None else int(value)

    def disagreements(self) -> tuple[Disagreement, ...]:
        """Facts on which sources differ; numbers differ when they are over 1 % apart (memory sizes: 4 %)."""
        return tuple(
            Disagreement(name, facts)
            for name, facts in self.by_name.items()
            if len(facts) > 1 and not _agree(facts, _TOLERANCES.get(name, 0.01))
        )


_TOLERANCES = {"memory_total": 0.04}
"""Linux leaves its page table of all pages (64 B per 4 KiB: 1.6 %), its own image and a crash kernel's reserve out of
MemTotal, so firmware and kernel never agree better than about 3 %; one module of 24 is 4.2 %."""


def _agree(facts: tuple[Fact, ...], tolerance: float) -> bool:
    numbers = [f.value for f in facts if isinstance(f.value, int | float) and not isinstance(f.value, bool)]
    if len(numbers) == len(facts):
        return max(numbers) - min(numbers) <= tolerance * max(abs(n) for n in numbers)
    return len({f.value for f in facts}) == 1
