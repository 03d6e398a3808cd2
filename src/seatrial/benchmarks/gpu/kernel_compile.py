"""gpu.kernel-compile: the time to build kernels from source until they can be launched, as SHOC's KernelCompile, with
the drivers' caches off and different numbers in the source each time."""

from __future__ import annotations

from seatrial.benchmarks.figures import duration
from seatrial.benchmarks.gpu import device

BENCHMARK = device.benchmark(
    __file__,
    name="gpu.kernel-compile",
    question="How long does it take to build kernels from source?",
    parameters=(),
    figures=(
        duration("build", "from source with two kernels until both can be launched"),
        duration("first_run", "first launch of both, to their end, with work that the driver deferred until then"),
    ),
    error="wrong results of the freshly built kernels",
    estimate_s=lambda params: 5.0,
)
