"""gpu.spmv: a sparse matrix with random places times a vector, as SHOC's Spmv, in three layouts of the matrix: CSR with
an item or with 32 items for each row (N. Bell and M. Garland, "Implementing sparse matrix-vector multiplication on
throughput-oriented processors", SC 2009), and ELLPACK-R (F. Vazquez et al., "Improving the performance of the sparse
matrix vector product with GPUs", 2010)."""

from __future__ import annotations

from pathlib import Path

from seatrial.benchmarks.gpu.device_parameters import COMMON, PRECISION, device_arguments, mode_among, one_or_more
from seatrial.benchmarks.gpu.device_parameters import placement as cpu_of_each_device
from seatrial.benchmarks.gpu.memory_limit import memory_limit
from seatrial.model.benchmark import Benchmark, Better, Check, Figure, Native
from seatrial.model.machine import Machine
from seatrial.model.parameter import Parameter, ParameterKind, Params
from seatrial.model.units import Unit

_TOLERANCE = {"fp32": 1e-5, "fp64": 1e-13}
"""Of each element of y, relative to the sum of magnitudes |a||x| of its row: above what rounding does to sums of some
hundred terms, below what one of them more or less does (a thousandth of them in the largest class)."""
_ROWS = {"1": 1024, "2": 8192, "3": 12288, "4": 16384, "large": 65536}
_FILL = 0.01


def _rows(params: Params) -> int:
    return _ROWS[str(params["size"])]


def _bytes(params: Params) -> float:
    element = 8 if params["precision"] == "fp64" else 4
    return _FILL * _rows(params) ** 2 * (element + 4)


def _error(machine: Machine, params: Params) -> tuple[float, float]:
    return (0.0, _TOLERANCE[str(params["precision"])])


def _arguments(params: Params) -> list[str]:
    return [
        *device_arguments(params),
        *("--precision", str(params["precision"])),
        *("--rows", str(_rows(params)), "--fill", str(_FILL)),
    ]


def _estimate_s(params: Params) -> float:
    return 4.0 + _bytes(params) * 2e-8


def _figure(name: str, unit: Unit, series: str, what: str, work: str) -> Figure:
    return Figure(
        name=name,
        series=series,
        unit=unit,
        better=Better.HIGHER,
        value=lambda sample: sample.work[what] / sample.elapsed_s,
        work=work,
        limit=memory_limit(_bytes) if what == "bytes" else None,
        one_limit_over=("format",),
        is_there=lambda params: series == "product" or (params["mode"] == "EP" and params["devices"] != 1),
    )


_OPS = "2 per non-zero"
_BYTES = "value and column of each non-zero, the row pointers or lengths, x and y once"

BENCHMARK = Benchmark(
    name="gpu.spmv",
    question="How fast does a device multiply a sparse matrix with a vector?",
    program=Native(Path(__file__).with_suffix(".cpp"), _arguments, library="gpu"),
    parameters=(
        mode_among("S", "EP"),
        PRECISION,
        Parameter(
            "size",
            ParameterKind.CHOICE,
            "large",
            "1 to 4: SHOC's 1024, 8192, 12288 and 16384 rows; large: 65536; of 1 % fill all",
            words=tuple(_ROWS),
        ),
        *COMMON,
    ),
    figures=(
        _figure("rate", "flop/s", "product", "ops", _OPS),
        _figure("bandwidth", "B/s", "product", "bytes", _BYTES),
        _figure("rate_all", "flop/s", "product_all", "ops", f"{_OPS}, of all devices, by the time of the slowest"),
        _figure(
            "bandwidth_all", "B/s", "product_all", "bytes", f"{_BYTES}, of all devices, by the time of the slowest"
        ),
    ),
    checks=(Check("error", "error of the worst element, relative to the sum of magnitudes of its row", _error),),
    placement=cpu_of_each_device,
    prepare=one_or_more,
    estimate_s=_estimate_s,
    verified=False,
)
