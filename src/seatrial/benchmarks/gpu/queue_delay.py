"""gpu.queue-delay: the time until queued kernels complete, and the cost of a launch, counted as in SHOC's QueueDelay:
1, 2 and 4 kernels on an idle queue."""

from __future__ import annotations

from seatrial.benchmarks.figures import duration, zero
from seatrial.benchmarks.gpu.device_benchmark import device_benchmark, of_several
from seatrial.benchmarks.gpu.device_parameters import mode_among
from seatrial.model.benchmark.benchmark import Check, Figure


def _time(name: str, counted: str, work: str) -> Figure:
    return duration(name, work, counted)


def _time_all(name: str, work: str) -> Figure:
    """A sample of all devices is of one run on each, by the time of the slowest."""
    return duration(f"{name}_all", work, is_there=of_several)


BENCHMARK = device_benchmark(
    __file__,
    name="gpu.queue-delay",
    question="How long does a kernel take on an idle device, from launch to completion?",
    parameters=(mode_among("S", "EP"),),
    figures=(
        _time("delay", "trials", "from enqueueing the kernels on an idle queue to the end of the last"),
        _time("launch", "launches", "one launch in a long series: 2k kernels less k kernels"),
        _time_all("delay", "delay on all devices at once, of the slowest"),
        _time_all("launch", "launch on all devices at once, of the slowest"),
    ),
    checks=(Check("error", "difference between the launches counted by the kernels and those made", zero),),
    estimate_s=lambda params: 2.0,
    trial=({},),
)
