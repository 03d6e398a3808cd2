"""gpu.montecarlo: European calls priced by simulation, on one device or distributed over several.

Paths use a counter-based generator (Philox), so that results do not depend on the number of devices. The exact prices
are known: the squared errors in units of the standard error, summed over all options, follow a chi-square
distribution.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from seatrial.benchmarks.figures import rate
from seatrial.benchmarks.gpu import device
from seatrial.model.benchmark.benchmark import Check, Skip
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.machine.machine import Machine

_TOLERANCE = {"fp32": 1e-4, "fp64": 1e-12}
"""Of an option's payoffs drawn again on the host, relative to their sum, which has no negative terms."""
_UNLIKELY = 1e-3
_PATHS = (262144, 16384)
"""On a GPU, and on a processor."""
_LARGEST = 1 << 33
"""Paths of all options, against typing errors."""


def _paths(params: Params) -> int:
    return _PATHS[0] if params["paths"] == device.AUTO else whole(params["paths"])


def _prepare(machine: Machine, params: Params) -> Params:
    if _paths(params) % 4:
        raise Skip(f"{params['paths']} paths: not a multiple of 4")
    if _paths(params) * whole(params["options"]) > _LARGEST:
        raise Skip(f"more than {_LARGEST} paths in total")
    return device.one_or_more(machine, params)


def _chi_square(machine: Machine, params: Params) -> tuple[float, float]:
    """Where the chi-square distribution of so many options has its middle 99.8 %: its cube root is nearly normal (E. B.
    Wilson and M. M. Hilferty, "The distribution of chi-square", 1931; from 32 on these quantiles are off by less than
    0.3 %)."""
    options = whole(params["options"])
    z = NormalDist().inv_cdf(1 - _UNLIKELY)
    variance = 2 / (9 * options)
    return (
        options * (1 - variance - z * math.sqrt(variance)) ** 3,
        options * (1 - variance + z * math.sqrt(variance)) ** 3,
    )


BENCHMARK = device.benchmark(
    __file__,
    name="gpu.montecarlo",
    question="How many options per second do devices price by simulation?",
    parameters=(
        device.mode_among("S", "TP"),
        device.PRECISION,
        Parameter.choice(
            "drive",
            "threaded",
            "how several devices are driven; threaded: one thread each; streamed: one thread for all",
            ("threaded", "streamed"),
            option="--drive",
        ),
        Parameter.integer("options", 1024, "number of options to price", minimum=32, option="--options"),
        device.size_of("paths", *_PATHS, "paths per option, a multiple of 4", minimum=4096),
    ),
    figures=(
        rate("options", "op/s", "options, with `paths` paths each", "options", series="pricing"),
        rate("paths", "op/s", "paths of all options", series="pricing"),
    ),
    error="error of the sum of an option's payoffs, relative to it",
    tolerances=_TOLERANCE,
    checks=(Check("chi_square", "sum of the squared errors of all prices, in standard errors", _chi_square),),
    prepare=_prepare,
    estimate_s=lambda params: 3.0 + 1e-9 * _paths(params) * whole(params["options"]),
    sizes={"paths": _PATHS},
)
