"""memory.latency: the time of a load whose address comes from the load before, over working sets from L1 to DRAM.

One repeat is one process that measures all working sets; each is a ring of pointers in random order, one per cache
line. Sizes start at 4 KiB, with `per_octave` equal steps per octave up to 256 MiB; the last is `largest_B`. There are
none between, because preparing one takes longer than measuring it.

Right before and after each sample, a chain of integer additions (one cycle each) measures the clock. A load of fewer
than two cycles is impossible: it did not wait for the load before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from seatrial.benchmarks import placement
from seatrial.benchmarks.figures import between, exactly, native_program, zero
from seatrial.model.benchmark.benchmark import Benchmark, Better, Check, Figure, Role, Skip
from seatrial.model.benchmark.parameter import CACHES_TIMES, Parameter, Params, beyond_caches_B, whole
from seatrial.model.benchmark.quotients import TimePerWork
from seatrial.model.machine.fact import sizing_memory_B
from seatrial.model.machine.limit import IMPOSSIBLE_ABOVE, Limit
from seatrial.model.machine.machine import DeviceKind, Machine
from seatrial.model.results.sample import Sample

_SMALLEST_B = 4096
"""In the first-level data cache of every core."""
_STEPS_UP_TO_B = 256 << 20
_LEAST_LARGEST_B = 64 << 20
"""Virtual machines may report smaller caches than they use."""
_LARGEST_WITHOUT_CACHES_B = 256 << 20
_LARGEST_UNASKED_B = 2 << 30
"""Keeps a repeat below three seconds."""
_LARGEST_OF_ALL_B = 1 << 37
_SHARE_OF_MEMORY = 8
"""At most this fraction of memory (1/8)."""
_LINE_B = 64
_SLICE_S = 0.4
_SAMPLES = 3
"""Samples that the program takes of each set, regardless of the time."""
_SAMPLE_S = 1.6e-3
"""Time of a sample: 1.2 ms, its chains, and its share of the calibration."""
_LINE_S = 60e-9
"""Time to prepare a line: find its position in the order, write and read it."""
_FIRST_TOUCH_BPS = 1e9
_LEAST_CYCLES = 2.0
"""No current core goes from load to dependent load in less; those of servers take four or five cycles."""


def working_sets(params: Params) -> tuple[int, ...]:
    """The sizes in bytes, ascending, of the sets that a resolved experiment measures; the last is `largest_B`."""
    largest, steps, line = whole(params["largest_B"]), whole(params["per_octave"]), whole(params["line_B"])
    sizes = {largest}
    octave = _SMALLEST_B
    while octave < min(largest, _STEPS_UP_TO_B):
        sizes |= {_whole_lines(octave + octave * step // steps, line) for step in range(steps)}
        octave *= 2
    return tuple(sorted(size for size in sizes if size <= largest))


def _whole_lines(size: int, line: int) -> int:
    return size // line * line


def _prepare(machine: Machine, params: Params) -> Params:
    placement.require_memory(machine, placement.node_of_memory(params))
    (cpu,) = _placement(machine, params)
    line = _line_size(machine, cpu) if params["line_B"] == "auto" else whole(params["line_B"])
    if line & (line - 1) or not 16 <= line <= _SMALLEST_B // 4:
        raise Skip(f"line_B={line} is not a power of two from 16 B to {_SMALLEST_B // 4} B")
    largest = params["largest_B"]
    size = _largest(machine, cpu) if largest == "auto" else _whole_lines(whole(largest), line)
    if size > _LARGEST_OF_ALL_B or size // line >= 1 << 32:
        raise Skip(f"a working set of {size} B is too large for the program")
    return {**params, "largest_B": size, "line_B": line}


def _largest(machine: Machine, cpu: int) -> int:
    least_B = beyond_caches_B(machine, [cpu])
    wanted = _LARGEST_WITHOUT_CACHES_B if least_B is None else max(least_B, _LEAST_LARGEST_B)
    memory = sizing_memory_B(machine.facts)
    most = wanted if memory is None else max(memory // _SHARE_OF_MEMORY, _SMALLEST_B)
    return _whole_lines(min(wanted, most, _LARGEST_UNASKED_B), _SMALLEST_B)


def _line_size(machine: Machine, cpu: int) -> int:
    """The longest line of the caches above a CPU, in bytes."""
    pu = machine.pus.get(cpu)
    above = () if pu is None else machine.ancestors(pu)
    sizes = [device.facts.integer("line_size") for device in above if device.kind is DeviceKind.CACHE]
    return max((size for size in sizes if size), default=_LINE_B)


def _placement(machine: Machine, params: Params) -> tuple[int, ...]:
    cpu, node = params["cpu"], placement.node_of_cpus(params)
    if cpu == "auto":
        return placement.spread(machine, 1, node)
    number = whole(cpu)
    if number not in machine.allowed_cpus:
        raise Skip(f"this process may not use CPU {number}")
    if node != "auto" and placement.numa_node(machine, number) != whole(node):
        raise Skip(f"CPU {number} is not on NUMA node {node}")
    return (number,)


def _arguments(params: Params) -> list[str]:
    return [*("--sizes", ",".join(map(str, working_sets(params)))), *("--slice", str(_SLICE_S))]


def _estimate_s(params: Params) -> float:
    sizes = working_sets(params)
    lines = sum(sizes) / whole(params["line_B"])
    prepared_s = lines * _LINE_S + sizes[-1] / _FIRST_TOUCH_BPS
    return 0.1 + max(_SLICE_S, len(sizes) * _SAMPLES * _SAMPLE_S) + prepared_s


_time_of_one_load = TimePerWork("ops")


def cycles(sample: Sample) -> float:
    """The cycles that one load took, counted by the less disturbed of the chains of additions beside the sample."""
    clock_Hz: float = sample.extra["add_ops"] / min(sample.extra["add_s"])
    return _time_of_one_load(sample) * clock_Hz


def _fewest_cycles(machine: Machine, params: Params, samples: Sequence[Sample]) -> float | None:
    """The cycles of a load in the working set where they are fewest; of each set, the median over its samples."""
    sets: dict[object, list[float]] = {}
    for sample in samples:
        sets.setdefault(sample.point["working_set_B"], []).append(cycles(sample))
    return min(map(median, sets.values()), default=None)


def _sets_measured(machine: Machine, params: Params, samples: Sequence[Sample]) -> float:
    """The requested working sets that have samples, less those with samples that were not requested."""
    wanted, found = set(working_sets(params)), {sample.point["working_set_B"] for sample in samples}
    return len(wanted & found) - len(found - wanted)


def _no_limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    return Limit.unknown("s", "no formula predicts the latency of a cache or of memory; compare levels and machines")


_PARAMETERS = (
    Parameter.integer("cpu", "auto", "CPU that runs the loads; auto: the first one"),
    placement.NODE,
    placement.MEMORY,
    placement.HUGE_PAGES,
    Parameter.size(
        "largest_B",
        "auto",
        f"largest working set; auto: {CACHES_TIMES} x the last-level cache, at most 1/{_SHARE_OF_MEMORY} of memory",
        minimum=_SMALLEST_B,
    ),
    Parameter.integer("per_octave", 2, "working sets per doubling of the size", minimum=1),
    Parameter.size(
        "line_B", "auto", "distance between pointers; auto: the longest cache line", minimum=16, option="--line-bytes"
    ),
)

BENCHMARK = Benchmark(
    name="memory.latency",
    question="What is the load latency of each cache level and of memory?",
    program=native_program(__file__, _PARAMETERS, _arguments),
    parameters=_PARAMETERS,
    figures=(
        Figure(
            "load",
            "s",
            Better.LOWER,
            _time_of_one_load,
            "one load, whose address comes from the load before",
            limit=_no_limit,
            role=Role.LOAD_LATENCY,
        ),
    ),
    checks=(
        Check("broken_links", "pointers that leave the ring or lead to a line visited before", zero),
        Check("lost_loads", "samples that did not end where the counted loads lead", zero),
        Check(
            "predictable_steps",
            "share of steps that a prefetcher could predict: as long as the one before, or at most 8 lines",
            between(0.0, 0.05),
        ),
        Check("moved_thread", "whether the thread was found off its CPU", zero),
        Check(
            "sets_measured",
            "requested working sets that have samples",
            exactly(lambda params: len(working_sets(params))),
            _sets_measured,
        ),
        Check(
            "fewest_cycles",
            "cycles of the fastest load; with fewer, it did not wait for the load before",
            between(_LEAST_CYCLES / IMPOSSIBLE_ABOVE, math.inf),
            _fewest_cycles,
        ),
        placement.pages_check(_placement),
    ),
    placement=_placement,
    prepare=_prepare,
    trial=({},),
    estimate_s=_estimate_s,
)
