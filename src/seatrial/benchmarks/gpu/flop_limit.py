"""The rate of a device's vector units: the limit of what computes and hardly touches memory."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.model.limit import Basis, Limit
from seatrial.model.machine import Machine
from seatrial.model.parameter import Params
from seatrial.model.sample import Sample

_FMAS_PER_CYCLE = {
    60: {"fp32": 64, "fp64": 32},
    61: {"fp32": 128, "fp64": 4},
    70: {"fp32": 64, "fp64": 32},
    75: {"fp32": 64, "fp64": 2},
    80: {"fp32": 64, "fp64": 32},
    86: {"fp32": 128, "fp64": 2},
    89: {"fp32": 128, "fp64": 2},
    90: {"fp32": 128, "fp64": 64},
    100: {"fp32": 128, "fp64": 64},
    120: {"fp32": 128, "fp64": 2},
}
"""CUDA capability -> multiply-adds that a multiprocessor issues in a cycle (CUDA C++ Programming Guide, "Throughput of
Native Arithmetic Instructions")."""


def flop_limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    """Multiprocessors x multiply-adds per cycle x 2 flop x the highest clock that the driver tells, of all devices."""
    facts = samples[0].extra.get("device")
    if not isinstance(facts, dict) or facts.get("capability") not in _FMAS_PER_CYCLE or not facts.get("clock_Hz"):
        return Limit.unknown("flop/s", "the device's vector units are not known")
    rate = _FMAS_PER_CYCLE[facts["capability"]][str(params["precision"])]
    units, clock_Hz, count = facts["compute_units"], facts["clock_Hz"], facts.get("devices", 1)
    derivation = f"{units} multiprocessors x {rate} multiply-adds per cycle x 2 flop x {clock_Hz / 1e9:.3f} GHz"
    derivation += ", the highest clock" + (f", x {count} devices" if count > 1 else "")
    return Limit(units * rate * 2 * clock_Hz * count, "flop/s", derivation, Basis.PHYSICAL)
