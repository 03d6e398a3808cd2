"""gpu.cg: conjugate gradients on a 27-point stencil with a multigrid preconditioner, as in HPCG, on devices.

The problem, its operations and its checks are those of `cpu.cg`; in TP each device has a part of the grid of the
given size, and they exchange the points around it through host memory. Rows are ordered by colours, so that a sweep is
eight kernels on each grid; the reference that says how far the residual must fall orders them by levels, on the same
devices. The limit is the rate of a triad on all devices at once, measured in the same run, over the bytes that an
iteration must move. The parts of the time are of one more set, which waits after each kernel.
"""

from __future__ import annotations

from msgspec.structs import replace

from seatrial.benchmarks import multigrid
from seatrial.benchmarks.figures import between, exactly
from seatrial.benchmarks.gpu import device
from seatrial.model.benchmark.benchmark import Check
from seatrial.model.benchmark.parameter import Params, whole
from seatrial.model.machine.machine import Machine

_LARGE, _SMALL = 192, 32
_SLOW_DEVICE_FLOPS = 20e9
_SLOW_HOST_ROWS = 1e6
"""Rows in a second that the reference on the host takes for a V-cycle."""
_PHASES = {
    "spmv": "products of the matrix with a vector",
    "symgs": "symmetric Gauss-Seidel",
    "transfer": "between the grids: residuals for the next coarse one, and corrections from it",
    "vectors": "updates of vectors",
    "reduce": "sums over items and devices",
    "halo": "exchange of points with other devices",
}


def _prepare(machine: Machine, params: Params) -> Params:
    params = device.one_or_more(machine, params)
    ordering = "colours" if params["ordering"] == "auto" else params["ordering"]
    params = {**params, "ordering": ordering}
    if params["nx"] != "auto":
        return multigrid.settled(params, _LARGE)
    multigrid.settled(params, _LARGE)  # refuses what no length of x makes right
    return params


def _on_devices(params: Params, are_processors: bool) -> Params:
    return multigrid.settled(params, _SMALL if are_processors else _LARGE)


def _words(params: Params) -> tuple[str, ...]:
    return multigrid.words(multigrid.settled(params, _LARGE))


def _estimate_s(params: Params) -> float:
    rows = multigrid.rows_of(multigrid.settled(params, _LARGE))
    set_s = multigrid.ITERATIONS * multigrid.FLOP_PER_ROW * rows / _SLOW_DEVICE_FLOPS
    return 10.0 + 10 * set_s + 4 * rows / _SLOW_HOST_ROWS


_MADE = device.benchmark(
    __file__,
    name="gpu.cg",
    question="How fast do devices solve a sparse linear system by conjugate gradients with multigrid, as in HPCG?",
    parameters=(device.mode_among("S", "TP"), *multigrid.grid("device"), multigrid.ORDERING),
    figures=multigrid.figures(_PHASES),
    checks=(
        Check("devices", "devices that share the grid", exactly(lambda params: whole(params["devices"]))),
        Check("sum_error", "error of a scalar product, compared with one on the host", between(0, 1e-12)),
        *multigrid.CHECKS,
    ),
    words=(_words,),
    prepare=_prepare,
    estimate_s=_estimate_s,
)

BENCHMARK = replace(_MADE, on_devices=_on_devices)
"""`auto` is a length of all three directions."""
