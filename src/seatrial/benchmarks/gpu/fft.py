"""gpu.fft: batched transforms of 512 complex points, as in SHOC's FFT.

The kernel is portable and tests the compiler as much as the device; vendor libraries are faster.
"""

from __future__ import annotations

from seatrial.benchmarks.gpu import device
from seatrial.benchmarks.gpu.limits import memory_limit
from seatrial.model.benchmark.parameter import Params

_SIZES = {"1": 1 << 20, "2": 8 << 20, "3": 96 << 20, "4": 256 << 20, "large": 1 << 30}
_POINTS = 512
_TOLERANCE = {"fp32": 2e-6, "fp64": 4e-15}
"""Of a result, relative to the norm of the transform's input: rounding grows with the logarithm of the number of points
(J. C. Schatzman, "Accuracy of the discrete Fourier transform and the fast Fourier transform", 1996)."""


def _bytes(params: Params) -> int:
    return device.chosen_size(_SIZES, params)


_FLOPS = "5 N log2 N flop per transform, the usual count for any algorithm"

BENCHMARK = device.benchmark(
    __file__,
    name="gpu.fft",
    question="How fast does a device compute many FFTs of 512 points?",
    words=(lambda params: ["--batches", str(_bytes(params) // (2 * device.element_bytes(params) * _POINTS))],),
    parameters=(
        device.mode_among("S", "EP"),
        device.PRECISION,
        device.size_class(_SIZES, "size of all signals together; 1 to 4: SHOC's 1, 8, 96 and 256 MiB; large: 1 GiB"),
    ),
    figures=(
        *device.rates("forward", "flop/s", _FLOPS),
        *device.rates("inverse", "flop/s", _FLOPS),
        *device.rates(
            "bandwidth",
            "B/s",
            "every number read once and written once, forward transform",
            series="forward",
            limit=memory_limit(lambda params: 2.0 * _bytes(params)),
        ),
    ),
    error="error of a result, relative to the norm of the transform's input",
    tolerances=_TOLERANCE,
    estimate_s=lambda params: 4.0 + _bytes(params) * 1e-7,
)
