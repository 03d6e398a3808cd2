"""gpu.gemm: D = alpha A B + beta C of square matrices by seatrial's own tiled kernel, as SHOC's GEMM does by a library,
with B and with its transpose in memory: what a device's compiler makes of a plain kernel with register tiles (V. Volkov
and J. Demmel, "Benchmarking GPUs to tune dense linear algebra", SC 2008). The ceiling is the vendor's library."""

from __future__ import annotations

from seatrial.benchmarks.gpu.device_benchmark import chosen_size, device_benchmark, rates, size_class, up_to
from seatrial.benchmarks.gpu.device_parameters import PRECISION, device_arguments, mode_among
from seatrial.model.benchmark import Check
from seatrial.model.parameter import Params

_TOLERANCE = {"fp32": 1e-5, "fp64": 1e-14}
"""Of each element, relative to |alpha| sum |a||b| + |beta||c|: above what rounding does to sums of 8192 products of
random signs, below what one product more or less does (1e-4 of the sum in the largest class)."""
_ORDERS = {"1": 256, "2": 1024, "3": 2048, "4": 4096, "large": 8192}


def _order(params: Params) -> int:
    return chosen_size(_ORDERS, params)


def _arguments(params: Params) -> list[str]:
    return [
        *device_arguments(params),
        *("--precision", str(params["precision"]), "--order", str(_order(params))),
    ]


def _estimate_s(params: Params) -> float:
    return 5.0 + _order(params) ** 2 * 3e-7 + 80 * _order(params) ** 3 * 1e-12


BENCHMARK = device_benchmark(
    __file__,
    name="gpu.gemm",
    question="How fast does a device multiply matrices with a plain tiled kernel?",
    arguments=_arguments,
    parameters=(
        mode_among("S", "EP"),
        PRECISION,
        size_class(_ORDERS, "the order of the matrices: 256, 1024, 2048, 4096; large: 8192"),
    ),
    figures=rates("gemm", "flop/s", "ops", "2 n^3", series="product"),
    checks=(Check("error", "error of the worst element, relative to the sum of magnitudes", up_to(_TOLERANCE)),),
    estimate_s=_estimate_s,
)
