"""Emulated processors: times measured on them are those of the emulator and say nothing of any hardware.

The only place that decides this. What is measured on such a machine has no limits (`model.reading`) and, in
`analysis`, no figures that could be compared (`ExperimentResult.emulated`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seatrial.model.machine import Machine
from seatrial.model.protocol import Hello

QEMU_TCG = "qemu (tcg)"
"""The fact `hypervisor` of a machine whose processors QEMU emulates (Tiny Code Generator)."""
TCG_MODEL = "QEMU TCG CPU"
"""What QEMU's CPU model `max` is called if it is emulated (target/i386/cpu.c)."""
TCG_SIGNATURE = "TCGTCGTCGTCG"
"""The signature of the hypervisor in CPUID leaf 0x40000000 if processors are emulated, whatever their model is."""
_WHAT = "the processors are emulated (QEMU TCG)"


def is_emulated(machine: Machine) -> bool:
    """Whether the processors of a machine are emulated, as far as is known."""
    return machine.facts.text("hypervisor") == QEMU_TCG


def is_stored_as_emulated(document: Mapping[str, Any]) -> bool:
    """The same of a machine as it is stored (`seatrial.machine/1`), without reading all of it."""
    facts = document.get("facts")
    stated = facts.get("hypervisor") if isinstance(facts, Mapping) else None
    first = stated[0] if isinstance(stated, list) and stated else None
    return isinstance(first, Mapping) and first.get("value") == QEMU_TCG


def why_not_comparable(machine: Machine) -> str:
    """Why figures of a machine are compared with nothing; "" if they can be."""
    if not is_emulated(machine):
        return ""
    fact = machine.facts.best("hypervisor")
    source = f", by {fact.source}" if fact is not None else ""
    return f"{_WHAT}{source}: its times are those of the emulator, so they are compared with nothing and have no limit"


def emulation_unnoticed(machine: Machine, hello: Hello) -> str:
    """What a program saw of emulation that is not known of its machine; "" if nothing."""
    if is_emulated(machine) or hello.hypervisor != TCG_SIGNATURE:
        return ""
    return f"{_WHAT}, by CPUID ({TCG_SIGNATURE}), which is not known of the machine: its times mean nothing"
