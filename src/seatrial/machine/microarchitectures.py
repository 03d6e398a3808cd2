"""What a CPU cannot be asked - FMA pipes, their width and latency, memory channels and memory in its package - as
asserted facts with sources.

An unknown CPU gets none: a wrong limit is worse than none. The values stand in `microarchitecture_table`.
"""

from __future__ import annotations

import re
from dataclasses import replace

from seatrial.machine.microarchitecture_table import (
    AMD,
    ARM,
    CASCADE_LAKE,
    COOPER_LAKE,
    INTEL,
    PACKAGE_MEMORY,
    SKYLAKE,
    Microarchitecture,
    Vector,
)
from seatrial.machine.survey import FactBook, merge_facts
from seatrial.model.fact import FactKind
from seatrial.model.machine import Device, DeviceKind


def find_microarchitecture(device: Device) -> Microarchitecture | None:
    """The entry of a package or core by its vendor, family, model and stepping, or implementer and part; else None."""
    facts = device.facts
    implementer, part = facts.integer("implementer"), facts.integer("part")
    if implementer is not None and part is not None:
        return ARM.get((implementer, part))
    vendor, family, model = facts.text("vendor"), facts.integer("family"), facts.integer("model")
    if family is None or model is None:
        return None
    if vendor == "GenuineIntel" and family == 6:
        return _skylake_server(facts.integer("stepping")) if model == 0x55 else INTEL.get(model)
    if vendor == "AuthenticAMD":
        return next((entry for fam, models, entry in AMD if family == fam and model in models), None)
    return None


def _skylake_server(stepping: int | None) -> Microarchitecture | None:
    """Model 0x55 by stepping: up to 4 Skylake, 5 to 7 Cascade Lake, 10 and 11 Cooper Lake (Intel 338848, 338854)."""
    if stepping is None:
        return None
    if stepping <= 4:
        return SKYLAKE
    return CASCADE_LAKE if stepping <= 7 else COOPER_LAKE


def with_asserted_facts(device: Device) -> Device:
    """A package or core with what the table knows of it; any other device as it is.

    `fma_vector_bits` is never wider than the instruction set that programs may use: where AVX-512 is masked, both FMA
    pipes of these CPUs work on 256 bits; without FMA in the instruction set nothing is said of them.
    """
    if device.kind not in (DeviceKind.PACKAGE, DeviceKind.CORE):
        return device
    name = device.facts.text("model_name") or ""
    book = FactBook()
    for memory in PACKAGE_MEMORY:
        if re.search(memory.name, name):
            book.say("package_memory", memory.memory, memory.source, kind=FactKind.ASSERTED)
    entry = find_microarchitecture(device)
    if entry is not None:
        _say_entry(entry, name, device.facts.text("isa"), book)
    return replace(device, facts=merge_facts(device.facts, book.facts()))


def _say_entry(entry: Microarchitecture, name: str, isa: str | None, book: FactBook) -> None:
    """What the table knows of a CPU with this model name and instruction set."""
    vector = next(vector for pattern, vector in entry.vectors if re.search(pattern, name))
    book.say("microarchitecture", entry.name, entry.named_by, kind=FactKind.ASSERTED)
    book.say("fma_latency_cycles", vector.latency_cycles, vector.source, "1", kind=FactKind.ASSERTED)
    unit = _visible_unit(vector, isa)
    if unit is not None:
        pipes, bits = unit
        book.say("fma_pipes", pipes, vector.source, "1", kind=FactKind.ASSERTED)
        book.say("fma_vector_bits", bits, vector.source, "1", kind=FactKind.ASSERTED)
        book.say("fma_confirmed", vector.confirmed, vector.source, kind=FactKind.ASSERTED)
    channels = next((c for c in entry.channels if re.search(c.name, name)), None)
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
