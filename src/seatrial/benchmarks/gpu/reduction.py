"""gpu.reduction: the sum of n numbers, counted as SHOC's Reduction does: each is read once."""

from __future__ import annotations

from seatrial.benchmarks.gpu.device_benchmark import (
    chosen_size,
    device_benchmark,
    element_bytes,
    rates,
    size_class,
    up_to,
)
from seatrial.benchmarks.gpu.device_parameters import PRECISION, device_arguments, mode_among
from seatrial.benchmarks.gpu.memory_limit import memory_limit
from seatrial.model.benchmark import Check
from seatrial.model.parameter import Params
from seatrial.model.role import Role

_TOLERANCE = {"fp32": 1e-6, "fp64": 1e-12}
"""Of the sum, relative to the sum of magnitudes: far above what rounding does to sums of sums (N. J. Higham, "The
accuracy of floating point summation", 1993), far below what one number more or less does to the smallest class."""
_MiB = 1 << 20
_SIZES = {"1": _MiB, "2": 8 * _MiB, "3": 32 * _MiB, "4": 64 * _MiB, "large": 1 << 30}
"""SHOC's classes, and one beyond the caches of today."""


def _bytes(params: Params) -> int:
    return chosen_size(_SIZES, params)


def _arguments(params: Params) -> list[str]:
    return [
        *device_arguments(params),
        *("--precision", str(params["precision"]), "--count", str(_bytes(params) // element_bytes(params))),
        *("--together", "1" if params["mode"] == "TP" else "0"),
    ]


def _estimate_s(params: Params) -> float:
    return 2.0 + _bytes(params) * 2e-8


BENCHMARK = device_benchmark(
    __file__,
    name="gpu.reduction",
    question="How fast does a device sum an array in its memory?",
    arguments=_arguments,
    parameters=(
        mode_among("S", "EP", "TP"),
        PRECISION,
        size_class(_SIZES, "1 to 4: SHOC's 1, 8, 32 and 64 MiB; large: 1 GiB"),
    ),
    figures=rates(
        "bandwidth",
        "B/s",
        "bytes",
        "each number is read once",
        series="sum",
        limit=memory_limit(_bytes),
        role=Role.DEVICE_MEMORY_BANDWIDTH,
    ),
    checks=(Check("error", "error of the sum, relative to the sum of magnitudes", up_to(_TOLERANCE)),),
    estimate_s=_estimate_s,
)
"""`size` is that of one device; for TP that of all together."""
