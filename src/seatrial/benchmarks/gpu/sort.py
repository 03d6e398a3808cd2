"""gpu.sort: a stable radix sort of 32-bit keys with 32-bit values, SHOC's Sort."""

from __future__ import annotations

from pathlib import Path

from seatrial.benchmarks.gpu.device_parameters import COMMON, device_arguments, mode_among, one_or_more
from seatrial.benchmarks.gpu.device_parameters import placement as cpu_of_each_device
from seatrial.model.benchmark import Benchmark, Better, Check, Figure, Native
from seatrial.model.machine import Machine
from seatrial.model.parameter import Parameter, ParameterKind, Params
from seatrial.model.units import Unit

_MiB = 1 << 20
_SIZES = {"1": _MiB, "2": 8 * _MiB, "3": 32 * _MiB, "4": 64 * _MiB, "large": 1 << 30}
"""Bytes of keys and values: SHOC's classes, and one beyond the caches of today."""
_PAIR_B = 8


def _bytes(params: Params) -> int:
    return _SIZES[str(params["size"])]


def _none(machine: Machine, params: Params) -> tuple[float, float]:
    return (0.0, 0.0)


def _arguments(params: Params) -> list[str]:
    return [*device_arguments(params), "--count", str(_bytes(params) // _PAIR_B)]


def _estimate_s(params: Params) -> float:
    """The host's std::stable_sort takes most of it."""
    return 2.0 + _bytes(params) * 3e-8


def _rate(name: str, series: str, counted: str, unit: Unit, work: str) -> Figure:
    return Figure(
        name=name,
        series=series,
        unit=unit,
        better=Better.HIGHER,
        value=lambda sample: sample.work[counted] / sample.elapsed_s,
        work=work,
        is_there=lambda params: series == "sort" or (params["mode"] == "EP" and params["devices"] != 1),
    )


_PAIRS = "pairs of a key and a value, in 8 passes of 4 bits; the first reads what was given, so nothing is copied"
_ALL = "the same of all devices together, by the time of the slowest"

BENCHMARK = Benchmark(
    name="gpu.sort",
    question="How fast does a device sort the pairs of keys and values in its memory?",
    program=Native(Path(__file__).with_suffix(".cpp"), _arguments, library="gpu"),
    parameters=(
        mode_among("S", "EP"),
        Parameter(
            "size",
            ParameterKind.CHOICE,
            "large",
            "of keys and values; 1 to 4: SHOC's 1, 8, 32 and 64 MiB; large: 1 GiB",
            words=tuple(_SIZES),
        ),
        *COMMON,
    ),
    figures=(
        _rate("keys", "sort", "ops", "op/s", _PAIRS),
        _rate("bandwidth", "sort", "bytes", "B/s", "8 B of each pair, once; a pass moves 20 B (keys read twice)"),
        _rate("keys_all", "sort_all", "ops", "op/s", _ALL),
        _rate("bandwidth_all", "sort_all", "bytes", "B/s", _ALL),
    ),
    checks=(Check("error", "pairs that are not where std::stable_sort has them", _none),),
    placement=cpu_of_each_device,
    prepare=one_or_more,
    estimate_s=_estimate_s,
    verified=False,
)
"""No limit: how often pairs pass through memory is the algorithm's affair. Ours are 8 passes of 20 B; Onesweep
(A. Adinets and D. Merrill, 2022) needs 4 of 16 B and one look at the keys."""
