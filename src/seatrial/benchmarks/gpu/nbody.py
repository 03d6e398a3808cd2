"""gpu.nbody: gravity between all pairs of n bodies, on one device or shared out over several.

An interaction counts 20 flop in single precision and 30 in double, as the figures that others publish do (the nbody
sample of CUDA); the instructions behind it are fewer.
"""

from __future__ import annotations

from pathlib import Path

from seatrial.benchmarks.gpu.device_parameters import (
    COMMON,
    PRECISION,
    device_arguments,
    mode_among,
    one_or_more,
)
from seatrial.benchmarks.gpu.device_parameters import placement as cpu_of_each_device
from seatrial.benchmarks.gpu.flop_limit import flop_limit
from seatrial.model.benchmark import Benchmark, Better, Check, Figure, Native, Skip
from seatrial.model.machine import Machine
from seatrial.model.parameter import Parameter, ParameterKind, Params, whole

_BLOCK = 256
"""Bodies that a group computes; their number is a multiple of it."""
_TOLERANCE = {"fp32": 1e-4, "fp64": 1e-11}
"""Relative to the sum of magnitudes: a million terms one after another, each rounded."""


def _arguments(params: Params) -> list[str]:
    return [
        *device_arguments(params),
        *("--precision", str(params["precision"]), "--bodies", str(params["bodies"])),
    ]


def _prepare(machine: Machine, params: Params) -> Params:
    if whole(params["bodies"]) % _BLOCK:
        raise Skip(f"{params['bodies']} bodies are no multiple of {_BLOCK}")
    return one_or_more(machine, params)


def _error(machine: Machine, params: Params) -> tuple[float, float]:
    return (0.0, _TOLERANCE[str(params["precision"])])


def _estimate_s(params: Params) -> float:
    return 3.0 + 2e-12 * whole(params["bodies"]) ** 2


BENCHMARK = Benchmark(
    name="gpu.nbody",
    question="How fast do devices compute the forces between all pairs of many bodies?",
    program=Native(Path(__file__).with_suffix(".cpp"), _arguments, library="gpu"),
    parameters=(
        mode_among("S", "TP"),
        PRECISION,
        Parameter(
            "bodies", ParameterKind.INTEGER, 131072, "how many bodies there are, a multiple of 256", minimum=_BLOCK
        ),
        *COMMON,
    ),
    figures=(
        Figure(
            name="nbody",
            series="forces",
            unit="flop/s",
            better=Better.HIGHER,
            value=lambda sample: sample.work["flops"] / sample.elapsed_s,
            work="20 flop for each pair of bodies and each direction in fp32, 30 in fp64",
            limit=flop_limit,
        ),
        Figure(
            name="interactions",
            series="forces",
            unit="op/s",
            better=Better.HIGHER,
            value=lambda sample: sample.work["ops"] / sample.elapsed_s,
            work="forces of one body on another",
        ),
    ),
    checks=(Check("error", "error of an acceleration, relative to the sum of the magnitudes in it", _error),),
    placement=cpu_of_each_device,
    prepare=_prepare,
    estimate_s=_estimate_s,
    verified=False,
)
