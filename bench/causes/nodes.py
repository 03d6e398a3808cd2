"""What a node computes with: memory, arithmetic, threads, under `seatrial profile`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from causes.case import BOTH, QUIET_ONLY, Bench, Case, Said, Skip, planted
from causes.libraries import LIBRARIES, Library, built

SOURCE = Path(__file__).with_name("nodes.c")
NO_LOSS = frozenset({"computation", "startup"})
UNIT = Path("/sys/bus/event_source/devices/cpu")


@dataclass(frozen=True)
class Planted:
    """A step of the program with a number of ranks and of threads in each, and the causes that are right. `options` are
    of `seatrial profile`; `measures`: benchmarks whose limits are measured first; `needs_unit`: the case needs hardware
    counters."""

    name: str
    step: str
    right: frozenset[str] = frozenset()
    ranks: int = 1
    threads: int = 1
    options: tuple[str, ...] = ()
    measures: str = ""
    needs_unit: bool = False
    allowed: frozenset[str] = frozenset()
    """True causes besides."""


PLANTED = (
    Planted("threads with uneven shares", "threads-uneven", planted("thread-imbalance"), 1, 2, ("--openmp",)),
    Planted("the same with shares that a schedule evens out", "threads-dynamic", threads=2, options=("--openmp",)),
    Planted("threads with even shares", "threads-even", threads=2, options=("--openmp",)),
    Planted(
        "a thousand short parallel regions",
        "threads-short",
        threads=2,
        options=("--openmp",),
        allowed=planted("kernel-time"),  # to wake threads
    ),
    Planted("a rank waits for pages of a mapped file", "paging", planted("paging"), 2),
    Planted("a mapped file that is in memory", "mapped", ranks=2, allowed=planted("io")),  # it writes the file first
    Planted("an array is allocated in each step", "allocations", planted("page-faults"), 2),
    Planted("an array is kept for all steps", "kept", ranks=2),
    Planted("memory that is touched once", "touched-once", ranks=2),
    Planted(
        "a triad in memory", "triad", planted("memory-bound"), 2, 1, ("--counters",), "memory.stream", needs_unit=True
    ),
    Planted(
        "chains of multiplications",
        "arithmetic",
        planted("compute-bound"),
        2,
        1,
        ("--counters",),
        "cpu.peak",
        needs_unit=True,
    ),
    # Without counters nothing is known of what computing is bound by, and nothing may be said.
    Planted("a triad in memory, without counters", "triad", ranks=2),
    Planted("chains of multiplications, without counters", "arithmetic", ranks=2),
)


def _cases() -> Iterator[Case]:
    for library in LIBRARIES:
        for one in PLANTED:
            yield Case(
                "nodes",
                one.name,
                lambda bench, one=one, library=library: _profiled(bench, one, library),
                right=one.right,
                allowed=(NO_LOSS | one.allowed) - one.right,
                variant=library.name,
                loads=QUIET_ONLY if one.measures else BOTH,
                needs_cpus=2,
            )


def _profiled(bench: Bench, one: Planted, library: Library) -> Said:
    if one.needs_unit and not UNIT.exists():
        raise Skip("the kernel has no unit with hardware counters")
    program = built(library, SOURCE, "-fopenmp", compiler="clang")
    command = [*library.launcher(one.ranks), str(program), one.step, str(bench.seconds)]
    if library.name == "Open MPI" and one.threads > 1:
        command[command.index("-n") : command.index("-n")] = ["--bind-to", "none"]
    results = str(bench.folder / "results")
    if one.measures:
        bench.seatrial("run", one.measures, "--results", results, "--format", "json")
    threads = ("env", f"OMP_NUM_THREADS={one.threads}", "KMP_BLOCKTIME=0")
    document = bench.seatrial(
        "profile", "--results", results, "--format", "json", *one.options, "--", *threads, *command
    )
    diagnoses = document.get("diagnoses", [])
    causes = tuple((found["cause"], found["share"]) for found in diagnoses)
    return Said(causes, " ".join(found["said"] for found in diagnoses))


CASES = tuple(_cases())
