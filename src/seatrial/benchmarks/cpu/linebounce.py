"""cpu.linebounce: how long one cache line takes from one core to another.

What no message between two ranks on one node can beat: every pair of cores takes turns at writing one line.
"""

from __future__ import annotations

from pathlib import Path

from seatrial.benchmarks.placement import spread
from seatrial.model.benchmark import Benchmark, Better, Check, Figure, Native, Skip
from seatrial.model.machine import Machine
from seatrial.model.parameter import Params
from seatrial.model.sample import Sample

_SLICE_S = 0.25


def _placement(machine: Machine, params: Params) -> tuple[int, ...]:
    cores = len(machine.cpus_one_per_core())
    if cores < 2:
        raise Skip("a line needs two cores to bounce between; this process may use one")
    return spread(machine, cores)


def _time_of_one_trip(sample: Sample) -> float:
    return sample.elapsed_s / sample.work["ops"]


BENCHMARK = Benchmark(
    name="cpu.linebounce",
    question="How long does a cache line take from one core to another?",
    program=Native(Path(__file__).with_suffix(".cpp"), lambda params: ["--slice", str(_SLICE_S)]),
    parameters=(),
    figures=(
        Figure(
            name="one_way",
            series="one_way",
            unit="s",
            better=Better.LOWER,
            value=_time_of_one_trip,
            work="one trip of the line, half a round",
        ),
    ),
    checks=(
        Check("lost_updates", "turns that were lost or came out of order", bound=lambda machine, params: (0, 0)),
        Check("moved_threads", "threads found off their CPU before a sample", bound=lambda machine, params: (0, 0)),
    ),
    placement=_placement,
    trial=({},),
    estimate_s=lambda params: 2 * _SLICE_S,
)
