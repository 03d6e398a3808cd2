"""gpu.sort: a stable radix sort of 32-bit keys with 32-bit values, SHOC's Sort."""

from __future__ import annotations

from seatrial.benchmarks.bounds import zero
from seatrial.benchmarks.gpu.device_benchmark import chosen_size, device_benchmark, rates, size_class
from seatrial.benchmarks.gpu.device_parameters import device_arguments, mode_among
from seatrial.model.benchmark import Check
from seatrial.model.parameter import Params

_MiB = 1 << 20
_SIZES = {"1": _MiB, "2": 8 * _MiB, "3": 32 * _MiB, "4": 64 * _MiB, "large": 1 << 30}
"""Bytes of keys and values: SHOC's classes, and one beyond the caches of today."""
_PAIR_B = 8


def _bytes(params: Params) -> int:
    return chosen_size(_SIZES, params)


def _arguments(params: Params) -> list[str]:
    return [*device_arguments(params), "--count", str(_bytes(params) // _PAIR_B)]


def _estimate_s(params: Params) -> float:
    """The host's std::stable_sort takes most of it."""
    return 2.0 + _bytes(params) * 3e-8


_PAIRS = "pairs of a key and a value, in 8 passes of 4 bits; the first reads what was given, so nothing is copied"

BENCHMARK = device_benchmark(
    __file__,
    name="gpu.sort",
    question="How fast does a device sort the pairs of keys and values in its memory?",
    arguments=_arguments,
    parameters=(
        mode_among("S", "EP"),
        size_class(_SIZES, "of keys and values; 1 to 4: SHOC's 1, 8, 32 and 64 MiB; large: 1 GiB"),
    ),
    figures=(
        *rates("keys", "op/s", "ops", _PAIRS, series="sort"),
        *rates(
            "bandwidth", "B/s", "bytes", "8 B of each pair, once; a pass moves 20 B (keys read twice)", series="sort"
        ),
    ),
    checks=(Check("error", "pairs that are not where std::stable_sort has them", zero),),
    estimate_s=_estimate_s,
)
"""No limit: how often pairs pass through memory is the algorithm's affair. Ours are 8 passes of 20 B; Onesweep
(A. Adinets and D. Merrill, 2022) needs 4 of 16 B and one look at the keys."""
