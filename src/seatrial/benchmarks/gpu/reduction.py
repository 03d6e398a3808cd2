"""gpu.reduction: the sum of n numbers, counted as SHOC's Reduction does: each is read once."""

from __future__ import annotations

from pathlib import Path

from seatrial.benchmarks.gpu.device_parameters import COMMON, PRECISION, device_arguments, mode_among, one_or_more
from seatrial.benchmarks.gpu.device_parameters import placement as cpu_of_each_device
from seatrial.benchmarks.gpu.memory_limit import memory_limit
from seatrial.model.benchmark import Benchmark, Better, Check, Figure, Native
from seatrial.model.machine import Machine
from seatrial.model.parameter import Parameter, ParameterKind, Params

_TOLERANCE = {"fp32": 1e-6, "fp64": 1e-12}
"""Of the sum, relative to the sum of magnitudes: far above what rounding does to sums of sums (N. J. Higham, "The
accuracy of floating point summation", 1993), far below what one number more or less does to the smallest class."""
_MiB = 1 << 20
_SIZES = {"1": _MiB, "2": 8 * _MiB, "3": 32 * _MiB, "4": 64 * _MiB, "large": 1 << 30}
"""SHOC's classes, and one beyond the caches of today."""


def _bytes(params: Params) -> int:
    return _SIZES[str(params["size"])]


def _error(machine: Machine, params: Params) -> tuple[float, float]:
    return (0.0, _TOLERANCE[str(params["precision"])])


def _arguments(params: Params) -> list[str]:
    element = 8 if params["precision"] == "fp64" else 4
    return [
        *device_arguments(params),
        *("--precision", str(params["precision"]), "--count", str(_bytes(params) // element)),
        *("--together", "1" if params["mode"] == "TP" else "0"),
    ]


def _estimate_s(params: Params) -> float:
    return 2.0 + _bytes(params) * 2e-8


def _rate(name: str, series: str, work: str) -> Figure:
    return Figure(
        name=name,
        series=series,
        unit="B/s",
        better=Better.HIGHER,
        value=lambda sample: sample.work["bytes"] / sample.elapsed_s,
        work=work,
        limit=memory_limit(_bytes),
        is_there=lambda params: (name == "bandwidth") or (params["mode"] == "EP" and params["devices"] != 1),
    )


BENCHMARK = Benchmark(
    name="gpu.reduction",
    question="How fast does a device add up the numbers in its memory?",
    program=Native(Path(__file__).with_suffix(".cpp"), _arguments, library="gpu"),
    parameters=(
        mode_among("S", "EP", "TP"),
        PRECISION,
        Parameter(
            "size",
            ParameterKind.CHOICE,
            "large",
            "1 to 4: SHOC's 1, 8, 32 and 64 MiB; large: 1 GiB",
            words=tuple(_SIZES),
        ),
        *COMMON,
    ),
    figures=(
        _rate("bandwidth", "sum", "each number is read once"),
        _rate("bandwidth_all", "sum_all", "the same of all devices together, by the time of the slowest"),
    ),
    checks=(Check("error", "error of the sum, relative to the sum of magnitudes", _error),),
    placement=cpu_of_each_device,
    prepare=one_or_more,
    estimate_s=_estimate_s,
    verified=False,
)
"""`size` is that of one device; for TP that of all together."""
