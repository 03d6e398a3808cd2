"""gpu.max-flops: the rate of a device's vector units, by chains of additions, multiplications and multiply-adds.

As SHOC's MaxFlops; every result is compared with the same chain on the host, bit by bit.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from seatrial.benchmarks.figures import zero
from seatrial.benchmarks.gpu import device
from seatrial.benchmarks.gpu.limits import flop_limit
from seatrial.model.benchmark.benchmark import Check, LimitOf, Role
from seatrial.model.benchmark.parameter import Params
from seatrial.model.machine.limit import Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

_KINDS = {"add": (1, 1), "multiply": (1, 1), "fma": (2, 1), "mixed": (3, 2)}
"""Series -> (flop, instructions) of an operation."""


def _limit_of(flops: int, instructions: int) -> LimitOf:
    """The share of the multiply-adds' rate that such operations can reach: an instruction of one flop replaces one of
    two."""
    share = flops / (2 * instructions)

    def limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
        whole = flop_limit(machine, params, samples)
        if whole.value is None or share == 1:
            return whole
        derivation = f"{whole.derivation}; operations of {flops} flop in {instructions} instructions"
        return replace(whole, value=share * whole.value, derivation=derivation)

    return limit


BENCHMARK = device.benchmark(
    __file__,
    name="gpu.max-flops",
    question="What arithmetic rate do a device's vector units reach?",
    parameters=(device.mode_among("S", "EP"), device.PRECISION),
    figures=[
        figure
        for name, (flops, instructions) in _KINDS.items()
        for figure in device.rates(
            name,
            "flop/s",
            f"{flops} flop per operation of a chain",
            series=name,
            limit=_limit_of(flops, instructions),
            role=Role.DEVICE_FMA_RATE if name == "fma" else None,
        )
    ],
    checks=(Check("different", "share of results that differ in any bit from the same chain on the host", zero),),
    estimate_s=lambda params: 6.0,
    trial=({"precision": "fp64"}, {"precision": "fp32"}),
)
