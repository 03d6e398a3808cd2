"""cpu.peak: the rate of fused multiply-adds, compared with cores x clock x flop per cycle.

The clock is measured in the run itself, by a chain of dependent FMAs of the same vector width on the same bound thread
right before and after each sample. Each operation of the chain takes the FMA latency, a whole number of cycles that is
known for each microarchitecture. A chain of integer additions (one cycle each) shows whether that latency is right for
the CPU in use.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from msgspec.structs import replace

from seatrial.benchmarks.figures import between, native_program, rate, zero
from seatrial.benchmarks.placement import spread
from seatrial.model.benchmark.benchmark import Benchmark, Check, Role
from seatrial.model.benchmark.parameter import Parameter, Params
from seatrial.model.machine.limit import IMPOSSIBLE_ABOVE, FmaUnit, Limit, fma_rate
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

_SLICE_S = 0.25
_REPEATABLE = 0.03
"""The largest relative difference of times that count as alike."""


def _placement(machine: Machine, params: Params) -> tuple[int, ...]:
    return spread(machine, 1 if params["cores"] == "one" else len(machine.cpus_one_per_core))


def _units(machine: Machine, params: Params) -> list[FmaUnit | None]:
    """The FMA units of each thread's core; None if not in the table."""
    return [machine.fma_unit(cpu) for cpu in _placement(machine, params)]


def clocks_Hz(samples: Sequence[Sample], latencies_cycles: Sequence[float]) -> tuple[float, ...]:
    """The clock of each thread over a repeat, in Hz: the median over samples of the fastest of three readings.

    The readings of a sample are the FMA chains before and after it (latency x length / time) and the chain of additions
    (one cycle each). A disturbance can only make a chain look slower, so the fastest is the least disturbed.
    `latencies_cycles` is the FMA latency of each thread's core.
    """
    return tuple(
        median(
            max(
                sample.extra["chain_fmas"] * latency / min(sample.extra["chain_s"][thread]),
                sample.extra["add_ops"] / sample.extra["add_s"][thread],
            )
            for sample in samples
        )
        for thread, latency in enumerate(latencies_cycles)
    )


def _limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    """The sum over the threads, each with its measured clock and the FMA unit of its core."""
    threads = len(samples[0].extra["chain_s"])
    units = [unit for unit in _units(machine, params) if unit is not None and unit.latency_cycles is not None]
    if len(units) != threads:
        return Limit.unknown("flop/s", "the FMA units of this microarchitecture are not in the table")
    clocks = clocks_Hz(samples, [unit.latency_cycles or 0.0 for unit in units])
    used_bits = samples[0].extra.get("vector_bits")
    return fma_rate(
        [(clock, _as_used(unit, used_bits)) for clock, unit in zip(clocks, units, strict=True)],
        str(params["precision"]),
    )


def _as_used(unit: FmaUnit, used_bits: int | None) -> FmaUnit:
    """The unit at the program's vector width, if that is narrower (NEON on the pipes of a wide SVE).

    The limit is then that of such vectors. The table does not state how many of them a CPU issues per cycle (a core
    with one 512-bit pipe issues two of 256 bits), so it is no longer confirmed.
    """
    if used_bits is None or used_bits >= unit.vector_bits:
        return unit
    source = f"the program uses {used_bits} of {unit.vector_bits} bits; {unit.source}"
    return replace(unit, vector_bits=used_bits, source=source, confirmed=False)


def _fma_per_cycle(machine: Machine, params: Params, samples: Sequence[Sample]) -> float:
    """FMAs that each core starts in a cycle, cycles counted by the chain of additions; the median over samples."""
    bits = {"fp64": 64, "fp32": 32}[str(params["precision"])]

    def of(sample: Sample) -> float:
        cycles: float = sum(sample.extra["add_ops"] / time for time in sample.extra["add_s"]) * sample.elapsed_s
        lanes = float(sample.extra["vector_bits"]) / bits
        return sample.work["flops"] / (2 * lanes) / cycles

    return median(map(of, samples))


def _latency(machine: Machine, params: Params) -> float | None:
    """The FMA latency in cycles of the first thread's core, from the table, if confirmed: an assumed latency must not
    make a measurement invalid."""
    unit = _units(machine, params)[0]
    return unit.latency_cycles if unit is not None and unit.confirmed else None


def _measured_latency(machine: Machine, params: Params, samples: Sequence[Sample]) -> float | None:
    """The FMA latency in cycles, counted by the chain of additions (one cycle each); None if the table states none, or
    if the times of either chain are not repeatable.

    The fast decile of each chain is used: a busy hyperthread or an interrupt slows one of the two at a time. Where
    every reading of one chain is disturbed, their ratio says nothing about the processor. Threads on cores whose
    latency differs from the first one's are left out.
    """
    latency = _latency(machine, params)
    if latency is None:
        return None
    alike = [unit is not None and unit.latency_cycles == latency for unit in _units(machine, params)]
    fma_s = [
        min(pair) / sample.extra["chain_fmas"]
        for sample in samples
        for pair, counts in zip(sample.extra["chain_s"], alike, strict=False)
        if counts
    ]
    cycle_s = [
        time / sample.extra["add_ops"]
        for sample in samples
        for time, counts in zip(sample.extra["add_s"], alike, strict=False)
        if counts
    ]
    if not (_is_repeatable(fma_s) and _is_repeatable(cycle_s)):
        return None
    return _fast_decile(fma_s) / _fast_decile(cycle_s)


def _fast_decile(times: Sequence[float]) -> float:
    return sorted(times)[len(times) // 10]


def _is_repeatable(times: Sequence[float]) -> bool:
    """Whether a third of the readings, and at least two, agree with the fast decile: disturbances differ in length."""
    fast = _fast_decile(times)
    alike = sum(abs(time / fast - 1) <= _REPEATABLE for time in times)
    return alike >= max(2, len(times) // 3)


def _latency_bound(machine: Machine, params: Params) -> tuple[float, float]:
    """A latency is a whole number of cycles: the measured one must round to that of the table."""
    latency = _latency(machine, params) or 0.0
    return latency - 0.5, latency + 0.5


_PARAMETERS = (
    Parameter.choice("precision", "fp64", "floating-point precision", ("fp64", "fp32"), option="--precision"),
    Parameter.choice("cores", "all", "one core, or all cores at once", ("one", "all")),
)

BENCHMARK = Benchmark(
    name="cpu.peak",
    question="Do the cores reach the arithmetic rate that their clock and FMA units allow?",
    program=native_program(__file__, _PARAMETERS, ("--slice", str(_SLICE_S)), takes_turns=True),
    parameters=_PARAMETERS,
    figures=(rate("fma", "flop/s", "2 flop per FMA and vector lane", limit=_limit, role=Role.FMA_RATE),),
    checks=(
        Check(
            "state_mismatches",
            "accumulator lanes that differ, bit for bit, from a scalar replay of the same FMAs",
            zero,
        ),
        Check(
            "distinct_state",
            "share of lanes that differ from all others in addend or final value; equal ones could be computed once",
            between(0.99, 1.0),
        ),
        Check(
            "fma_per_cycle",
            "vector FMAs that a core starts per cycle; no core has more than four pipes",
            between(0.0, 4.0 * IMPOSSIBLE_ABOVE),
            _fma_per_cycle,
        ),
        Check(
            "fma_latency",
            "FMA latency, in cycles counted by a chain of additions; the limit uses the latency in the table",
            _latency_bound,
            _measured_latency,
        ),
    ),
    placement=_placement,
    trial=tuple({"precision": precision, "cores": cores} for precision in ("fp64", "fp32") for cores in ("one", "all")),
    estimate_s=lambda params: _SLICE_S + 0.1,
)
