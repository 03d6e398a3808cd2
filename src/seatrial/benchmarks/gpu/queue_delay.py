"""gpu.queue-delay: the time until queued kernels complete, and the cost of a launch, counted as in SHOC's QueueDelay:
1, 2 and 4 kernels on an idle queue."""

from __future__ import annotations

from seatrial.benchmarks.figures import duration
from seatrial.benchmarks.gpu import device

BENCHMARK = device.benchmark(
    __file__,
    name="gpu.queue-delay",
    question="How long does a kernel take on an idle device, from launch to completion?",
    parameters=(device.mode_among("S", "EP"),),
    figures=(
        duration("delay", "from enqueueing the kernels on an idle queue to the end of the last", "trials"),
        duration("launch", "one launch in a long series: 2k kernels less k kernels", "launches"),
        # A sample of all devices is of one run on each, by the time of the slowest.
        duration("delay_all", "delay on all devices at once, of the slowest", is_there=device.of_several),
        duration("launch_all", "launch on all devices at once, of the slowest", is_there=device.of_several),
    ),
    error="difference between the launches counted by the kernels and those made",
    estimate_s=lambda params: 2.0,
    trial=({},),
)
