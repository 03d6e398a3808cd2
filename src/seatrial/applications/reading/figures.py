"""What the declarations of results of other tools share: their parameters, figures and limits."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.model.benchmark.benchmark import Benchmark, Better, Figure, ImportedOnly, LimitOf, elapsed
from seatrial.model.benchmark.parameter import UNKNOWN, Parameter, Params
from seatrial.model.benchmark.quotients import WorkRate
from seatrial.model.machine.limit import Limit
from seatrial.model.machine.machine import DeviceKind, Machine
from seatrial.model.results.sample import Sample
from seatrial.model.units import Unit

GIVEN_FLOPS = "given.peak_flops"
GIVEN_BANDWIDTH = "given.peak_Bps"
"""Names of the limits that the user gave with an import (`--set peak_flops=...`). They apply to any device."""


def imported(
    kind: str, tool: str, question: str, parameters: tuple[Parameter, ...], figures: tuple[Figure, ...]
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


def count(name: str, help_text: str) -> Parameter:
    """A whole number, or unknown."""
    return Parameter.integer(name, UNKNOWN, help_text)


def size(name: str, help_text: str) -> Parameter:
    """A size in bytes, or unknown."""
    return Parameter.size(name, UNKNOWN, help_text)


def text(name: str, help_text: str) -> Parameter:
    """A word or name, or unknown."""
    return Parameter.text(name, UNKNOWN, help_text)


def choice(name: str, help_text: str, *values: str) -> Parameter:
    """One of a few words, or unknown."""
    return Parameter.choice(name, UNKNOWN, help_text, (*values, UNKNOWN))


def rate(name: str, unit: Unit, work: str, limit: LimitOf | None = None, series: str = "") -> Figure:
    """A rate, of samples that `seatrial.applications.reading.samples.rate_sample` made."""
    return Figure(name, unit, Better.HIGHER, WorkRate("amount"), work, series, limit)


def time(name: str, work: str, series: str = "") -> Figure:
    """A time in seconds, of samples that `seatrial.applications.reading.samples.time_sample` made."""
    return Figure(name, "s", Better.LOWER, elapsed, work, series)


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
    processes = params.get(ranks) if ranks is not None else None
    cpus = len(machine.pus)
    if isinstance(processes, int) and cpus and processes > cpus:
        return Limit.unknown(unit, f"{processes} processes ran on more than this machine, which has {cpus} CPUs")
    return machine.named_limit(own) or Limit.unknown(unit, f"{own} is unknown")


RUN_PARAMETERS = (
    count("atoms", "atoms of the system"),
    count("nodes", "hosts"),
    count("ranks", "processes"),
    count("threads", "threads of each process"),
)
"""What the logs of simulation codes state."""

DYNAMICS_PARAMETERS = (
    count("atoms", "atoms of the system"),
    count("steps", "time steps of the run"),
    text("timestep", "simulated time of a step (2 fs)"),
    count("nodes", "hosts"),
    count("ranks", "processes"),
    count("threads", "threads of each process that compute"),
)
"""What the logs of molecular dynamics state."""

_A_DAY_S = 86400.0


def time_per_ns(name: str, work: str) -> Figure:
    """Elapsed seconds per simulated nanosecond: lower is better. Users know it as ns/day."""
    return Figure(name, "s", Better.LOWER, elapsed, work, customary=ns_per_day)


def ns_per_day(params: Params, ns_s: float) -> str:
    """Seconds per simulated nanosecond in the customary unit."""
    return f"{_A_DAY_S / ns_s:.4g} ns/day"
