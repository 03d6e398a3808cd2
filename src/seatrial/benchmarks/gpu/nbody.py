"""gpu.nbody: gravity between all pairs of n bodies, on one device or distributed over several.

An interaction counts as 20 flop in single precision and 30 in double, as in published figures (the nbody sample of
CUDA); it takes fewer instructions.
"""

from __future__ import annotations

from seatrial.benchmarks.figures import rate
from seatrial.benchmarks.gpu import device
from seatrial.benchmarks.gpu.limits import flop_limit
from seatrial.model.benchmark.benchmark import Skip
from seatrial.model.benchmark.parameter import Params, whole
from seatrial.model.machine.machine import Machine

_BLOCK = 256
"""Bodies that a group computes; their number is a multiple of it."""
_BODIES = (131072, 8192)
"""On a GPU, and on a processor."""
_TOLERANCE = {"fp32": 1e-4, "fp64": 1e-11}
"""Relative to the sum of magnitudes: a million terms one after another, each rounded."""


def _bodies(params: Params) -> int:
    return _BODIES[0] if params["bodies"] == device.AUTO else whole(params["bodies"])


def _prepare(machine: Machine, params: Params) -> Params:
    if _bodies(params) % _BLOCK:
        raise Skip(f"{params['bodies']} bodies: not a multiple of {_BLOCK}")
    return device.one_or_more(machine, params)


BENCHMARK = device.benchmark(
    __file__,
    name="gpu.nbody",
    question="How fast do devices compute the forces between all pairs of n bodies?",
    parameters=(
        device.mode_among("S", "TP"),
        device.PRECISION,
        device.size_of("bodies", *_BODIES, "number of bodies, a multiple of 256", minimum=_BLOCK),
    ),
    figures=(
        rate(
            "nbody",
            "flop/s",
            "20 flop in fp32, 30 in fp64, per pair of bodies and direction",
            series="forces",
            limit=flop_limit,
        ),
        rate("interactions", "op/s", "forces of one body on another, each direction counted", series="forces"),
    ),
    error="error of an acceleration, relative to the sum of the magnitudes of its terms",
    tolerances=_TOLERANCE,
    prepare=_prepare,
    sizes={"bodies": _BODIES},
    estimate_s=lambda params: 3.0 + 2e-12 * _bodies(params) ** 2,
)
