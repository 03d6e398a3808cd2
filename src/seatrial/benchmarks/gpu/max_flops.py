"""gpu.max-flops: the rate of a device's vector units, by chains of additions, multiplications and multiply-adds.

As SHOC's MaxFlops; every result is held against the same chain on the host, bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from seatrial.benchmarks.bounds import zero
from seatrial.benchmarks.gpu.device_parameters import COMMON, PRECISION, device_arguments, mode_among, one_or_more
from seatrial.benchmarks.gpu.device_parameters import placement as cpu_of_each_device
from seatrial.benchmarks.gpu.flop_limit import flop_limit
from seatrial.model.benchmark import Benchmark, Better, Check, Figure, Native
from seatrial.model.limit import Limit
from seatrial.model.machine import Machine
from seatrial.model.parameter import Params
from seatrial.model.sample import Sample

_KINDS = {"add": (1, 1), "multiply": (1, 1), "fma": (2, 1), "mixed": (3, 2)}
"""Series -> (flop, instructions) of an operation."""


def _arguments(params: Params) -> list[str]:
    return [*device_arguments(params), "--precision", str(params["precision"])]


def _limit_of(flops: int, instructions: int) -> Callable[[Machine, Params, Sequence[Sample]], Limit]:
    """The share of the multiply-adds' rate that such operations can reach: an instruction of one flop takes the place
    of one of two."""
    share = flops / (2 * instructions)

    def limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
        whole = flop_limit(machine, params, samples)
        if whole.value is None or share == 1:
            return whole
        derivation = f"{whole.derivation}; {flops} flop in {instructions} of its instructions"
        return replace(whole, value=share * whole.value, derivation=derivation)

    return limit


def _figures() -> Iterator[Figure]:
    for name, (flops, instructions) in _KINDS.items():
        for suffix, what in (("", "on one device"), ("_all", "on all devices, by the time of the slowest")):
            yield Figure(
                name=f"{name}{suffix}",
                series=f"{name}{suffix}",
                unit="flop/s",
                better=Better.HIGHER,
                value=lambda sample: sample.work["flops"] / sample.elapsed_s,
                work=f"{flops} flop for each operation of a chain, {what}",
                limit=_limit_of(flops, instructions),
                is_there=_always if not suffix else _of_several,
            )


def _always(params: Params) -> bool:
    return True


def _of_several(params: Params) -> bool:
    return params["mode"] == "EP" and params["devices"] != 1


BENCHMARK = Benchmark(
    name="gpu.max-flops",
    question="How fast do a device's vector units add and multiply?",
    program=Native(Path(__file__).with_suffix(".cpp"), _arguments, library="gpu"),
    parameters=(mode_among("S", "EP"), PRECISION, *COMMON),
    figures=tuple(_figures()),
    checks=(Check("different", "share of the results that differ in any bit from the same chain on the host", zero),),
    placement=cpu_of_each_device,
    prepare=one_or_more,
    estimate_s=lambda params: 6.0,
    verified=False,
)
