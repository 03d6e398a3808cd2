"""gpu.md: forces between atoms after J. E. Lennard-Jones (1924), as SHOC's MD: each atom has a list of its 128 nearest
neighbours, and those nearer than the cutoff of 4 act on it.

Atoms stand at random near the points of a lattice of about the density of SHOC's smallest class, in random order, in a
box without periods. (SHOC's stand anywhere: two that are very near have forces beyond fp32.)
"""

from __future__ import annotations

from pathlib import Path

from seatrial.benchmarks.gpu.device_parameters import COMMON, PRECISION, device_arguments, mode_among, one_or_more
from seatrial.benchmarks.gpu.device_parameters import placement as cpu_of_each_device
from seatrial.model.benchmark import Benchmark, Better, Check, Figure, Native
from seatrial.model.machine import Machine
from seatrial.model.parameter import Parameter, ParameterKind, Params

_TOLERANCE = {"fp32": 2e-5, "fp64": 4e-14}
"""Of the worst atom's force, relative to the sum of magnitudes of its pairs' forces: above rounding, below what a near
neighbour more or less does. Lists are in no order, so a list cut short lacks near neighbours of some atom."""
_ATOMS = {"1": 12288, "2": 24576, "3": 36864, "4": 73728, "large": 1_000_000}
_NEIGHBOURS = 128


def _atoms(params: Params) -> int:
    return _ATOMS[str(params["size"])]


def _error(machine: Machine, params: Params) -> tuple[float, float]:
    return (0.0, _TOLERANCE[str(params["precision"])])


def _arguments(params: Params) -> list[str]:
    return [
        *device_arguments(params),
        *("--precision", str(params["precision"])),
        *("--atoms", str(_atoms(params)), "--neighbours", str(_NEIGHBOURS)),
    ]


def _estimate_s(params: Params) -> float:
    return 2.0 + _atoms(params) * 2e-5


def _rate(name: str, series: str, work: str) -> Figure:
    return Figure(
        name=name,
        series=series,
        unit="flop/s",
        better=Better.HIGHER,
        value=lambda sample: sample.work["ops"] / sample.elapsed_s,
        work=work,
        is_there=lambda params: series == "forces" or (params["mode"] == "EP" and params["devices"] != 1),
    )


_OPS = "8 for each neighbour's distance, 13 for each force of one nearer than the cutoff"

BENCHMARK = Benchmark(
    name="gpu.md",
    question="How fast does a device compute the forces between atoms?",
    program=Native(Path(__file__).with_suffix(".cpp"), _arguments, library="gpu"),
    parameters=(
        mode_among("S", "EP"),
        PRECISION,
        Parameter(
            "size",
            ParameterKind.CHOICE,
            "large",
            "1 to 4: SHOC's 12288, 24576, 36864 and 73728 atoms; large: 1000000",
            words=tuple(_ATOMS),
        ),
        *COMMON,
    ),
    figures=(
        _rate("rate", "forces", _OPS),
        _rate("rate_all", "forces_all", f"{_OPS}, of all devices, by the time of the slowest"),
    ),
    checks=(Check("error", "error of the worst atom's force, relative to its pairs' forces", _error),),
    placement=cpu_of_each_device,
    prepare=one_or_more,
    estimate_s=_estimate_s,
    verified=False,
)
