"""gpu.gemm: D = alpha A B + beta C of square matrices by seatrial's own tiled kernel, as SHOC's GEMM does by a library,
with B and with its transpose in memory: what a device's compiler makes of a plain kernel with register tiles (V. Volkov
and J. Demmel, "Benchmarking GPUs to tune dense linear algebra", SC 2008). The ceiling is the vendor's library."""

from __future__ import annotations

from pathlib import Path

from seatrial.benchmarks.gpu.device_parameters import COMMON, PRECISION, device_arguments, mode_among, one_or_more
from seatrial.benchmarks.gpu.device_parameters import placement as cpu_of_each_device
from seatrial.model.benchmark import Benchmark, Better, Check, Figure, Native
from seatrial.model.machine import Machine
from seatrial.model.parameter import Parameter, ParameterKind, Params

_TOLERANCE = {"fp32": 1e-5, "fp64": 1e-14}
"""Of each element, relative to |alpha| sum |a||b| + |beta||c|: above what rounding does to sums of 8192 products of
random signs, below what one product more or less does (1e-4 of the sum in the largest class)."""
_ORDERS = {"1": 256, "2": 1024, "3": 2048, "4": 4096, "large": 8192}


def _order(params: Params) -> int:
    return _ORDERS[str(params["size"])]


def _error(machine: Machine, params: Params) -> tuple[float, float]:
    return (0.0, _TOLERANCE[str(params["precision"])])


def _arguments(params: Params) -> list[str]:
    return [
        *device_arguments(params),
        *("--precision", str(params["precision"]), "--order", str(_order(params))),
    ]


def _estimate_s(params: Params) -> float:
    return 5.0 + _order(params) ** 2 * 3e-7 + 80 * _order(params) ** 3 * 1e-12


def _rate(name: str, series: str, work: str) -> Figure:
    return Figure(
        name=name,
        series=series,
        unit="flop/s",
        better=Better.HIGHER,
        value=lambda sample: sample.work["ops"] / sample.elapsed_s,
        work=work,
        is_there=lambda params: series == "product" or (params["mode"] == "EP" and params["devices"] != 1),
    )


BENCHMARK = Benchmark(
    name="gpu.gemm",
    question="How fast does a device multiply matrices with a plain tiled kernel?",
    program=Native(Path(__file__).with_suffix(".cpp"), _arguments, library="gpu"),
    parameters=(
        mode_among("S", "EP"),
        PRECISION,
        Parameter(
            "size",
            ParameterKind.CHOICE,
            "large",
            "the order of the matrices: 256, 1024, 2048, 4096; large: 8192",
            words=tuple(_ORDERS),
        ),
        *COMMON,
    ),
    figures=(
        _rate("gemm", "product", "2 n^3"),
        _rate("gemm_all", "product_all", "2 n^3 on each of all devices, by the time of the slowest"),
    ),
    checks=(Check("error", "error of the worst element, relative to the sum of magnitudes", _error),),
    placement=cpu_of_each_device,
    prepare=one_or_more,
    estimate_s=_estimate_s,
    verified=False,
)
