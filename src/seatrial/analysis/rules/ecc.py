"""Rules about memory that does not correct its errors."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.analysis.rules.case import Case, cite_best
from seatrial.analysis.rules.devices import gpus, is_virtual, spans
from seatrial.model.fact import Facts
from seatrial.model.finding import Finding, Severity

_OFF = frozenset({"none", "off", "disabled", "false", "no", "0"})
_NAMES = ("ecc_mode", "ecc")
"""The mode in which controllers (of a processor or GPU) work goes before what the firmware says of the slots."""


def ecc_off(case: Case) -> Iterator[Finding]:
    """Fires where memory, of the machine or of GPUs, is said to work without error correction."""
    machine = case.machine
    fact = _off(machine.facts)
    if fact is not None and not is_virtual(machine):  # the firmware of a virtual machine makes it up
        yield Finding(
            rule="memory-ecc-off",
            severity=Severity.WARNING,
            devices=(),
            observation="The memory works without error correction (ECC).",
            diagnosis="A flipped bit changes a result or ends a program, and nothing tells. Figures are not affected; "
            "what is computed for days may be.",
            remedy="See the modules with `sudo dmidecode -t memory` (a total width of 72 bits has ECC, 64 has not; "
            "DDR5: 80 or 72) and the memory settings of the firmware",
            evidence=cite_best(machine.facts, fact),
        )
    off = [(gpu, name) for gpu in gpus(machine) if (name := _off(gpu.facts)) is not None]
    if off:
        yield Finding(
            rule="gpu-ecc-off",
            severity=Severity.WARNING,
            devices=tuple(gpu.id for gpu, _ in off),
            observation=f"ECC is off on {spans(gpu.id for gpu, _ in off)}.",
            diagnosis="Errors of the GPU's memory go unseen. With GDDR memory it also changes the figures: ECC takes a "
            "part of capacity and bandwidth, so a card without it looks faster than its like.",
            remedy="Turn it on, then reset the GPUs or boot: `sudo nvidia-smi -e 1`",
            evidence=cite_best(off[0][0].facts, off[0][1]),
        )


def _off(facts: Facts) -> str | None:
    """The name of the fact that says so, or None; of several names only the first that is told counts."""
    name = next((name for name in _NAMES if name in facts), None)
    value = None if name is None else facts.text(name)
    return name if value is not None and value.strip().lower() in _OFF else None
