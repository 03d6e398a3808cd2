"""gpu.bfs: breadth-first search in a random graph of mean degree 2, the sizes of SHOC's BFS."""

from __future__ import annotations

from pathlib import Path

from seatrial.benchmarks.gpu.device_parameters import COMMON, device_arguments, mode_among, one_or_more
from seatrial.benchmarks.gpu.device_parameters import placement as cpu_of_each_device
from seatrial.model.benchmark import Benchmark, Better, Check, Figure, Native
from seatrial.model.machine import Machine
from seatrial.model.parameter import Parameter, ParameterKind, Params
from seatrial.model.units import Unit

_SIZES = {"1": 1_000, "2": 10_000, "3": 100_000, "4": 1_000_000, "large": 16_000_000}
"""Vertices: SHOC's classes, and one whose graph (192 MB, and as much to work with) is beyond the caches of today."""


def _vertices(params: Params) -> int:
    return _SIZES[str(params["size"])]


def _none(machine: Machine, params: Params) -> tuple[float, float]:
    return (0.0, 0.0)


def _arguments(params: Params) -> list[str]:
    return [*device_arguments(params), "--vertices", str(_vertices(params))]


def _estimate_s(params: Params) -> float:
    """The host makes the graph and searches it once."""
    return 2.0 + _vertices(params) * 1e-6


def _rate(name: str, series: str, counted: str, unit: Unit, work: str) -> Figure:
    return Figure(
        name=name,
        series=series,
        unit=unit,
        better=Better.HIGHER,
        value=lambda sample: sample.work[counted] / sample.elapsed_s,
        work=work,
        is_there=lambda params: series == "search" or (params["mode"] == "EP" and params["devices"] != 1),
    )


_EDGES = "edges looked at, each from either end, by the time of whole searches with the host's looks every 6 levels"
_BYTES = "8 B of each edge looked at, 20 B of each vertex reached, 4 B of every vertex"
_ALL = "the same of all devices together, by the time of the slowest"

BENCHMARK = Benchmark(
    name="gpu.bfs",
    question="How fast does a device search a graph in its memory, level by level?",
    program=Native(Path(__file__).with_suffix(".cpp"), _arguments, library="gpu"),
    parameters=(
        mode_among("S", "EP"),
        Parameter(
            "size",
            ParameterKind.CHOICE,
            "large",
            "1 to 4: SHOC's 1, 10, 100 and 1000 thousand vertices; large: 16 million",
            words=tuple(_SIZES),
        ),
        *COMMON,
    ),
    figures=(
        _rate("edges", "search", "ops", "op/s", _EDGES),
        _rate("bandwidth", "search", "bytes", "B/s", _BYTES),
        _rate("edges_all", "search_all", "ops", "op/s", _ALL),
        _rate("bandwidth_all", "search_all", "bytes", "B/s", _ALL),
    ),
    checks=(Check("error", "vertices whose level is not that of a search on the host", _none),),
    placement=cpu_of_each_device,
    prepare=one_or_more,
    estimate_s=_estimate_s,
    verified=False,
)
"""No limit: accesses of 4 B at random move whole sectors of memory, how many depends on the graph."""
