"""gpu.stencil: steps of a 9-point stencil on a square grid, as SHOC's Stencil2D. Several devices share the grid by rows
and hand each other the rows at their edges after each step, by the host's memory.

The weights are 1/4, 1/8 (four near neighbours) and 1/16 (four diagonal ones), 1 together: values stay in their range
however long it runs.
"""

from __future__ import annotations

from pathlib import Path

from seatrial.benchmarks.gpu.device_parameters import COMMON, PRECISION, device_arguments, mode_among, one_or_more
from seatrial.benchmarks.gpu.device_parameters import placement as cpu_of_each_device
from seatrial.benchmarks.gpu.memory_limit import memory_limit
from seatrial.model.benchmark import Benchmark, Better, Check, Figure, Native
from seatrial.model.machine import Machine
from seatrial.model.parameter import Parameter, ParameterKind, Params, whole
from seatrial.model.units import Unit

_TOLERANCE = {"fp32": 1e-6, "fp64": 2e-15}
"""Of each value after five steps from random ones in [-1, 1]: some ten times the rounding of five sums of nine, below
what a weight or a neighbour that is wrong in one of them does."""
_SIDES = {"1": 512, "2": 1024, "3": 2048, "4": 4096, "large": 16384}


def _side(params: Params) -> int:
    return _SIDES[str(params["size"])]


def _element(params: Params) -> int:
    return 8 if params["precision"] == "fp64" else 4


def _touched_B(params: Params) -> float:
    devices = 1 if params["devices"] == "auto" else whole(params["devices"])
    return 2 * _element(params) * _side(params) ** 2 / devices


def _error(machine: Machine, params: Params) -> tuple[float, float]:
    return (0.0, _TOLERANCE[str(params["precision"])])


def _arguments(params: Params) -> list[str]:
    return [
        *device_arguments(params),
        *("--precision", str(params["precision"]), "--side", str(_side(params))),
        *("--iterations", "0" if params["iterations"] == "auto" else str(params["iterations"])),
        *("--together", "1" if params["mode"] == "TP" else "0"),
    ]


def _estimate_s(params: Params) -> float:
    iterations = 1000 if params["iterations"] == "auto" else whole(params["iterations"])
    return 3.0 + _side(params) ** 2 * (2e-7 + 2.5e-10 * iterations)


def _figure(name: str, unit: Unit, what: str, work: str) -> Figure:
    return Figure(
        name=name,
        series="steps",
        unit=unit,
        better=Better.HIGHER,
        value=lambda sample: sample.work[what] / sample.elapsed_s,
        work=work,
        limit=memory_limit(_touched_B) if what == "bytes" else None,
    )


BENCHMARK = Benchmark(
    name="gpu.stencil",
    question="How fast does a device apply a 9-point stencil to a grid again and again?",
    program=Native(Path(__file__).with_suffix(".cpp"), _arguments, library="gpu"),
    parameters=(
        mode_among("S", "TP"),
        PRECISION,
        Parameter(
            "size",
            ParameterKind.CHOICE,
            "large",
            "1 to 4: SHOC's 512, 1024, 2048 and 4096 points across; large: 16384",
            words=tuple(_SIDES),
        ),
        Parameter(
            "iterations",
            ParameterKind.INTEGER,
            "auto",
            "steps of one run; auto: SHOC's 1000, 10 where the device is a processor",
            words=("auto",),
            minimum=1,
        ),
        *COMMON,
    ),
    figures=(
        _figure("points", "op/s", "points", "points of all steps"),
        _figure("rate", "flop/s", "ops", "11 per point, as SHOC counts: 3 products and 8 sums"),
        _figure("bandwidth", "B/s", "bytes", "each point is read and written once in each step"),
    ),
    checks=(Check("error", "error of the worst point, where values are of magnitude 1", _error),),
    placement=cpu_of_each_device,
    prepare=one_or_more,
    estimate_s=_estimate_s,
    verified=False,
)
