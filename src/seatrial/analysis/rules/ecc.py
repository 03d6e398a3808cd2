"""Rules about memory without error correction."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.analysis.rules.case import Case, cite_best
from seatrial.analysis.rules.devices import gpus, is_virtual, spans
from seatrial.model.fact import Facts
from seatrial.model.finding import Finding, Severity

_OFF = frozenset({"none", "off", "disabled", "false", "no", "0"})
_NAMES = ("ecc_mode", "ecc")
"""The mode of the memory controllers (of a processor or GPU) takes precedence over what the firmware reports."""


def ecc_off(case: Case) -> Iterator[Finding]:
    """Fires if the memory of the machine or of GPUs is reported to run without error correction."""
    machine = case.machine
    fact = _off(machine.facts)
    if fact is not None and not is_virtual(machine):  # the firmware of a virtual machine is emulated
        yield Finding(
            rule="memory-ecc-off",
            severity=Severity.WARNING,
            devices=(),
            observation="The memory runs without error correction (ECC).",
            diagnosis="A flipped bit can change a result or crash a program, undetected. Figures are not affected; "
            "long computations may be.",
            remedy="Check the modules with `sudo dmidecode -t memory` (total width 72 bits: ECC, 64 bits: none; DDR5 "
            "with ECC: 80 or 72) and the memory settings of the firmware",
            evidence=cite_best(machine.facts, fact),
        )
    off = [(gpu, name) for gpu in gpus(machine) if (name := _off(gpu.facts)) is not None]
    if off:
        yield Finding(
            rule="gpu-ecc-off",
            severity=Severity.WARNING,
            devices=tuple(gpu.id for gpu, _ in off),
            observation=f"ECC is off on {spans(gpu.id for gpu, _ in off)}.",
            diagnosis="Errors in GPU memory go undetected. With GDDR memory, figures also change: ECC takes part of "
            "the capacity and bandwidth, so a card without it looks faster than comparable cards.",
            remedy="Turn it on, then reset the GPUs or reboot: `sudo nvidia-smi -e 1`",
            evidence=cite_best(off[0][0].facts, off[0][1]),
        )


def _off(facts: Facts) -> str | None:
    """The name of the fact that states it, or None; only the first known name counts."""
    name = next((name for name in _NAMES if name in facts), None)
    value = None if name is None else facts.text(name)
    return name if value is not None and value.strip().lower() in _OFF else None
