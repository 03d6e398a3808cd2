"""gpu.stencil: steps of a 9-point stencil on a square grid, as SHOC's Stencil2D. Several devices share the grid by rows
and exchange the rows at their edges after each step, through host memory.

The weights are 1/4, 1/8 (four near neighbours) and 1/16 (four diagonal ones), 1 together: values stay in their range
however long it runs.
"""

from __future__ import annotations

from seatrial.benchmarks.figures import rate
from seatrial.benchmarks.gpu import device
from seatrial.benchmarks.gpu.limits import memory_limit
from seatrial.model.benchmark.parameter import Parameter, Params, whole

_TOLERANCE = {"fp32": 1e-6, "fp64": 2e-15}
"""Of each value after five steps from random ones in [-1, 1]: some ten times the rounding of five sums of nine, below
what a weight or a neighbour that is wrong in one of them does."""
_SIDES = {"1": 512, "2": 1024, "3": 2048, "4": 4096, "large": 16384}


def _side(params: Params) -> int:
    return device.chosen_size(_SIDES, params)


def _estimate_s(params: Params) -> float:
    iterations = 1000 if params["iterations"] == "auto" else whole(params["iterations"])
    return 3.0 + _side(params) ** 2 * (2e-7 + 2.5e-10 * iterations)


BENCHMARK = device.benchmark(
    __file__,
    name="gpu.stencil",
    question="How fast does a device apply a 9-point stencil to a grid?",
    parameters=(
        device.mode_among("S", "TP", together="--together"),
        device.PRECISION,
        device.size_class(_SIDES, "1 to 4: SHOC's 512, 1024, 2048 and 4096 points across; large: 16384", "--side"),
        Parameter.integer(
            "iterations",
            "auto",
            "steps per run; auto: SHOC's 1000, or 10 if the device is a CPU",
            minimum=1,
            option="--iterations",
            spelled={"auto": "0"},
        ),
    ),
    figures=(
        rate("points", "op/s", "points of all steps", "points", series="steps"),
        rate(
            "rate",
            "flop/s",
            "11 flop per point, as SHOC counts: 3 multiplications and 8 additions",
            "ops",
            series="steps",
        ),
        rate(
            "bandwidth",
            "B/s",
            "each point is read and written once per step",
            series="steps",
            limit=memory_limit(lambda params: 2 * device.element_bytes(params) * _side(params) ** 2),
        ),
    ),
    error="error of the worst point, for values of magnitude 1",
    tolerances=_TOLERANCE,
    estimate_s=_estimate_s,
)
