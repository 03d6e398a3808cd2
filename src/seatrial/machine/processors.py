"""What the table of processors knows of a CPU: its microarchitecture, FMA pipes and memory, as asserted facts.

A CPU is looked up by vendor, family, model and stepping, or by implementer and part; where these are missing or the row
is silent, by its model name. An unknown CPU gets nothing: a wrong limit is worse than none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from seatrial.machine.processor_table import PROCESSORS, Cpuid, Interleaving, MainId, Processor, Vector
from seatrial.machine.survey import FactBook, merge_facts
from seatrial.model.fact import FactKind, Facts
from seatrial.model.machine import Device, DeviceKind

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Platform:
    """What the rules for memory ask of a package: its microarchitecture, the channels of a socket (None where no
    document settles them) and which populations of them interleave."""

    name: str | None
    channels: int | None
    source: str = ""
    confirmed: bool = True
    interleaving: Interleaving | None = None


def find_processors(facts: Facts) -> tuple[Processor, ...]:
    """The rows for a package or core, the surer one first: that of its identification, that of its model name."""
    name = _plain_name(facts)
    by_id = next((row for row in PROCESSORS if any(_is(of, facts) for of in row.ids)), None)
    by_name = next((row for row in PROCESSORS if row.models is not None and _matches(row.models, name)), None)
    return tuple(row for row in dict.fromkeys((by_id, by_name)) if row is not None)


def platform_of(package: Device) -> Platform:
    """The platform of a package; one without name and channels where nothing is known."""
    rows, name = find_processors(package.facts), _plain_name(package.facts)
    known = next((row for row in rows if row.name is not None), Processor(None))
    channels = _first(_by_model(row.channels, name) for row in rows)
    if channels is None:
        return Platform(known.name, None, interleaving=known.interleaving)
    return Platform(known.name, channels.count, channels.source, channels.confirmed, known.interleaving)


def highest_memory_MTps(package: Device) -> float | None:
    """The highest speed of memory in MT/s that the maker states for a package's model, or for its generation."""
    name = _plain_name(package.facts)
    return _first(_by_model(row.memory_MTps, name) for row in find_processors(package.facts))


def with_asserted_facts(device: Device) -> Device:
    """A package or core with what the table knows of it; any other device as it is.

    `fma_vector_bits` is never wider than the instruction set that programs may use: where AVX-512 is masked, both FMA
    pipes of these CPUs work on 256 bits; without FMA in the instruction set nothing is said of them.
    """
    if device.kind not in (DeviceKind.PACKAGE, DeviceKind.CORE):
        return device
    name, book = _plain_name(device.facts), FactBook()
    for row in find_processors(device.facts):
        memory = row.package_memory
        if memory is not None and _matches(memory.model, name) and "package_memory" not in book.facts():
            book.say("package_memory", memory.memory, memory.source, kind=FactKind.ASSERTED)
        if any(_is(of, device.facts) for of in row.ids):
            _say_row(row, name, device.facts.text("isa"), book)
    return replace(device, facts=merge_facts(device.facts, book.facts()))


def _is(identification: Cpuid | MainId, facts: Facts) -> bool:
    """Whether this is the CPU of these facts."""
    implementer, part = facts.integer("implementer"), facts.integer("part")
    if isinstance(identification, MainId):
        return (implementer, part) == (identification.implementer, identification.part)
    return (
        (implementer is None or part is None)
        and facts.text("vendor") == identification.vendor
        and facts.integer("family") == identification.family
        and facts.integer("model") in identification.models
        and (identification.steppings is None or facts.integer("stepping") in identification.steppings)
    )


def _plain_name(facts: Facts) -> str:
    """The model name without trade marks: "Intel Xeon Gold 6142 @ 2.60GHz"."""
    name = re.sub(r"\((R|TM)\)|\bCPU\b", " ", (facts.text("model_name") or "")[:200], flags=re.IGNORECASE)
    return " ".join(name.split())


def _matches(pattern: str, name: str) -> bool:
    return re.search(pattern, name, re.IGNORECASE | re.ASCII) is not None


def _by_model(entries: Iterable[tuple[str, _Value]], name: str) -> _Value | None:
    return next((value for pattern, value in entries if _matches(pattern, name)), None)


def _first(values: Iterable[_Value | None]) -> _Value | None:
    return next((value for value in values if value is not None), None)


def _say_row(row: Processor, name: str, isa: str | None, book: FactBook) -> None:
    """What a row knows of a CPU with this model name and instruction set."""
    book.say("microarchitecture", row.name, row.ids_source, kind=FactKind.ASSERTED)
    vector = _by_model(row.vectors, name)
    if vector is not None:
        book.say("fma_latency_cycles", vector.latency_cycles, vector.source, "1", kind=FactKind.ASSERTED)
    unit = _visible_unit(vector, isa) if vector is not None else None
    if vector is not None and unit is not None:
        pipes, bits = unit
        book.say("fma_pipes", pipes, vector.source, "1", kind=FactKind.ASSERTED)
        book.say("fma_vector_bits", bits, vector.source, "1", kind=FactKind.ASSERTED)
        book.say("fma_confirmed", vector.confirmed, vector.source, kind=FactKind.ASSERTED)
    channels = _by_model(row.channels, name)
    if channels is not None:
        book.say("memory_channels", channels.count, channels.source, "1", kind=FactKind.ASSERTED)
        book.say("memory_channels_confirmed", channels.confirmed, channels.source, kind=FactKind.ASSERTED)


def _visible_unit(vector: Vector, isa: str | None) -> tuple[int, int] | None:
    """Pipes and bits as far as the visible instruction set lets programs use them; None where that is not settled."""
    if vector.pipes is None or vector.bits is None:
        return None
    if isa is None:
        return vector.pipes, vector.bits
    features = set(isa.split())
    if "asimd" in features or "sve" in features:
        return vector.pipes, vector.bits if "sve" in features else min(vector.bits, 128)
    if "fma" not in features:
        return None
    if vector.bits > 256 and "avx512f" not in features:
        return 2, 256  # also where there is one 512-bit unit: ports 0 and 1 each do 256 bits
    return vector.pipes, vector.bits
