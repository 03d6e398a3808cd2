"""gpu.sort: a stable radix sort of 32-bit keys, with 32-bit values (SHOC's Sort) or alone."""

from __future__ import annotations

from seatrial.benchmarks.bounds import zero
from seatrial.benchmarks.gpu.device_benchmark import chosen_size, device_benchmark, rates, size_class
from seatrial.benchmarks.gpu.device_parameters import device_arguments, mode_among
from seatrial.model.benchmark import Check
from seatrial.model.parameter import Parameter, ParameterKind, Params

_ALGORITHM = Parameter(
    "algorithm",
    ParameterKind.CHOICE,
    "auto",
    "lsd: 8 passes of 4 bits, each by three kernels (N. Satish et al., 2009); onesweep: 4 passes of 8 bits with "
    "decoupled look-back (A. Adinets and D. Merrill, 2022); auto: onesweep with CUDA, else lsd",
    words=("auto", "lsd", "onesweep"),
)
_PAYLOAD = Parameter(
    "payload",
    ParameterKind.CHOICE,
    "pairs",
    "pairs: keys with values; keys: keys alone",
    words=("pairs", "keys"),
)
_MiB = 1 << 20
_SIZES = {"1": _MiB, "2": 8 * _MiB, "3": 32 * _MiB, "4": 64 * _MiB, "large": 1 << 30}
"""Bytes of keys and values: SHOC's classes, and one beyond the caches of today."""


def _bytes(params: Params) -> int:
    return chosen_size(_SIZES, params)


def _arguments(params: Params) -> list[str]:
    key_B = 8 if params["payload"] == "pairs" else 4  # with its value
    return [
        *device_arguments(params),
        *("--algorithm", str(params["algorithm"]), "--payload", str(params["payload"])),
        *("--count", str(_bytes(params) // key_B)),
    ]


def _estimate_s(params: Params) -> float:
    """The host's own sort takes most of it."""
    return 2.0 + _bytes(params) * 3e-8


BENCHMARK = device_benchmark(
    __file__,
    name="gpu.sort",
    question="How fast does a device sort keys, with or without values?",
    arguments=_arguments,
    parameters=(
        mode_among("S", "EP"),
        _ALGORITHM,
        _PAYLOAD,
        size_class(_SIZES, "size of keys and values; 1 to 4: SHOC's 1, 8, 32 and 64 MiB; large: 1 GiB"),
    ),
    figures=(
        *rates("keys", "op/s", "ops", "keys sorted, with their values if any; no copies beforehand", series="sort"),
        *rates(
            "bandwidth",
            "B/s",
            "bytes",
            "sorted data counts once: 8 B per pair, 4 B per key alone",
            series="sort",
        ),
    ),
    checks=(Check("error", "keys and values whose place differs from a stable sort on the host", zero),),
    estimate_s=_estimate_s,
)
"""No limit: how often keys pass through memory is the algorithm's affair. For each pair LSD makes 8 passes of 20 B
(keys are read twice), Onesweep 4 of 16 B after one look at the keys."""
