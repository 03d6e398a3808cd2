"""Rules about errors in memory: memory or modules without error correction, rows of GPU memory that were replaced."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.analysis.rules.case import Case, cite_best, is_true
from seatrial.analysis.rules.devices import gpus, is_virtual, spans
from seatrial.analysis.rules.finding import Subject, finding, rule, warning
from seatrial.analysis.rules.memory_modules import ECC, devices_of, evidence, sentences
from seatrial.analysis.rules.words import listed
from seatrial.model.machine.fact import Facts
from seatrial.model.machine.finding import Aim, Finding, Severity

_OFF = frozenset({"none", "off", "disabled", "false", "no", "0"})
_NAMES = ("ecc_mode", "ecc")
"""The mode of the memory controllers (of a processor or GPU) takes precedence over what the firmware reports."""


@rule(Subject.MEMORY_ERRORS)
def ecc_off(case: Case) -> Iterator[Finding]:
    """Fires if the memory of the machine or of GPUs is reported to run without error correction."""
    machine = case.machine
    fact = _off(machine.facts)
    if fact is not None and not is_virtual(machine):  # the firmware of a virtual machine is emulated
        yield warning(
            "memory-ecc-off",
            observation="The memory runs without error correction (ECC).",
            diagnosis="A flipped bit can change a result or crash a program, undetected. Figures are not affected; "
            "long computations may be.",
            remedy="Check the modules with `sudo dmidecode -t memory` (total width 72 bits: ECC, 64 bits: none; DDR5 "
            "with ECC: 80 or 72) and the memory settings of the firmware",
            evidence=cite_best(machine.facts, fact),
        )
    off = [(gpu, name) for gpu in gpus(machine) if (name := _off(gpu.facts)) is not None]
    if off:
        yield warning(
            "gpu-ecc-off",
            devices=(gpu.id for gpu, _ in off),
            observation=f"ECC is off on {spans(gpu.id for gpu, _ in off)}.",
            diagnosis="Errors in GPU memory go undetected. With GDDR memory, figures also change: ECC takes part of "
            "the capacity and bandwidth, so a card without it looks faster than comparable cards.",
            remedy="Turn it on, then reset the GPUs or reboot: `sudo nvidia-smi -e 1`",
            evidence=cite_best(off[0][0].facts, off[0][1]),
            aims=tuple(Aim(name, "enabled", gpu.id) for gpu, name in off),
        )


@rule(Subject.MEMORY_ERRORS)
def ecc_missing(case: Case) -> Iterator[Finding]:
    """Fires if single modules have fewer bits for ECC than the others."""
    machine = case.machine
    odd = [] if is_virtual(machine) else [one for one in machine.memory.odd_slots if one.property == ECC]
    if not odd:
        return
    yield warning(
        "memory-module-without-ecc",
        devices=devices_of(odd),
        observation=sentences(odd),
        diagnosis="The total width of a module less its data width is what holds the check bits. With fewer than the "
        "others it cannot have the same error correction, and the firmware may have turned ECC off for all: a flipped "
        "bit can then change a result undetected.",
        remedy=f"Replace the module in slot {listed(one.slot for one in odd)} by one like the others, and check with "
        "`sudo dmidecode -t memory` (Total Width, and Error Correction Type of the array) and `edac-util -s`",
        evidence=evidence(odd),
    )


@rule(Subject.MEMORY_ERRORS)
def rows_remapped(case: Case) -> Iterator[Finding]:
    """Fires if rows of a GPU's memory failed: an error if no spare row was left, a warning if a replacement waits for a
    reset or an uncorrectable error caused one. Rows replaced after correctable errors are normal ageing."""
    cards = gpus(case.machine)
    failed = [gpu for gpu in cards if is_true(gpu.facts, "row_remapping_failed")]
    pending = [gpu for gpu in cards if gpu not in failed and is_true(gpu.facts, "row_remapping_pending")]
    known = [*failed, *pending]
    replaced = [gpu for gpu in cards if gpu not in known and (gpu.facts.number("rows_remapped_uncorrectable") or 0) > 0]
    for devices, severity, fact, observation, diagnosis, remedy in (
        (
            failed,
            Severity.ERROR,
            "row_remapping_failed",
            "Rows of the memory of {} could not be replaced.",
            "No spare row was left, or the replacement failed: errors in these rows will stop programs again.",
            "Take the GPU out of use and have it replaced; details: `nvidia-smi -q -d ROW_REMAPPER,ECC`",
        ),
        (
            pending,
            Severity.WARNING,
            "row_remapping_pending",
            "The replacement of memory rows of {} is pending.",
            "The bad row stays in use until the GPU is reset.",
            "When the GPU is free, reset it: `sudo nvidia-smi --gpu-reset -i INDEX`, or reboot; then test its memory",
        ),
        (
            replaced,
            Severity.INFO,
            "rows_remapped_uncorrectable",
            "Memory rows of {} were replaced after uncorrectable errors.",
            "The rows are no longer in use; figures are not affected. The number of spare rows is limited.",
            "Watch whether the number grows: `nvidia-smi -q -d ROW_REMAPPER`",
        ),
    ):
        if devices:
            yield finding(
                "gpu-memory-rows",
                severity=severity,
                devices=devices,
                observation=observation.format(spans(gpu.id for gpu in devices)),
                diagnosis=diagnosis,
                remedy=remedy,
                evidence=listed(f"{gpu.id}: {cite_best(gpu.facts, fact)}" for gpu in devices),
            )


def _off(facts: Facts) -> str | None:
    """The name of the fact that states it, or None; only the first known name counts."""
    name = next((name for name in _NAMES if name in facts), None)
    value = None if name is None else facts.text(name)
    return name if value is not None and value.strip().lower() in _OFF else None
