"""gpu.queue-delay: the time before queued kernels are done, and what a launch costs, counted as SHOC's QueueDelay does:
1, 2 and 4 kernels on an idle queue."""

from __future__ import annotations

from pathlib import Path

from seatrial.benchmarks.bounds import zero
from seatrial.benchmarks.gpu.device_parameters import COMMON, device_arguments, mode_among, one_or_more
from seatrial.benchmarks.gpu.device_parameters import placement as cpu_of_each_device
from seatrial.model.benchmark import Benchmark, Better, Check, Figure, Native


def _time(name: str, counted: str, work: str) -> Figure:
    return Figure(
        name=name,
        series=name,
        unit="s",
        better=Better.LOWER,
        value=lambda sample: sample.elapsed_s / sample.work[counted],
        work=work,
    )


def _time_all(name: str, work: str) -> Figure:
    """A sample of all devices is of one run on each, by the time of the slowest."""
    return Figure(
        name=f"{name}_all",
        series=f"{name}_all",
        unit="s",
        better=Better.LOWER,
        value=lambda sample: sample.elapsed_s,
        work=work,
        is_there=lambda params: params["mode"] == "EP" and params["devices"] != 1,
    )


BENCHMARK = Benchmark(
    name="gpu.queue-delay",
    question="How long does it take until kernels that are given to an idle device are done?",
    program=Native(Path(__file__).with_suffix(".cpp"), device_arguments, library="gpu"),
    parameters=(mode_among("S", "EP"), *COMMON),
    figures=(
        _time("delay", "trials", "from enqueueing that many kernels on an idle queue to the end of the last"),
        _time("launch", "launches", "of each kernel in a long train: 2k kernels less k kernels"),
        _time_all("delay", "the same on all devices at once, of the slowest"),
        _time_all("launch", "the same on all devices at once, of the slowest"),
    ),
    checks=(Check("error", "how far a count of launches by the kernels is from the number of launches", zero),),
    placement=cpu_of_each_device,
    prepare=one_or_more,
    estimate_s=lambda params: 2.0,
    verified=False,
)
