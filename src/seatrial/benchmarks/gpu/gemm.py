"""gpu.gemm: products of square matrices, with B or its transpose in memory, as in SHOC's GEMM.

`portable`: D = alpha A B + beta C with seatrial's own tiled kernel, which shows the code quality of the device's
compiler for a plain kernel with register tiles (V. Volkov and J. Demmel, "Benchmarking GPUs to tune dense linear
algebra", SC 2008). `vendor`: D = alpha A B with the tuned library, the ceiling: cuBLAS with CUDA, CLBlast (C. Nugteren,
IWOCL 2018) with OpenCL. Adding beta C would overwrite C and make runs unequal. tf32, fp16 and bf16 are the types of A
and B, rounded to nearest on the host; products are accumulated in fp32, and D is fp32.
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.benchmarks.gpu import device
from seatrial.benchmarks.gpu.limits import matrix_limit
from seatrial.model.benchmark.benchmark import Skip
from seatrial.model.benchmark.parameter import Parameter, Params
from seatrial.model.machine.limit import Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

_PRECISION = Parameter.choice(
    "precision",
    "fp32",
    "floating-point precision; tf32, fp16 and bf16: of A and B, with library=vendor and CUDA",
    ("fp32", "fp64", "tf32", "fp16", "bf16"),
    option="--precision",
)
_LIBRARY = Parameter.choice(
    "library",
    "portable",
    "portable: seatrial's own tiled kernel; vendor: cuBLAS with CUDA, CLBlast with OpenCL",
    ("portable", "vendor"),
    option="--library",
)
_PORTABLE = ("fp32", "fp64")
_TOLERANCE = {"fp32": 1e-5, "fp64": 1e-14, "tf32": 1e-5, "fp16": 1e-5, "bf16": 1e-5}
"""Of each element, relative to |alpha| sum |a||b| + |beta||c| of the rounded numbers: above what rounding does to sums
of 8192 products of random signs (tensor cores cut instead of rounding: 1024 steps of 8 products lose up to 2e-6), below
what one product more or less does (1e-4 of the sum in the largest class)."""
_ORDERS = {"1": 256, "2": 1024, "3": 2048, "4": 4096, "large": 8192}


def _order(params: Params) -> int:
    return device.chosen_size(_ORDERS, params)


def _prepare(machine: Machine, params: Params) -> Params:
    if params["library"] == "portable" and params["precision"] not in _PORTABLE:
        raise Skip(f"{params['precision']} needs tensor cores, used by library=vendor; portable has fp32 and fp64")
    return device.one_or_more(machine, params)


def _limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    """That of a library. A plain kernel has no limit: it is not expected to come close to the peak."""
    if params["library"] == "portable":
        return Limit.unknown("flop/s", "a plain kernel is not expected to be close to the peak; library=vendor is")
    return matrix_limit(machine, params, samples)


BENCHMARK = device.benchmark(
    __file__,
    name="gpu.gemm",
    question="How fast does a device multiply matrices, with a plain tiled kernel or its tuned library?",
    parameters=(
        device.mode_among("S", "EP"),
        _PRECISION,
        _LIBRARY,
        device.size_class(_ORDERS, "order of the matrices; 1 to 4: 256, 1024, 2048, 4096; large: 8192", "--order"),
    ),
    figures=device.rates("gemm", "flop/s", "2 n^3 flop per product", "ops", series="product", limit=_limit),
    error="error of the worst element, relative to the sum of magnitudes",
    tolerances=_TOLERANCE,
    estimate_s=lambda params: 5.0 + _order(params) ** 2 * 3e-7 + 80 * _order(params) ** 3 * 1e-12,
    prepare=_prepare,
    trial=tuple({"library": "vendor", "precision": name} for name in ("fp64", "fp32", "tf32", "bf16")),
)
