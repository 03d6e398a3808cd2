"""gpu.spmv: a random sparse matrix times a vector, as in SHOC's Spmv, in three matrix formats: CSR with one item or
with 32 items per row (N. Bell and M. Garland, "Implementing sparse matrix-vector multiplication on throughput-oriented
processors", SC 2009), and ELLPACK-R (F. Vazquez et al., "Improving the performance of the sparse matrix vector product
with GPUs", 2010).
"""

from __future__ import annotations

from seatrial.benchmarks.gpu import device
from seatrial.benchmarks.gpu.limits import memory_limit
from seatrial.model.benchmark.parameter import Params

_TOLERANCE = {"fp32": 1e-5, "fp64": 1e-13}
"""Of each element of y, relative to the sum of magnitudes |a||x| of its row: above what rounding does to sums of some
hundred terms, below what one of them more or less does (a thousandth of them in the largest class)."""
_ROWS = {"1": 1024, "2": 8192, "3": 12288, "4": 16384, "large": 65536}
_FILL = 0.01


def _bytes(params: Params) -> float:
    return _FILL * device.chosen_size(_ROWS, params) ** 2 * (device.element_bytes(params) + 4)


_OPS = "2 flop per nonzero"
_BYTES = "value and column of each nonzero, row pointers or lengths, x and y once"

BENCHMARK = device.benchmark(
    __file__,
    name="gpu.spmv",
    question="How fast does a device multiply a sparse matrix by a vector?",
    parameters=(
        device.mode_among("S", "EP"),
        device.PRECISION,
        device.size_class(
            _ROWS, "1 to 4: SHOC's 1024, 8192, 12288 and 16384 rows; large: 65536; 1 % nonzeros", "--rows"
        ),
    ),
    figures=(
        *device.rates("rate", "flop/s", _OPS, "ops", series="product", one_limit_over=("format",)),
        *device.rates(
            "bandwidth", "B/s", _BYTES, series="product", limit=memory_limit(_bytes), one_limit_over=("format",)
        ),
    ),
    error="error of the worst element, relative to the sum of magnitudes of its row",
    tolerances=_TOLERANCE,
    words=(("--fill", str(_FILL)),),
    estimate_s=lambda params: 4.0 + _bytes(params) * 2e-8,
)
