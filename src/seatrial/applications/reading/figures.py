"""What the declarations of results of other tools share: their parameters, figures and limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from seatrial.model.benchmark.benchmark import Benchmark, Better, Figure, ImportedOnly
from seatrial.model.benchmark.parameter import UNKNOWN, Parameter, ParameterKind, Params
from seatrial.model.benchmark.quotients import WorkRate
from seatrial.model.machine.limit import Limit
from seatrial.model.machine.machine import DeviceKind, Machine
from seatrial.model.results.sample import Sample
from seatrial.model.units import Unit

GIVEN_FLOPS = "given.peak_flops"
GIVEN_BANDWIDTH = "given.peak_Bps"
"""Names of the limits that the user gave with an import (`--set peak_flops=...`). They apply to any device."""

LimitOf = Callable[[Machine, Params, Sequence[Sample]], Limit]


def imported(
    kind: str,
    tool: str,
    question: str,
    parameters: tuple[Parameter, ...],
    figures: tuple[Figure, ...],
) -> Benchmark:
    """A benchmark whose figures come from result files of `tool` alone."""
    return Benchmark(
        name=f"imported.{kind}",
        question=question,
        program=ImportedOnly(f"its figures come from result files of {tool}: run `seatrial import {kind}=FILE`"),
        parameters=parameters,
        figures=figures,
        checks=(),
        placement=lambda machine, params: (),
    )


def count_parameter(name: str, help_text: str) -> Parameter:
    """A whole number, or unknown."""
    return Parameter(name, ParameterKind.INTEGER, UNKNOWN, help_text, words=(UNKNOWN,))


def size_parameter(name: str, help_text: str) -> Parameter:
    """A size in bytes, or unknown."""
    return Parameter(name, ParameterKind.BYTES, UNKNOWN, help_text, words=(UNKNOWN,))


def text_parameter(name: str, help_text: str) -> Parameter:
    """A word or name, or unknown."""
    return Parameter(name, ParameterKind.TEXT, UNKNOWN, help_text)


def choice_parameter(name: str, help_text: str, *values: str) -> Parameter:
    """One of a few words, or unknown."""
    return Parameter(name, ParameterKind.CHOICE, UNKNOWN, help_text, words=(*values, UNKNOWN))


def rate_figure(name: str, unit: Unit, work: str, limit: LimitOf | None = None, series: str = "") -> Figure:
    """A rate, of samples that `seatrial.applications.reading.samples.rate_sample` made."""
    return Figure(name, unit, Better.HIGHER, _rate, work, series, limit)


def time_figure(name: str, work: str, series: str = "") -> Figure:
    """A time in seconds, of samples that `seatrial.applications.reading.samples.time_sample` made."""
    return Figure(name, "s", Better.LOWER, _time, work, series)


def flops_limit(precision: str = "fp64", ranks: str | None = None) -> LimitOf:
    """The peak that the user gave, else that of all cores (`cpu.fp64` or `cpu.fp32`).

    `ranks` names the parameter with the number of processes. With more processes than this machine has CPUs, the run
    used several machines, and the limit of one does not apply.
    """

    def limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
        return _limit(machine, params, "flop/s", GIVEN_FLOPS, f"cpu.{precision}", ranks)

    return limit


def memory_limit(ranks: str | None = None) -> LimitOf:
    """The bandwidth that the user gave, else the machine's DRAM bandwidth; `ranks` as in `flops_limit`."""

    def limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
        return _limit(machine, params, "B/s", GIVEN_BANDWIDTH, "dram.bandwidth", ranks)

    return limit


def device_flops_limit(ranks: str) -> LimitOf:
    """The peak that the user gave, else that of all cores if the machine has no GPU that may have been used; `ranks` as
    in `flops_limit`."""

    def limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
        of_one = given_limit("flop/s") if machine.of_kind(DeviceKind.GPU) else flops_limit(ranks=ranks)
        return of_one(machine, params, samples)

    return limit


def device_memory_limit() -> LimitOf:
    """The bandwidth that the user gave, else the DRAM bandwidth if the machine has no GPU that may have been used."""

    def limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
        may_be_of_a_gpu = not machine.pus or machine.of_kind(DeviceKind.GPU)
        return (given_limit("B/s") if may_be_of_a_gpu else memory_limit())(machine, params, samples)

    return limit


def given_limit(unit: Unit) -> LimitOf:
    """The limit that the user gave for this unit, else unknown."""

    def limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
        name = GIVEN_FLOPS if unit == "flop/s" else GIVEN_BANDWIDTH
        missing = "the peak of the device is unknown; give it with --set peak_flops=... or peak_Bps=..."
        return machine.named_limit(name) or Limit.unknown(unit, missing)

    return limit


def _limit(machine: Machine, params: Params, unit: Unit, given: str, own: str, ranks: str | None) -> Limit:
    stated = machine.named_limit(given)
    if stated is not None:
        return stated
    count = params.get(ranks) if ranks is not None else None
    cpus = len(machine.pus)
    if isinstance(count, int) and cpus and count > cpus:
        return Limit.unknown(unit, f"{count} processes ran on more than this machine, which has {cpus} CPUs")
    return machine.named_limit(own) or Limit.unknown(unit, f"{own} is unknown")


RUN_PARAMETERS = (
    count_parameter("atoms", "atoms of the system"),
    count_parameter("nodes", "hosts"),
    count_parameter("ranks", "processes"),
    count_parameter("threads", "threads of each process"),
)
"""What the logs of simulation codes state."""

DYNAMICS_PARAMETERS = (
    count_parameter("atoms", "atoms of the system"),
    count_parameter("steps", "time steps of the run"),
    text_parameter("timestep", "simulated time of a step (2 fs)"),
    count_parameter("nodes", "hosts"),
    count_parameter("ranks", "processes"),
    count_parameter("threads", "threads of each process that compute"),
)
"""What the logs of molecular dynamics state."""

_A_DAY_S = 86400.0
_rate = WorkRate("amount")


def time_per_ns_figure(name: str, work: str) -> Figure:
    """Elapsed seconds per simulated nanosecond: lower is better. Users know it as ns/day."""
    return Figure(name, "s", Better.LOWER, _time, work, customary=ns_per_day)


def ns_per_day(params: Params, ns_s: float) -> str:
    """Seconds per simulated nanosecond in the customary unit."""
    return f"{_A_DAY_S / ns_s:.4g} ns/day"


def _time(sample: Sample) -> float:
    return sample.elapsed_s
