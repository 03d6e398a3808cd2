"""The limit of compute-bound kernels: the rate of a device's vector units and tensor cores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seatrial.model.benchmark.parameter import Params
from seatrial.model.machine.limit import Basis, Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

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


_TENSOR_FMAS_PER_CYCLE = {
    70: {"fp16": 512},
    75: {"fp16": 512},
    80: {"fp16": 1024, "bf16": 1024, "tf32": 512, "fp64": 64},
    90: {"fp16": 2048, "bf16": 2048, "tf32": 1024, "fp64": 128},
    100: {"fp16": 4096, "bf16": 4096, "tf32": 2048, "fp64": 64},
}
"""CUDA capability -> multiply-adds of dense matrices that a multiprocessor's tensor cores do in a cycle: 8 cores of 64
("NVIDIA Tesla V100 GPU Architecture", 2017; "NVIDIA Turing GPU Architecture", 2018); 4 of 256 ("NVIDIA A100 Tensor Core
GPU Architecture", 2020); 4 of 512 ("NVIDIA H100 Tensor Core GPU Architecture", 2022); 100: from the B200's dense rates
of 2.25, 1.12 and 0.037 PFLOP/s, 148 multiprocessors and 1.85 to 1.97 GHz ("NVIDIA Blackwell Architecture Technical
Brief", 2024)."""


def flop_limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    """Multiprocessors x multiply-adds per cycle x 2 flop x the highest clock reported by the driver, of all devices."""
    return _limit(_FMAS_PER_CYCLE, "vector units", params, samples)


def matrix_limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    """The rate of the tensor cores if they support the precision, else of the vector units.

    Datasheets give tensor cores at a lower clock: 989 TFLOP/s of an H100 in fp16 are at 1.83 GHz, not its highest 1.98.
    """
    facts = samples[0].extra.get("device")
    capability = facts.get("capability") if isinstance(facts, dict) else None
    if params["precision"] in _TENSOR_FMAS_PER_CYCLE.get(capability or 0, {}):
        return _limit(_TENSOR_FMAS_PER_CYCLE, "tensor cores", params, samples)
    return _limit(_FMAS_PER_CYCLE, "vector units", params, samples)


def _limit(rates: Mapping[int, Mapping[str, int]], what: str, params: Params, samples: Sequence[Sample]) -> Limit:
    facts = samples[0].extra.get("device")
    if not isinstance(facts, dict) or not facts.get("clock_Hz"):
        return Limit.unknown("flop/s", f"the rate of the device's {what} is unknown")
    rate = rates.get(facts.get("capability", 0), {}).get(str(params["precision"]))
    if rate is None:
        return Limit.unknown("flop/s", f"the rate of the device's {what} is unknown")
    units, clock_Hz, count = facts["compute_units"], facts["clock_Hz"], facts.get("devices", 1)
    derivation = f"{what}: {units} multiprocessors x {rate} multiply-adds per cycle x 2 flop x {clock_Hz / 1e9:.3f} GHz"
    derivation += ", the highest clock" + (f", x {count} devices" if count > 1 else "")
    return Limit(units * rate * 2 * clock_Hz * count, "flop/s", derivation, Basis.PHYSICAL)
