"""Rules about single memory slots: a module unlike the others, an empty slot, a module without the bits for ECC."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from seatrial.analysis.rules.case import Case
from seatrial.analysis.rules.devices import is_virtual
from seatrial.analysis.rules.words import listed
from seatrial.model.finding import Finding, Severity
from seatrial.model.machine import Machine, OddSlot, Population
from seatrial.model.spelling import count

_ECC = "bits for ECC"
_EMPTY = "module"
_JUDGED = (Population.UNBALANCED, Population.NEAR_BALANCED)


def odd_slots(machine: Machine) -> tuple[OddSlot, ...]:
    """The slots whose module, or lack of one, differs from most others; none in a virtual machine."""
    return () if is_virtual(machine) else tuple(odd for odd in machine.memory.odd_slots if odd.property != _ECC)


def devices_of(odd: Sequence[OddSlot]) -> tuple[str, ...]:
    """The modules in these slots; an empty slot has none."""
    return tuple(dict.fromkeys(one.device for one in odd if one.device is not None))


def sentences(odd: Sequence[OddSlot]) -> str:
    """Such as: Slot A3 (socket 1, channel 2) has 16 GiB; 15 other modules have 32 GiB."""
    parts = []
    by_property = sorted(odd, key=lambda one: (one.property != _EMPTY, one.property, one.own))
    for (name, own, usual, others), group in groupby(
        by_property, lambda one: (one.property, one.own, one.usual, one.others)
    ):
        slots = [place(one) for one in group]
        which = f"Slot{'s' if len(slots) > 1 else ''} {listed(slots)}"
        if name == _EMPTY:
            verb = "is" if len(slots) == 1 else "are"
            parts.append(f"{which} {verb} empty; the slots at the same place elsewhere have a module.")
        else:
            verb = "has" if len(slots) == 1 else "have"
            parts.append(
                f"{which} {verb} {_value(name, own)}; {count(others, 'other module')} have {_value(name, usual)}."
            )
    return " ".join(parts)


def _value(name: str, value: str) -> str:
    """Such as: "16 GiB", "1 rank", "2933 MT/s (configured speed)"."""
    if name == "size":
        return value
    if name == "ranks":
        return f"{value} rank" if value == "1" else f"{value} ranks"
    return f"{value} {name}" if name == _ECC else f"{value} ({name})"


def place(odd: OddSlot) -> str:
    """Such as: "A3 (socket 1, channel 2)"."""
    channel = odd.channel
    named = channel if channel is None or "CHANNEL" in channel.upper() else f"channel {channel}"
    where = [part for part in (odd.socket if odd.socket != "the socket" else "", named) if part]
    return f"{odd.slot} ({', '.join(where)})" if where else odd.slot


def first_look(odd: Sequence[OddSlot]) -> str:
    """The start of a remedy: which slots to look at; "" if none is odd."""
    if not odd:
        return ""
    slots = list(dict.fromkeys(one.slot for one in odd))
    return (
        f"Look at slot{'s' if len(slots) > 1 else ''} {listed(slots)} first (`sudo dmidecode -t memory`, the "
        "firmware's event log: `sudo ipmitool sel list`). Possible causes: another kind of module, one that is not "
        "seated well, or one that failed at boot. "
    )


def modules_differ(case: Case) -> Iterator[Finding]:
    """Fires if single slots have another module than most, or none, unless `memory-unbalanced` or
    `memory-sockets-differ` reports them."""
    machine = case.machine
    odd = odd_slots(machine)
    sockets = machine.memory.sockets
    if not odd or machine.memory.verdict in _JUDGED or len({(s.dimms, s.capacity_bytes) for s in sockets}) > 1:
        return
    yield Finding(
        rule="memory-module-differs",
        severity=Severity.WARNING,
        devices=devices_of(odd),
        observation=sentences(odd),
        diagnosis="All modules of a server are usually of one kind. One that is smaller, slower or has other ranks "
        "limits how the processors interleave their channels; how much this costs here is unknown until it is "
        "measured.",
        remedy=first_look(odd) + "Give every channel the same module",
        evidence=evidence(odd),
    )


def ecc_missing(case: Case) -> Iterator[Finding]:
    """Fires if single modules have fewer bits for ECC than the others."""
    machine = case.machine
    odd = [] if is_virtual(machine) else [one for one in machine.memory.odd_slots if one.property == _ECC]
    if not odd:
        return
    yield Finding(
        rule="memory-module-without-ecc",
        severity=Severity.WARNING,
        devices=devices_of(odd),
        observation=sentences(odd),
        diagnosis="The total width of a module less its data width is what holds the check bits. With fewer than the "
        "others it cannot have the same error correction, and the firmware may have turned ECC off for all: a flipped "
        "bit can then change a result undetected.",
        remedy=f"Replace the module in slot {listed(one.slot for one in odd)} by one like the others, and check with "
        "`sudo dmidecode -t memory` (Total Width, and Error Correction Type of the array) and `edac-util -s`",
        evidence=evidence(odd),
    )


def evidence(odd: Sequence[OddSlot]) -> str:
    """The values of the odd slots."""
    return listed(f"{one.slot}: {one.property} {one.own} (usual: {one.usual})" for one in odd)
