"""gpu.reduction: the sum of n numbers, counted as SHOC's Reduction does: each is read once."""

from __future__ import annotations

from seatrial.benchmarks.gpu import device
from seatrial.benchmarks.gpu.limits import memory_limit
from seatrial.model.benchmark.benchmark import Role

_TOLERANCE = {"fp32": 1e-6, "fp64": 1e-12}
"""Of the sum, relative to the sum of magnitudes: far above what rounding does to sums of sums (N. J. Higham, "The
accuracy of floating point summation", 1993), far below what one number more or less does to the smallest class."""


BENCHMARK = device.benchmark(
    __file__,
    name="gpu.reduction",
    question="How fast does a device sum an array in its memory?",
    words=(lambda params: ["--count", str(device.array_bytes(params) // device.element_bytes(params))],),
    parameters=(
        device.mode_among("S", "EP", "TP", together="--together"),
        device.PRECISION,
        device.size_class(device.ARRAY_B, "1 to 4: SHOC's 1, 8, 32 and 64 MiB; large: 1 GiB"),
    ),
    figures=device.rates(
        "bandwidth",
        "B/s",
        "each number is read once",
        series="sum",
        limit=memory_limit(device.array_bytes),
        role=Role.DEVICE_MEMORY_BANDWIDTH,
    ),
    error="error of the sum, relative to the sum of magnitudes",
    tolerances=_TOLERANCE,
    estimate_s=lambda params: 2.0 + device.array_bytes(params) * 2e-8,
)
"""`size` is that of one device; for TP that of all together."""
