"""container.start: how long a container takes until a program runs in it.

The program of the benchmark runs outside. It starts the runtime with a static program of a few instructions, whose
first ones read the clock (CLOCK_MONOTONIC, which containers share) and write it to the standard output. The time is
from the call that starts the runtime to that reading; with `at_once` containers, from the first call to the last
reading. In turns with it, the same program is started without a container: `bare_start`.

With `cache: cold`, the pages of the image's files and of the static program are dropped before each start
(posix_fadvise(2), POSIX_FADV_DONTNEED), and what stays is counted (mincore(2)), which a check bounds. The runtime's own
files and the names of files (directory entries, inodes) stay in memory: only root can drop these, for the whole
machine. If over a tenth of the image's pages stay in memory, the experiment is skipped: they are in tmpfs, mapped by a
running program, or of another user (whose pages mincore(2) reports as resident).
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.benchmarks.figures import between, duration, exactly, native_program
from seatrial.benchmarks.placement import NODE, node_of_cpus, spread
from seatrial.model.benchmark.benchmark import Benchmark, Check, Role
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

_START_S = 1.0
"""The longest usual start of one container: podman's on a small machine."""


def _image_in_memory(machine: Machine, params: Params, samples: Sequence[Sample]) -> float | None:
    """The largest share before any start; None for warm starts, where any is right."""
    if params["cache"] != "cold":
        return None
    return max(float(sample.extra["image_in_memory"]) for sample in samples)


_PARAMETERS = (
    Parameter.choice(
        "cache",
        "warm",
        "whether the image's files are in memory; cold: they are dropped before each start",
        ("warm", "cold"),
        option="--cache",
    ),
    Parameter.integer("at_once", 1, "containers that are started at the same time", minimum=1, option="--at-once"),
    NODE,
)

BENCHMARK = Benchmark(
    name="container.start",
    question="How long does a container take until a program runs in it?",
    program=native_program(__file__, _PARAMETERS, starts_containers=True),
    parameters=_PARAMETERS,
    figures=(
        duration(
            "start",
            "from the call that starts the runtime to the first instruction inside, of the last container",
            role=Role.PROGRAM_START,
        ),
        duration("bare_start", "the same program started without a container", series="bare", is_secondary=True),
    ),
    checks=(
        Check(
            "clock_in_order",
            "share of starts whose first instruction is after the call that starts it and before its end",
            exactly(1.0),
        ),
        Check(
            "image_in_memory",
            "share of the image's pages that are in memory just before a cold start",
            between(0.0, 0.1),
            _image_in_memory,
        ),
    ),
    placement=lambda machine, params: spread(machine, len(machine.allowed_cpus), node_of_cpus(params)),  # may use all
    estimate_s=lambda params: _START_S * (1 + whole(params["at_once"])),
)
