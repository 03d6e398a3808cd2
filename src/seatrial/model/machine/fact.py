"""Facts about a machine: value, source and kind of source; and the size of memory from readings that vary.

Sources disagree about real machines (three tools reported three memory sizes on one of ours), so a fact is kept for
each source and never merged; `Facts.best` gives one value, `Facts.disagreements` lists facts on which sources differ.

The size of the memory that is installed is for what must be the same tomorrow. The kernel's total varies between boots,
with a balloon, and while memory is initialised late (`deferred_init`, deferred initialisation of struct pages) or
plugged in: on such a guest it grows for minutes. What identifies a machine, and what sizes an experiment, therefore
uses the nearest size that modules make.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import As, Hidden, Keywords, Later, Text, published
from seatrial.model.units import SIUnit

FactValue = str | int | float | bool

LIBRARY, MODULE, PACKAGE = "library_", "kernel_module_", "package_"
"""How the names of facts about software begin; what follows is its name."""
PACKAGES, OFED = "installed_packages", "ofed"
SOFTWARE = (LIBRARY, MODULE, PACKAGE, PACKAGES, OFED)
"""How the names of all of them begin."""


class FactKind(StrEnum):
    """Where the value of a fact comes from."""

    ASSERTED = "asserted"  # from a document or a table
    DISCOVERED = "discovered"  # from the kernel, firmware or drivers of this machine
    MEASURED = "measured"


class Fact(Frozen):
    """The value of a fact from one source.

    `volatile` facts (load, free memory) are not part of a machine's identity.
    """

    value: FactValue
    source: Text
    kind: FactKind = FactKind.DISCOVERED
    unit: SIUnit | None = None
    volatile: bool = False


class Disagreement(Frozen):
    """A fact on which sources differ; that of a device is named `<device>.<fact>`."""

    name: str
    facts: Annotated[tuple[Fact, ...], Keywords(minItems=2)]


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
        """Facts on which sources differ; numbers differ if they are more than 1 % apart (memory sizes: 4 %).

        Volatile facts were read at different moments, and memory that grows is expected to differ: neither is a
        disagreement.
        """
        settled = {"memory_total": _without_growth} if grows(self) else {}
        return tuple(
            Disagreement(name, facts)
            for name, facts in self.by_name.items()
            if len(facts) > 1
            and not all(fact.volatile for fact in facts)
            and not _agree(settled.get(name, tuple)(facts), _TOLERANCES.get(name, 0.01))
        )


StatedFacts = Annotated[
    Facts,
    As(dict[str, Annotated[tuple[Fact, ...], Keywords(minItems=1)]], back=Facts),
    "Name -> the facts of all sources, the most trusted first.",
]

_TOLERANCES = {"memory_total": 0.04}
"""MemTotal of Linux excludes its page structures (64 B per 4 KiB: 1.6 %), its own image and the memory reserved for a
crash kernel, so it differs from the firmware's size by about 3 %; one module of 24 is 4.2 %."""


def _without_growth(facts: tuple[Fact, ...]) -> tuple[Fact, ...]:
    """The sizes that do not count what the kernel has initialised or plugged in by now."""
    return tuple(fact for fact in facts if not fact.volatile and not fact.source.startswith(MEMINFO))


def _agree(facts: tuple[Fact, ...], tolerance: float) -> bool:
    if not facts:
        return True
    numbers = [f.value for f in facts if isinstance(f.value, int | float) and not isinstance(f.value, bool)]
    if len(numbers) == len(facts):
        return max(numbers) - min(numbers) <= tolerance * max(abs(n) for n in numbers)
    return len({f.value for f in facts}) == 1


LATE = "deferred_init=lazy"
"""Kernel parameter of guests whose memory is initialised when it is needed: their MemTotal is not the size of the
memory."""

GROWTH = "the kernel's total changes while the machine runs, so readings at different moments differ"

MEMINFO = "/proc/meminfo"
"""Begins the source of what the kernel states as its total at the moment."""

_USABLE = 0.98
"""MemTotal as a share of what is installed: the kernel keeps 1.5 to 3.5 % (64 B for each page of 4 KiB, its image)."""

SURELY_USABLE = 0.94
"""MemTotal is at least this share of the size that is made of it: it may be 2.1 to 4.2 % below it (`_step`)."""

_MOST_STEP_B = 8 << 30
"""Above 64 GiB, for sizes in whole blocks or pages: no server has smaller modules, and a block has at most 2 GiB."""


def installed_memory_B(facts: Facts) -> int | None:
    """Bytes: the nearest size that modules make; None if no source of the machine itself states one.

    The online memory blocks or the pages present take precedence: both count memory before the kernel has
    initialised it. MemTotal, from which the kernel's own share is missing, is raised by that share.
    """
    for name in ("memory_online", "memory_present"):
        if (size := _bytes(discovered(facts, name))) is not None:
            return _nearest(size, min(_step(size), _MOST_STEP_B))
    usable = _bytes(discovered(facts, "memory_total"))
    return None if usable is None else _nominal_B(usable)


def sizing_memory_B(facts: Facts, usable_B: float | None = None) -> int | None:
    """Bytes for the sizes of experiments, the same in every run; None if unknown. `usable_B` is the reading to go by,
    if not the most trusted `memory_total`. Programs can use at least `SURELY_USABLE` of it."""
    if is_late(facts):
        return installed_memory_B(facts)
    usable = facts.number("memory_total") if usable_B is None else usable_B
    return None if usable is None or usable < 1 else _nominal_B(usable)


def is_late(facts: Facts) -> bool:
    """Whether the kernel says that it initialises memory when it is needed."""
    return LATE in (facts.text("kernel_parameters") or "").split()


def grows(facts: Facts) -> bool:
    """Whether the kernel's memory is known to grow or shrink while one looks: the kernel says so, or in a virtual
    machine two readings of the NUMA nodes' totals (volatile: of sysfs and hwloc), which count the same, differ."""
    totals = {fact.value for fact in facts.get("memory_total", ()) if fact.volatile}
    return is_late(facts) or (len(totals) > 1 and "hypervisor" in facts)


def stated_memory_B(facts: Facts) -> float | None:
    """The size to show: what is installed if the kernel's total grows, else that of the most trusted source."""
    installed = installed_memory_B(facts) if grows(facts) else None
    return facts.number("memory_total") if installed is None else float(installed)


def discovered(facts: Facts, name: str) -> Fact | None:
    """The fact from the most trusted source of the machine itself, unless volatile."""
    return next((f for f in facts.get(name, ()) if f.kind is FactKind.DISCOVERED and not f.volatile), None)


def _nominal_B(usable_B: float) -> int:
    whole = usable_B / _USABLE
    return _nearest(whole, _step(whole))


def _bytes(fact: Fact | None) -> float | None:
    if fact is None or isinstance(fact.value, str | bool) or fact.value < 1:
        return None
    return float(fact.value)


def _step(size: float) -> int:
    """4.2 to 8.3 % of a size: a sixteenth of the largest power of two in it, an eighth from one and a half of it on.

    Modules make whole multiples of it; one of 16 is a step or more.
    """
    power = 1 << (int(size).bit_length() - 1)
    return max(1, power // (16 if size < 1.5 * power else 8))


def _nearest(size: float, step: int) -> int:
    return max(1, round(size / step)) * step


class Severity(StrEnum):
    """How serious a finding is; INFO is shown as "note"."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Aim(Frozen):
    """The value that a fact of a device (of the machine if `device` is "") has once a remedy is done."""

    fact: str
    value: FactValue
    device: str = ""


@published("Cause")
class NamedCause(Frozen):
    """A cause, and the share of the time that it explains (null: not measured).

    Its name is one of a closed set, `share` is 0..1.
    """

    cause: Annotated[str, Keywords(pattern="^[a-z0-9]+(-[a-z0-9]+)*$")]
    share: Annotated[float | None, Keywords(minimum=0, maximum=1)]


class Finding(Frozen):
    """A problem, what it means, and what to do about it.

    `remedy` contains a command if there is one. `loss` is the share of a figure that it costs, 0..1, if known; findings
    are sorted by it. `aims` is what the remedy changes: none of them may be a fact already. `causes` are the values
    behind the sentences, the main one first.
    """

    rule: Annotated[str, Keywords(pattern="^[a-z0-9]+(-[a-z0-9]+)*$")]
    severity: Severity
    devices: Annotated[tuple[str, ...], Keywords(uniqueItems=True)]
    observation: Text
    diagnosis: Text
    remedy: Text
    evidence: Text
    loss: Later[Annotated[float | None, Keywords(exclusiveMinimum=0, maximum=1)]] = None
    aims: Hidden[tuple[Aim, ...]] = ()
    causes: Later[tuple[NamedCause, ...]] = ()
