"""Asserted facts from the table of processors: microarchitecture, FMA pipes and memory of a CPU.

A CPU is identified by vendor, family, model and stepping, or by implementer and part; if these are missing or the row
has no value, by its model name. An unknown CPU gets no facts: a wrong limit is worse than none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar

from msgspec.structs import replace

from seatrial.machine.processor_table import Channels, Cpuid, Interleaving, MainId, Processor, Vector, processors
from seatrial.machine.survey import FactBook, merge_facts
from seatrial.model.frozen import Frozen
from seatrial.model.machine.fact import FactKind, Facts
from seatrial.model.machine.machine import Device, DeviceKind

_Value = TypeVar("_Value")


class CpuPlatform(Frozen):
    """Facts about a package that the rules for memory use: its microarchitecture, the channels of a socket (None if no
    document states them) and which populations of them interleave."""

    name: str | None
    channels: int | None
    source: str = ""
    confirmed: bool = True
    interleaving: Interleaving | None = None


def find_processors(facts: Facts) -> tuple[Processor, ...]:
    """The rows for a package or core: first the one for its identification, then the one for its model name."""
    name = _plain_name(facts)
    by_id = next((row for row in processors() if any(_identifies(of, facts) for of in row.ids)), None)
    by_name = next((row for row in processors() if row.models is not None and _matches(row.models, name)), None)
    return tuple(row for row in dict.fromkeys((by_id, by_name)) if row is not None)


def platform_of(package: Device) -> CpuPlatform:
    """The platform of a package, without name and channels if they are unknown."""
    rows, name = find_processors(package.facts), _plain_name(package.facts)
    known = next((row for row in rows if row.name is not None), Processor(None))
    channels = _first(_by_model(row.channels, name) for row in rows)
    if channels is None:
        return CpuPlatform(known.name, None, interleaving=known.interleaving)
    return CpuPlatform(known.name, channels.count, channels.source, _is_confirmed(channels), known.interleaving)


def _is_confirmed(stated: Vector | Channels) -> bool:
    """Whether no part of the source is marked unconfirmed."""
    return "unconfirmed" not in stated.source


def highest_memory_MTps(package: Device) -> float | None:
    """The highest memory speed in MT/s that the manufacturer states for a package's model, or for its generation."""
    name = _plain_name(package.facts)
    return _first(_by_model(row.memory_MTps, name) for row in find_processors(package.facts))


def with_asserted_facts(device: Device) -> Device:
    """A package or core with its facts from the table; any other device unchanged.

    `fma_vector_bits` is limited to the instruction set that programs may use: if AVX-512 is masked, both FMA pipes of
    these CPUs work on 256 bits; without FMA in the instruction set there are no facts about them.
    """
    if device.kind not in (DeviceKind.PACKAGE, DeviceKind.CORE):
        return device
    name, book = _plain_name(device.facts), FactBook()
    for row in find_processors(device.facts):
        memory = row.package_memory
        if memory is not None and _matches(memory.model, name) and "package_memory" not in book.facts():
            book.say("package_memory", memory.memory, memory.source, kind=FactKind.ASSERTED)
        if any(_identifies(of, device.facts) for of in row.ids):
            _say_row(row, name, device.facts.text("isa"), book)
    return replace(device, facts=merge_facts(device.facts, book.facts()))


def _identifies(identification: Cpuid | MainId, facts: Facts) -> bool:
    """Whether these are the facts of this CPU."""
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
    """Add the facts of a row about a CPU with this model name and instruction set."""
    book.say("microarchitecture", row.name, row.ids_source, kind=FactKind.ASSERTED)
    vector = _by_model(row.vectors, name)
    if vector is not None:
        book.say("fma_latency_cycles", vector.latency_cycles, vector.source, "1", kind=FactKind.ASSERTED)
    if vector is not None and (unit := _visible_unit(vector, isa)) is not None:
        for fact, value in zip(("fma_pipes", "fma_vector_bits"), unit, strict=True):
            book.say(fact, value, vector.source, "1", kind=FactKind.ASSERTED)
        book.say("fma_confirmed", _is_confirmed(vector), vector.source, kind=FactKind.ASSERTED)
    channels = _by_model(row.channels, name)
    if channels is not None:
        book.say("memory_channels", channels.count, channels.source, "1", kind=FactKind.ASSERTED)
        book.say("memory_channels_confirmed", _is_confirmed(channels), channels.source, kind=FactKind.ASSERTED)


def _visible_unit(vector: Vector, isa: str | None) -> tuple[int, int] | None:
    """Pipes and bits that programs can use with the visible instruction set; None if unknown."""
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
        return 2, 256  # also with one 512-bit unit: ports 0 and 1 each process 256 bits
    return vector.pipes, vector.bits
