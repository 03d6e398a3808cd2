"""MPI programs whose cause has its own remedy, and controls like them, under `seatrial profile` with each MPI library:
calls that do not communicate, epochs, many requests, memory, the kernel, operations of the program, its children and
threads, missing CPUs beside what is counted, a neighbour that comes again and again, and CPUs of unequal speed.

A cause counts as named in the first or second row. A CPU is made slower by emulating the instructions of its rank
(qemu-user): the program, its work and its calls are the same.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from causes.case import QUIET_ONLY, Bench, Case, Said, Skip, planted
from causes.libraries import LIBRARIES, Library, built
from causes.loads import recurring_spinner
from causes.profiles import NO_LOSS

SOURCE = Path(__file__).with_name("profiles_kinds.c")
ROWS = 2
EMULATOR = "qemu-x86_64"


@dataclass(frozen=True)
class Kind:
    """A step, and the causes that are right: one of `right` in the first rows, all of `together` anywhere. `words` must
    be said. `allowed` are true besides. `emulated` ranks have a slow CPU; `every_s`: a neighbour on one CPU for a fifth
    of each such time."""

    name: str
    step: str
    right: frozenset[str] = frozenset()
    together: frozenset[str] = frozenset()
    words: tuple[str, ...] = ()
    allowed: frozenset[str] = frozenset()
    ranks: int = 2
    seconds: float | None = None
    emulated: bool = False
    every_s: float = 0.0


CROWD = "more-ranks-than-cpus"
KINDS = (
    Kind("each element is packed by its own call", "pack-elements", planted("local-calls"), words=("MPI_Pack",)),
    Kind("each element is unpacked by its own call", "unpack-elements", planted("local-calls"), words=("MPI_Unpack",)),
    Kind("a fence for each element", "fence-elements", planted("message-rate"), words=("MPI_Win_fence",)),
    Kind("a window for each step", "windows", planted("communicators"), words=("MPI_Win_",)),
    Kind("thousands of requests, one by one", "many-requests", planted("many-requests"), words=("MPI_Waitany",)),
    Kind("the number of ranks is asked all the time", "ask-size", planted("local-calls"), words=("MPI_Comm_size",)),
    Kind("datatypes for each message", "datatypes", planted("local-calls"), words=("MPI_Type_",)),
    Kind("memory is mapped for each step", "fresh-memory", planted("page-faults")),
    Kind("random numbers of the kernel", "random-numbers", planted("kernel-time"), words=("getrandom",)),
    Kind("a rank waits in a loop for a flag of another", "flag", planted("waiting-loop"), words=("only waits",)),
    Kind("a reduction to the root by a slow operation", "reduce-to-root", planted("operation")),
    Kind("a large reduction by a slow operation", "reduce-large", planted("operation")),
    Kind("the ranks wait for programs that they run", "child-waited", planted("blocked"), words=("child processes",)),
    Kind(
        "programs of the ranks run while they compute",
        "child-beside",
        planted("child-processes", CROWD),
        words=("programs that the ranks started",),
    ),
    Kind(
        "one rank waits for its thread", "join-on-one", planted("blocked-rank", "blocked"), words=("its own threads",)
    ),
    Kind("all ranks wait for a thread", "wait-for-server", planted("blocked"), words=("its own threads",)),
    Kind(
        "messages that have arrived are taken the latest first, after computing",
        "latest-first",
        planted("late-in-call"),
        words=("MPI_Recv",),
    ),
    Kind(
        "messages of both ranks have arrived, and are taken in another order",
        "shuffled",
        planted("slow-receives"),
        words=("MPI_Recv", "not waiting for a late rank"),
    ),
    Kind("one rank sorts more", "sort", planted("imbalance"), words=("more work",)),
    Kind("ranks wait for a lock for half of the time", "lock-in-turn", planted("blocked", "blocked-rank")),
    Kind("files are renamed all the time", "rename-files", planted("metadata")),
    Kind("small messages of four ranks on two CPUs", "ping", together=planted(CROWD, "message-rate"), ranks=4),
    Kind("fresh memory of four ranks on two CPUs", "fresh-memory", together=planted(CROWD, "page-faults"), ranks=4),
    Kind("pieces of files of four ranks on two CPUs", "write-pieces", together=planted(CROWD, "mpi-io"), ranks=4),
    Kind(
        "a neighbour for 0.6 s of every 3 s",
        "even",
        planted("other-processes"),
        words=("apart",),
        seconds=15.0,
        every_s=3.0,
    ),
    Kind("a rank on a slow CPU", "even", planted("slow-cpu"), words=("its CPU is slower",), emulated=True),
    Kind("arrays are packed by one call", "pack-arrays"),
    Kind("many messages in the order of sending", "in-order", allowed=frozenset({"message-rate"})),
    Kind("one epoch for all elements", "fence-arrays"),
    Kind("a few requests, one by one", "few-requests"),
    Kind("memory that is kept", "kept-memory"),
    Kind("an operation that is hardly used", "reduce-rarely"),
    Kind("a worker computes while the rank waits for a semaphore", "by-worker"),
    Kind("threads compute while the rank waits for them", "by-threads"),
    Kind("even work", "even", seconds=6.0),
    Kind(
        "even work on CPUs of unequal speed",
        "even-neighbours",
        allowed=frozenset({"slow-cpu", "transfer", "latency"}),
        emulated=True,
    ),
)


def _profiled(bench: Bench, one: Kind, library: Library) -> Said:
    program = [str(built(library, SOURCE)), one.step, str(bench.seconds)]
    command = [*library.launcher(one.ranks), *program]
    if one.emulated:
        if shutil.which(EMULATOR) is None:
            raise Skip(f"{EMULATOR} not found")
        command = [*library.launcher(1), *program, ":", "-n", "1", EMULATOR, *program]
    with contextlib.ExitStack() as stack:
        if one.every_s:
            stack.enter_context(recurring_spinner(bench.cpus[-1], one.every_s / 5, one.every_s))
        options = ("--results", str(bench.folder / "results"), "--format", "json")
        document = bench.seatrial("profile", *options, "--", *command)
    diagnoses = document.get("diagnoses", [])
    causes = tuple((each["cause"], each["share"]) for each in diagnoses)
    return Said(causes, " ".join(each["said"] for each in diagnoses))


def _cases() -> Iterator[Case]:
    for library in LIBRARIES:
        for one in KINDS:
            yield Case(
                "kinds",
                one.name,
                lambda bench, one=one, library=library: _profiled(bench, one, library),
                right=one.right,
                together=one.together,
                words=one.words,
                allowed=(NO_LOSS | one.allowed) - one.right,
                variant=library.name,
                loads=QUIET_ONLY,
                seconds=one.seconds,
                needs_cpus=2,
                rows=ROWS,
            )


CASES = tuple(_cases())
