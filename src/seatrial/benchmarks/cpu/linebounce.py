"""cpu.linebounce: how long one cache line takes from one core to another.

Pairs of cores take turns at writing one line: no message between two ranks on a node can be faster. A machine with 384
cores has 73,536 pairs, so beyond 16 cores a sample of them is measured. `pairs` is their number and determines which:
the first of `pairs_by_spread`. So a larger sample contains the smaller ones, and equal numbers select the same pairs on
machines of one model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from math import gcd
from pathlib import Path

from seatrial.benchmarks.figures import duration, exactly, zero
from seatrial.benchmarks.placement import THREADS, spread, thread_count
from seatrial.model.benchmark.benchmark import Benchmark, Check, Native, Role, Skip
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.machine.machine import Device, Machine
from seatrial.model.results.sample import Sample

Pair = tuple[int, int]

_SLICE_S = 0.25
_SAMPLE_S = 1.1e-3
"""Time of one sample in the program: a millisecond of trips, and waking the two threads."""
_LEAST_ROUNDS = 3
"""Samples that the program takes of each pair, regardless of the time."""
_ENOUGH = 120
"""Pairs in a sample: those of 16 cores."""
_ENOUGH_OF_A_KIND = 8
"""Pairs in a sample at each distance, if there are that many."""
_MOST_NAMED = 10_000
"""Pairs that fit in one argument of a command (Linux: 128 KiB)."""


@cache
def pairs_by_spread(count: int) -> tuple[Pair, ...]:
    """All pairs (a, b), a < b, of `count` threads, ordered such that any prefix is spread over all distances.

    Threads are in order of position, so b - a reflects their distance in the machine. Pairs with b - a in [1, 2), [2,
    4), [4, 8), ... alternate, and each of these scales is traversed in steps of about the golden section of its length,
    which spreads any number of steps evenly (the three-distance theorem of V. T. Sós, 1958).
    """
    scales: list[Iterator[Pair]] = []
    nearest = 1
    while nearest < count:
        farthest = min(2 * nearest, count)
        scale = [(a, b) for a in range(count) for b in range(a + nearest, min(a + farthest, count))]
        scales.append(_in_golden_steps(scale))
        nearest = farthest
    ordered: list[Pair] = []
    while scales:
        turn = [(scale, next(scale, None)) for scale in scales]
        ordered += [pair for _, pair in turn if pair is not None]
        scales = [scale for scale, pair in turn if pair is not None]
    return tuple(ordered)


def _in_golden_steps(items: Sequence[Pair]) -> Iterator[Pair]:
    """Every item once."""
    length = len(items)
    step = round(0.618034 * length)
    while gcd(step, length) != 1:
        step += 1
    return (items[k * step % length] for k in range(length))


def _all_pairs(threads: int) -> int:
    return threads * (threads - 1) // 2


def chosen_pairs(params: Params) -> tuple[Pair, ...]:
    """The pairs that a resolved experiment measures, as indices into its placement."""
    return pairs_by_spread(whole(params["threads"]))[: whole(params["pairs"])]


def _branch(machine: Machine, cpu: int) -> tuple[Device, ...]:
    """The devices that contain a CPU, from the package down to the CPU itself; empty if unknown."""
    pu = machine.pus.get(cpu)
    return () if pu is None else (*reversed(tuple(machine.ancestors(pu))), pu)


def _innermost_shared(one: Sequence[Device], other: Sequence[Device]) -> str:
    shared = None
    for device, counterpart in zip(one, other, strict=False):
        if device.id != counterpart.id:
            break
        shared = device
    if shared is None:
        return "machine"
    level = shared.facts.integer("level")
    return shared.kind.value if level is None else f"{shared.kind.value} L{level}"


def distance(machine: Machine, cpu_a: int, cpu_b: int) -> str:
    """The innermost level that two CPUs share, such as "core", "cache L2", "cache L3", "package" or "machine"."""
    return _innermost_shared(_branch(machine, cpu_a), _branch(machine, cpu_b))


def _sample_size(machine: Machine, cpus: Sequence[int]) -> int:
    """The least number of pairs that is enough, both in total and at each distance of this machine."""
    branches = [_branch(machine, cpu) for cpu in cpus]
    distances = [_innermost_shared(branches[a], branches[b]) for a, b in pairs_by_spread(len(cpus))]
    wanted = {kind: min(there, _ENOUGH_OF_A_KIND) for kind, there in Counter(distances).items()}
    size = min(_ENOUGH, len(distances))
    held = Counter(distances[:size])
    while any(held[kind] < least for kind, least in wanted.items()):
        held[distances[size]] += 1
        size += 1
    return size


def _in_order_of_place(machine: Machine, threads: int) -> tuple[int, ...]:
    """The CPUs of the threads in order of their position in the machine: firmware may number CPUs alternately over the
    sockets."""
    position = {device.id: number for number, device in enumerate(machine.devices)}
    return tuple(
        sorted(
            spread(machine, threads), key=lambda cpu: ([position[device.id] for device in _branch(machine, cpu)], cpu)
        )
    )


def _prepare(machine: Machine, params: Params) -> Params:
    threads = thread_count(machine, params["threads"])
    if threads < 2:
        raise Skip("a cache line bounces between two cores; this process may use one")
    match params["pairs"]:
        case "all":
            pairs = _all_pairs(threads)
        case "auto":
            pairs = _sample_size(machine, _in_order_of_place(machine, threads))
        case number:
            pairs = whole(number)
    if pairs > _all_pairs(threads):
        raise Skip(f"{threads} threads have {_all_pairs(threads)} pairs, not {pairs}")
    if _MOST_NAMED < pairs < _all_pairs(threads):
        raise Skip(f"at most {_MOST_NAMED} pairs can be selected; pairs=all measures all of them")
    return {**params, "threads": threads, "pairs": pairs}


def _placement(machine: Machine, params: Params) -> tuple[int, ...]:
    return _in_order_of_place(machine, whole(params["threads"]))


def _arguments(params: Params) -> list[str]:
    arguments = ["--slice", str(_SLICE_S)]
    if whole(params["pairs"]) < _all_pairs(whole(params["threads"])):
        arguments += ["--pairs", ",".join(f"{a}-{b}" for a, b in chosen_pairs(params))]
    return arguments


def _estimate_s(params: Params) -> float:
    """Rounds until the slice is over, after a calibration round."""
    a_round = whole(params["pairs"]) * _SAMPLE_S
    return 0.1 + a_round + max(_SLICE_S + a_round, _LEAST_ROUNDS * a_round)


def _pairs_measured(machine: Machine, params: Params, samples: Sequence[Sample]) -> float:
    """The requested pairs that have samples, less the pairs with samples that were not requested."""
    cpus = _placement(machine, params)
    wanted = {(cpus[a], cpus[b]) for a, b in chosen_pairs(params)}
    found = {(sample.point["cpu_a"], sample.point["cpu_b"]) for sample in samples}
    return len(wanted & found) - len(found - wanted)


BENCHMARK = Benchmark(
    name="cpu.linebounce",
    question="How long does a cache line take from one core to another?",
    program=Native(Path(__file__).with_suffix(".cpp"), _arguments, takes_turns=True),
    parameters=(
        THREADS,
        Parameter.integer(
            "pairs",
            "auto",
            f"pairs of threads to measure; auto: all up to 16 cores, else at least {_ENOUGH} spread over all distances",
            ("auto", "all"),
            minimum=1,
        ),
    ),
    figures=(duration("one_way", "one trip of the line, half a round trip", "ops", role=Role.LINE_BOUNCE),),
    checks=(
        Check("lost_updates", "lost or out-of-order trips", zero),
        Check("moved_threads", "threads found off their CPU before a sample", zero),
        Check("pairs_measured", "requested pairs that have samples", exactly("pairs"), _pairs_measured),
    ),
    placement=_placement,
    prepare=_prepare,
    trial=({},),
    estimate_s=_estimate_s,
)
