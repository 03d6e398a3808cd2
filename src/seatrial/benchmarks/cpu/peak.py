"""cpu.peak: the rate of fused multiply-adds, held against cores x clock x flop per cycle.

The clock is measured in the run itself, by a chain of dependent FMA of the same vector width on the same bound thread
right before and after each sample: such a chain takes its latency, a whole number of cycles that is known for each
microarchitecture, per operation. A chain of integer additions (one cycle each) beside it shows whether that latency is
right for the CPU that really runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from seatrial.benchmarks.placement import spread
from seatrial.model.benchmark import Benchmark, Better, Check, Figure, Native
from seatrial.model.limit import Limit, fma_rate
from seatrial.model.machine import Device, Machine
from seatrial.model.parameter import Parameter, ParameterKind, Params
from seatrial.model.sample import Sample

_BITS = {"fp64": 64, "fp32": 32}
_SLICE_S = 0.25


def _placement(machine: Machine, params: Params) -> tuple[int, ...]:
    cores = len(machine.cpus_one_per_core())
    return spread(machine, 1 if params["cores"] == "one" else cores)


def _arguments(params: Params) -> list[str]:
    return ["--precision", str(params["precision"]), "--slice", str(_SLICE_S)]


def _rate(sample: Sample) -> float:
    return sample.work["flops"] / sample.elapsed_s


def _package(machine: Machine, params: Params) -> Device | None:
    return machine.package_of(_placement(machine, params)[0])


def clocks_Hz(samples: Sequence[Sample], latency_cycles: float) -> tuple[float, ...]:
    """The clock of each thread over a repeat, in Hz: the median over samples of the fastest of three readings.

    The readings of a sample are the FMA chains before and after it (latency x length / time) and the chain of additions
    (one cycle each). A disturbance can only make a chain look slower, so the fastest is the least disturbed.
    """
    return tuple(
        median(
            max(
                sample.extra["chain_fmas"] * latency_cycles / min(sample.extra["chain_s"][thread]),
                sample.extra["add_ops"] / sample.extra["add_s"][thread],
            )
            for sample in samples
        )
        for thread in range(len(samples[0].extra["chain_s"]))
    )


def _limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    package = _package(machine, params)
    facts = None if package is None else package.facts
    pipes = facts.integer("fma_pipes") if facts else None
    bits = facts.integer("fma_vector_bits") if facts else None
    latency = facts.number("fma_latency_cycles") if facts else None
    if facts is None or pipes is None or bits is None or latency is None:
        return Limit.unknown("flop/s", "the FMA units of this microarchitecture are not in the table")
    pipes_fact = facts.best("fma_pipes")
    source = pipes_fact.source if pipes_fact else ""
    precision = str(params["precision"])
    return fma_rate(clocks_Hz(samples, latency), pipes, bits // _BITS[precision], precision, source)


def _latency(machine: Machine, params: Params) -> float | None:
    """The FMA latency in cycles that the table gives for this CPU."""
    package = _package(machine, params)
    return package.facts.number("fma_latency_cycles") if package else None


def _measured_latency(machine: Machine, params: Params, samples: Sequence[Sample]) -> float | None:
    """The FMA latency in cycles, counted by the chain of additions (one cycle each); None where the table gives none.

    Each chain speaks with its fast decile: a busy hyperthread or an interrupt slows one of the two at a time.
    """
    if _latency(machine, params) is None:
        return None
    fma_s = [min(pair) / sample.extra["chain_fmas"] for sample in samples for pair in sample.extra["chain_s"]]
    cycle_s = [time / sample.extra["add_ops"] for sample in samples for time in sample.extra["add_s"]]
    return _fast_decile(fma_s) / _fast_decile(cycle_s)


def _fast_decile(times: Sequence[float]) -> float:
    return sorted(times)[len(times) // 10]


def _latency_bound(machine: Machine, params: Params) -> tuple[float, float]:
    """A latency is a whole number of cycles: what is measured must round to that of the table."""
    latency = _latency(machine, params) or 0.0
    return latency - 0.5, latency + 0.5


BENCHMARK = Benchmark(
    name="cpu.peak",
    question="Do the cores reach the arithmetic rate that their clock and their FMA units allow?",
    program=Native(Path(__file__).with_suffix(".cpp"), _arguments),
    parameters=(
        Parameter("precision", ParameterKind.CHOICE, "fp64", "width of the numbers", words=("fp64", "fp32")),
        Parameter("cores", ParameterKind.CHOICE, "all", "one core, or all of them at once", words=("one", "all")),
    ),
    figures=(
        Figure(
            name="fma",
            series="fma",
            unit="flop/s",
            better=Better.HIGHER,
            value=_rate,
            work="2 flop per FMA and lane",
            limit=_limit,
        ),
    ),
    checks=(
        Check(
            "state_mismatches",
            "lanes of the accumulators that differ, bit for bit, from a scalar replay of the same FMAs",
            bound=lambda machine, params: (0, 0),
        ),
        Check(
            "distinct_state",
            "share of lanes whose final value no other lane has: equal lanes could be computed once",
            bound=lambda machine, params: (0.99, 1.0),
        ),
        Check(
            "fma_latency",
            "FMA latency in cycles of a chain of additions; the limit rests on that of the table",
            bound=_latency_bound,
            derive=_measured_latency,
        ),
    ),
    placement=_placement,
    trial=tuple({"precision": precision, "cores": cores} for precision in ("fp64", "fp32") for cores in ("one", "all")),
    estimate_s=lambda params: _SLICE_S + 0.1,
)
