"""memory.gups: random memory updates per second.

The rules are those of RandomAccess in the HPC Challenge (P. Luszczek et al., "Introduction to the HPC Challenge
Benchmark Suite", 2005): a table of 64-bit words whose number is a power of two, updates at random positions, and at
most 1 % wrong words at the end, because threads update the same table without locks. One thing differs: HPCC's table
fills half of memory; here it is just beyond the caches, so that a repeat takes seconds on a machine with terabytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.benchmarks.figures import between, exactly, native_program, rate, zero
from seatrial.benchmarks.placement import HUGE_PAGES, NODE, THREADS, node_of_cpus, spread, thread_count
from seatrial.model.benchmark.benchmark import Benchmark, Check, Skip
from seatrial.model.benchmark.parameter import CACHES_TIMES, Parameter, Params, beyond_caches_B, whole
from seatrial.model.machine.fact import sizing_memory_B
from seatrial.model.machine.limit import Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

_WORD_B = 8
_LEAST_TABLE_B = 4096
_TIMES_BEYOND_CACHES = 2
"""The table is at least this many times what is just beyond the last-level caches of the threads: at most one update
in eight then hits a cache."""
_LEAST_AUTO_B = 256 << 20
"""Virtual machines may report smaller caches than they use."""
_SHARE_OF_MEMORY = 8
"""At most this fraction of memory (1/8)."""
_UPDATES = 1 << 17
"""Per thread and sample: about a millisecond."""
_SLICE_S = 0.25
_FIRST_TOUCH_BPS = 1e9
_ATOMIC_TIMES = 4
"""Time of the verifying updates over that of the timed ones."""


def _prepare(machine: Machine, params: Params) -> Params:
    threads = thread_count(machine, params["threads"], node_of_cpus(params))
    asked = params["table_B"]
    size = _auto_table(machine, spread(machine, threads, node_of_cpus(params))) if asked == "auto" else whole(asked)
    if size & (size - 1):
        raise Skip(f"a table of {size} B is not a power of two")
    return {**params, "threads": threads, "table_B": size}


def _auto_table(machine: Machine, cpus: Sequence[int]) -> int:
    wanted = max(_LEAST_AUTO_B, _TIMES_BEYOND_CACHES * (beyond_caches_B(machine, cpus) or 0))
    memory = sizing_memory_B(machine.facts)
    size = 1 << (wanted - 1).bit_length()
    while memory is not None and size > max(memory // _SHARE_OF_MEMORY, _LEAST_TABLE_B):
        size //= 2
    return size


def _arguments(params: Params) -> list[str]:
    return [
        *("--table-words", str(whole(params["table_B"]) // _WORD_B)),
        *("--updates", str(_UPDATES)),
        *("--slice", str(_SLICE_S)),
    ]


def _counted(machine: Machine, params: Params, samples: Sequence[Sample]) -> float | None:
    """The updates that a sample counts over the expected ones, of the sample with the largest deviation."""
    shares = (sample.work["ops"] / (_UPDATES * whole(params["threads"])) for sample in samples)
    return max(shares, key=lambda share: abs(share - 1.0), default=None)


def _no_limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    return Limit.unknown("op/s", "no formula predicts the rate of random updates; compare machines and page sizes")


_PARAMETERS = (
    THREADS,
    NODE,
    HUGE_PAGES,
    Parameter.size(
        "table_B",
        "auto",
        f"table size, a power of two; auto: {_TIMES_BEYOND_CACHES * CACHES_TIMES} x the last-level caches, at "
        f"least 256 MiB, at most 1/{_SHARE_OF_MEMORY} of memory",
        minimum=_LEAST_TABLE_B,
    ),
)

BENCHMARK = Benchmark(
    name="memory.gups",
    question="How many random memory updates per second are possible?",
    program=native_program(__file__, _PARAMETERS, _arguments),
    parameters=_PARAMETERS,
    figures=(rate("updates", "op/s", "one update: read, modify and write a word", series="update", limit=_no_limit),),
    checks=(
        Check(
            "lost_updates",
            "share of words not restored when the same updates are applied a second time",
            between(0.0, 0.01),
        ),
        Check("words_reached", "words changed, over the number expected for as many random updates", between(0.9, 1.1)),
        Check("moved_threads", "threads found off their CPU", zero),
        Check(
            "counted_updates",
            "updates counted by a sample, over those of its threads",
            exactly(lambda params: 1.0),
            _counted,
        ),
    ),
    placement=lambda machine, params: spread(machine, whole(params["threads"]), node_of_cpus(params)),
    prepare=_prepare,
    trial=({},),
    estimate_s=lambda params: 0.1 + whole(params["table_B"]) / _FIRST_TOUCH_BPS + _SLICE_S * (1 + _ATOMIC_TIMES),
)
