"""What results of other tools are declared with: readers, parameters, figures and limits, and samples of printed
numbers.

A reader is the `READER` of a module of `seatrial.applications`; the registry (readers.py) finds it there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial

from seatrial.applications.reading.job import ProgramOptions
from seatrial.applications.reading.pasted import Form, read_pasted
from seatrial.applications.reading.runs import Starts
from seatrial.model.benchmark.benchmark import Benchmark, Better, Figure, ImportedOnly, LimitOf, elapsed
from seatrial.model.benchmark.parameter import UNKNOWN, Parameter, Params, Value
from seatrial.model.benchmark.quotients import WorkRate
from seatrial.model.frozen import Frozen
from seatrial.model.machine.limit import Limit
from seatrial.model.machine.machine import DeviceKind, Machine
from seatrial.model.results.imported import ImportedFile
from seatrial.model.results.sample import Sample
from seatrial.model.units import SIUnit, Unit


class Reader(Frozen):
    """`kind` is its name on the command line. `parse` is pure; it raises ParseError (tool, line, text, why) for a file
    that is incomplete, from another tool, or has an impossible number. A text with several runs is split where one of
    the lines `begins` is (runs.py); `options` are those of the tool's programs that state parameters. A part of the
    text with a line `aside` is of a program without figure, which the first group names. `is_from_documentation`: no
    test reads a real text of this format, and lists label it so. `starts` replaces `begins` in logs to which all ranks
    of a run write (pasted.py)."""

    kind: str
    parse: Callable[[bytes], ImportedFile]
    begins: tuple[str, ...] = ()
    options: ProgramOptions = ProgramOptions()
    aside: str = ""
    is_from_documentation: bool = False
    starts: Starts | None = None

    def read(self, data: bytes) -> ImportedFile:
        """The contents of a file as users have it: compressed, with something before each line, of several runs. Raises
        ParseError."""
        return read_pasted(Form(self.kind, self.parse, self.begins, self.options, self.aside, self.starts), data)


_NO_POINT: Mapping[str, Value] = {}


def in_SI(value: float, unit: float) -> float:
    """`value` x `unit` (the unit in SI), rounded once: 66.3936 GB/s is 66393600000.0 B/s."""
    return float(Decimal(repr(value)) * Decimal(repr(unit)))


def rate_sample(
    series: str, rate: float, *, i: int = 0, point: Mapping[str, Value] = _NO_POINT, resolution: float = 0.0
) -> Sample:
    """A rate (SI, per second) as the work of one second, so that the figure is exactly this number. `resolution` is the
    step of the printed digits as a share of it; 0: printed in full, or unknown."""
    return Sample(series, i, 1.0, {"amount": rate}, point=dict(point), extra=stated(resolution))


def time_sample(
    series: str, seconds: float, *, i: int = 0, point: Mapping[str, Value] = _NO_POINT, resolution: float = 0.0
) -> Sample:
    """A time in seconds. `resolution` as for a rate."""
    return Sample(series, i, seconds, point=dict(point), extra=stated(resolution))


def stated(resolution: float) -> dict[str, float]:
    """The resolution as a sample states it."""
    return {"resolution": resolution} if resolution else {}


def sample_at_rate(series: str, counted: str, work: float, rate: float, *, resolution: float = 0.0) -> Sample:
    """`work` (counted as `counted`) done at `rate`, with work / time exactly equal to `rate`.

    The time is work / rate, which is more exact than the rounded time that the tool prints. If no double gives the rate
    exactly, the work changes in its last bits.
    """
    time_s = work / rate
    for amount, elapsed_s in itertools.product(_around(work), _around(time_s)):
        if amount / elapsed_s == rate:
            return Sample(series, 0, elapsed_s, {counted: amount}, extra=stated(resolution))
    return Sample(series, 0, 1.0, {counted: rate}, extra=stated(resolution))


def _around(value: float) -> list[float]:
    """A number and the doubles next to it, the number first."""
    below, above = math.nextafter(value, 0.0), math.nextafter(value, math.inf)
    return [value, below, above, math.nextafter(below, 0.0), math.nextafter(above, math.inf)]


GIVEN_FLOPS = "given.peak_flops"
GIVEN_BANDWIDTH = "given.peak_Bps"
"""Names of the limits that the user gave with an import (`--set peak_flops=...`). They apply to any device."""
_GIVEN: Mapping[str, str] = {"flop/s": GIVEN_FLOPS, "B/s": GIVEN_BANDWIDTH}


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


def counts(**meanings: str) -> tuple[Parameter, ...]:
    """Whole numbers, or unknown: name -> its meaning."""
    return tuple(count(name, help_text) for name, help_text in meanings.items())


def size(name: str, help_text: str) -> Parameter:
    """A size in bytes, or unknown."""
    return Parameter.size(name, UNKNOWN, help_text)


def text(name: str, help_text: str) -> Parameter:
    """A word or name, or unknown."""
    return Parameter.text(name, UNKNOWN, help_text)


def choice(name: str, help_text: str, *values: str) -> Parameter:
    """One of a few words, or unknown."""
    return Parameter.choice(name, UNKNOWN, help_text, (*values, UNKNOWN))


def rate(name: str, unit: Unit, work: str, limit: LimitOf | None = None, *, is_secondary: bool = False) -> Figure:
    """A rate, of samples that `rate_sample` made."""
    return Figure(name, unit, Better.HIGHER, WorkRate("amount"), work, limit=limit, is_secondary=is_secondary)


def time(name: str, work: str, customary: Callable[[Params, float], str] | None = None) -> Figure:
    """A time in seconds, of samples that `time_sample` made."""
    return Figure(name, "s", Better.LOWER, elapsed, work, customary=customary)


def flops_limit(precision: str = "fp64", ranks: str | None = None) -> LimitOf:
    """The peak that the user gave, else that of all cores (`cpu.fp64` or `cpu.fp32`).

    `ranks` names the parameter with the number of processes. With more processes than this machine has CPUs, the run
    used several machines, and the limit of one does not apply.
    """
    return partial(_limit, "flop/s", f"cpu.{precision}", ranks)


def memory_limit(ranks: str | None = None) -> LimitOf:
    """The bandwidth that the user gave, else the machine's DRAM bandwidth; `ranks` as in `flops_limit`."""
    return partial(_limit, "B/s", "dram.bandwidth", ranks)


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


def given_limit(unit: SIUnit) -> LimitOf:
    """The limit that the user gave for this unit, else unknown."""

    def limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
        missing = "the peak of the device is unknown; give it with --set peak_flops=... or peak_Bps=..."
        return machine.named_limit(_GIVEN[unit]) or Limit.unknown(unit, missing)

    return limit


def _limit(
    unit: SIUnit, own: str, ranks: str | None, machine: Machine, params: Params, samples: Sequence[Sample]
) -> Limit:
    stated = machine.named_limit(_GIVEN[unit])
    if stated is not None:
        return stated
    processes = params.get(ranks) if ranks is not None else None
    cpus = len(machine.pus)
    if isinstance(processes, int) and cpus and processes > cpus:
        return Limit.unknown(unit, f"{processes} processes ran on more than this machine, which has {cpus} CPUs")
    return machine.named_limit(own) or Limit.unknown(unit, f"{own} is unknown")


RUN_PARAMETERS = counts(
    atoms="atoms of the system", nodes="hosts", ranks="processes", threads="threads of each process"
)
"""What the logs of simulation codes state."""

DYNAMICS_PARAMETERS = (
    *counts(atoms="atoms of the system", steps="time steps of the run"),
    text("timestep", "simulated time of a step (2 fs)"),
    *counts(nodes="hosts", ranks="processes", threads="threads of each process that compute"),
)
"""What the logs of molecular dynamics state."""

_A_DAY_S = 86400.0


def time_per_ns(name: str, work: str) -> Figure:
    """Elapsed seconds per simulated nanosecond: lower is better. Users know it as ns/day."""
    return time(name, work, ns_per_day)


def ns_per_day(params: Params, ns_s: float) -> str:
    """Seconds per simulated nanosecond in the customary unit."""
    return f"{_A_DAY_S / ns_s:.4g} ns/day"
