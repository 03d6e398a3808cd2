"""gpu.kernel-compile: how long a program of kernels takes from its source until it can be launched, as SHOC's
KernelCompile, with the drivers' caches off and other numbers in the source each time."""

from __future__ import annotations

from pathlib import Path

from seatrial.benchmarks.bounds import zero
from seatrial.benchmarks.gpu.device_parameters import COMMON, device_arguments, one_or_more
from seatrial.benchmarks.gpu.device_parameters import placement as cpu_of_each_device
from seatrial.model.benchmark import Benchmark, Better, Check, Figure, Native


def _time(name: str, work: str) -> Figure:
    return Figure(
        name=name,
        series=name,
        unit="s",
        better=Better.LOWER,
        value=lambda sample: sample.elapsed_s,
        work=work,
    )


BENCHMARK = Benchmark(
    name="gpu.kernel-compile",
    question="How long does it take to build kernels from their source?",
    program=Native(Path(__file__).with_suffix(".cpp"), device_arguments, library="gpu"),
    parameters=(*COMMON,),
    figures=(
        _time("build", "a source of two kernels, until both can be launched"),
        _time("first_run", "the first launch of both, to their end: what the driver put off until then"),
    ),
    checks=(Check("error", "numbers that the freshly built kernels got wrong", zero),),
    placement=cpu_of_each_device,
    prepare=one_or_more,
    estimate_s=lambda params: 5.0,
    verified=False,
)
