"""MPI programs with a planted cause of lost time, under `seatrial profile`, with each MPI library."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from causes.case import BOTH, QUIET_ONLY, Bench, Case, Said, planted
from causes.libraries import LIBRARIES, Library, built
from causes.loads import passing_spinner, quota, spinners

HERE = Path(__file__).parent
SOURCE = HERE / "profiles.c"
MESSAGES, FILES = HERE / "profiles_messages.c", HERE / "profiles_files.c"
COLLECTIVES = HERE / "profiles_collectives.c"
NO_LOSS = frozenset({"computation", "startup"})
"""Where the time of a working program goes; startup is true of every short one."""


@dataclass(frozen=True)
class Planted:
    """A step of a program, and the causes that are right: one of `right` first, all of `together`. `cpus` restricts all
    ranks; `spins` names CPUs with a spinner, all the time or from and until `spins_s`; `quota` is a CPU quota of a
    control group. CPUs are counted among those that this process may use. `words` must be said. `allowed` are true
    besides."""

    name: str
    step: str
    right: frozenset[str] = frozenset()
    ranks: int = 2
    cpus: tuple[int, ...] = ()
    spins: tuple[int, ...] = ()
    spins_s: tuple[float, float] | None = None
    quota: float | None = None
    seconds: float | None = None
    is_quick: bool = False
    source: Path = SOURCE
    words: tuple[str, ...] = ()
    together: frozenset[str] = frozenset()
    allowed: frozenset[str] = frozenset()


COMPUTING = (
    Planted(
        "one rank computes four times as long",
        "imbalance",
        planted("imbalance"),
        is_quick=True,
        words=("Rank 1", "MPI_Allreduce at sum"),
    ),
    Planted("one rank computes longer, with messages", "imbalance-p2p", planted("imbalance"), words=("Rank 1",)),
    Planted("the root of a broadcast comes late", "slow-bcast-root", planted("imbalance"), words=("Rank 0",)),
    Planted("the root of a gather computes longer", "slow-gather-root", planted("imbalance"), words=("Rank 0",)),
    Planted("one rank of an all-to-all is slow", "slow-alltoall", planted("imbalance"), words=("Rank 1",)),
    Planted("one rank computes alone before MPI_Finalize", "late-finalize", planted("imbalance"), words=("Rank 1",)),
    Planted("another rank is late in each step", "turns", planted("late-at-collective")),
    Planted(
        "another rank has most of the work for a while",
        "moving-front",
        planted("late-at-collective"),
        words=("Another rank is late each time",),
    ),
    Planted("another rank is late at each MPI_Iallreduce", "iallreduce-turns", planted("late-at-collective")),
    Planted("rank 0 sleeps", "sleeping", planted("blocked-rank"), words=("Rank 0", "sleeps")),
    Planted(
        "one rank computes longer, and all exchange much",
        "imbalance-and-transfer",
        together=planted("imbalance", "transfer"),
    ),
)
CALLS = (
    Planted("8 B messages by the million", "message-rate", planted("message-rate", "latency"), is_quick=True),
    Planted("all-reduce in the inner loop", "small-collectives", planted("latency", "message-rate")),
    Planted("tiny MPI_Allgatherv in the inner loop", "tiny-allgatherv", planted("latency", "message-rate")),
    Planted("exchanges of 4 MiB", "transfer", planted("transfer")),
    Planted(
        "exchanges of the columns of a matrix",
        "strided",
        planted("packing", "transfer"),
        source=MESSAGES,
        words=("datatypes",),
    ),
    Planted(
        "messages that arrive before their receives",
        "unexpected",
        planted("late-in-call"),
        source=MESSAGES,
        words=("rank 1", "MPI_Recv"),
    ),
    Planted(
        "MPI_Test between small pieces of work", "asking", planted("polling"), source=MESSAGES, words=("MPI_Test",)
    ),
    Planted(
        "a sum of one number after each piece of work",
        "dot-products",
        planted("message-rate", "latency"),
        source=MESSAGES,
        words=("MPI_Allreduce",),
    ),
    Planted("a communicator for each step", "communicators", planted("communicators")),
    Planted("MPI-IO of 32 B", "tiny-accesses", planted("mpi-io"), source=FILES),
    Planted(
        "a reduction with a slow operation of the program's own",
        "slow-operation",
        planted("operation"),
        source=COLLECTIVES,
        words=("MPI_Op_create",),
    ),
    Planted("a table is broadcast in each step", "table", planted("transfer"), source=COLLECTIVES),
)
WAITING = (
    Planted("ranks compute in turn", "late-sender", planted("late-sender"), is_quick=True),
    Planted("the receiver comes late", "late-receiver", planted("late-receiver", "imbalance")),
    *(
        Planted(name, step, planted("late-sender"), source=MESSAGES)
        for name, step in (
            ("a token goes round", "token-ring"),
            ("a receive is polled with MPI_Test", "test-loop"),
            ("receives are polled in steps of 10 microseconds", "fine-test-loop"),
            ("messages are polled with MPI_Iprobe", "iprobe-loop"),
            ("MPI_Probe waits for a late sender", "probe"),
            ("MPI_Waitany waits for a late sender", "waitany"),
            ("a persistent receive waits for a late sender", "persistent"),
        )
    ),
    Planted("a pipeline", "pipeline", planted("late-sender", "late-at-collective"), source=MESSAGES),
    Planted(
        "a master that is slow", "slow-master", planted("imbalance", "late-sender"), source=MESSAGES, words=("Rank 0",)
    ),
    Planted(
        "a master that waits for its worker", "slow-workers", planted("imbalance"), source=MESSAGES, words=("Rank 1",)
    ),
    Planted(
        "a late receiver delays the sender for a collective",
        "held-sender",
        planted("late-receiver"),
        source=MESSAGES,
        words=("Rank 1", "receives messages late", "rank 0 waits for it"),
    ),
    Planted("receivers compute in turn", "late-receiver-in-turn", planted("late-receiver"), source=MESSAGES),
    Planted(
        "a halo exchange with an uneven load", "uneven-halo", planted("imbalance"), source=MESSAGES, words=("Rank 1",)
    ),
    Planted("an uneven load before MPI_Win_fence", "uneven-fence", planted("imbalance"), source=MESSAGES),
    Planted("work under a lock of a window", "locked", planted("window-wait"), source=MESSAGES),
    Planted("a counter in a window of a rank that computes", "counter", planted("window-wait"), source=MESSAGES),
    Planted(
        "a receiver that is late for large messages",
        "late-for-large",
        planted("late-receiver", "imbalance"),
        source=MESSAGES,
    ),
)
OUTSIDE = (
    Planted(
        "rank 0 writes and synchronises files",
        "serial-io",
        planted("serial-io"),
        is_quick=True,
        words=("Rank 0", "fsync"),
    ),
    Planted("rank 0 writes with fwrite", "buffered-serial", planted("serial-io"), source=FILES, words=("Rank 0",)),
    Planted("all ranks call fsync", "fsync-storm", planted("io", "serial-io"), source=FILES, words=("fsync",)),
    Planted("all ranks write", "write-storm", planted("io"), source=FILES),
    Planted("all ranks read one file", "read-storm", planted("io"), source=FILES),
    Planted("many small files", "many-files", planted("metadata"), source=FILES, words=("open",)),
    Planted(
        "output that is read slowly", "slow-pipe", planted("io", "serial-io"), source=FILES, words=("write",)
    ),  # each rank writes to its own reader: one may be slower for a while
    Planted("rank 0 compresses and writes", "compressed", planted("imbalance"), source=FILES, words=("Rank 0",)),
    Planted(
        "rank 0 runs another program",
        "child",
        planted("blocked-rank", "blocked"),
        source=FILES,
        words=("child processes",),
    ),
    Planted(
        "rank 0 reads what another program writes",
        "child-pipe",
        planted("blocked-rank", "blocked"),
        source=FILES,
        words=("child processes",),
    ),
    Planted(
        "ranks wait for a lock of a file",
        "locked-file",
        planted("blocked", "blocked-rank"),
        source=FILES,
        words=("locks of files",),
    ),
    Planted(
        "rank 0 writes a log without a buffer",
        "unbuffered",
        planted("other-processes", "no-cpu", "kernel-time", "imbalance"),
        source=FILES,
        words=("Rank 0 made", "reads and writes"),
    ),
    Planted("all ranks sleep", "all-sleep", planted("blocked"), source=FILES, words=("sleeps",)),
    Planted(
        "rank 0 writes, and ranks compute in turn",
        "io-and-late-sender",
        together=planted("serial-io", "late-sender"),
        source=FILES,
    ),
)
CPUS = (
    Planted("four ranks on two CPUs", "balanced", planted("more-ranks-than-cpus"), ranks=4, is_quick=True),
    Planted("four ranks on two CPUs that exchange", "transfer", planted("more-ranks-than-cpus"), ranks=4),
    Planted("both ranks on one CPU", "balanced", planted("ranks-on-the-same-cpus"), cpus=(0,)),
    Planted("a spinner on one CPU", "computing", planted("other-processes"), spins=(1,)),
    Planted(
        "a spinner on one CPU for 2 of 8 s",
        "balanced",
        planted("other-processes"),
        spins=(1,),
        spins_s=(3.0, 5.0),
        seconds=8.0,
        words=("after the start",),
    ),
    Planted(
        "a spinner on one CPU for 1.5 of 8 s, and rank 1 computes longer",
        "imbalance",
        together=planted("imbalance", "other-processes"),
        spins=(1,),
        spins_s=(3.0, 4.5),
        seconds=8.0,
        words=("Rank 1",),
    ),
    Planted("a quota of 0.6 CPUs", "balanced", planted("cpu-quota"), quota=0.6),
)
CONTROLS = (
    Planted("even work", "balanced", is_quick=True),
    Planted("mostly computation", "computing"),
    Planted("even work for longer", "balanced", seconds=6.0),
    Planted("a short run", "balanced", seconds=0.3),
    Planted(
        "even work, and a program that sleeps beside it", "balanced", spins=(1,), spins_s=(30.0, 31.0), seconds=8.0
    ),
    Planted("computation only", "compute-only"),
    Planted("a long computation with a broadcast", "one-bcast"),
    Planted("even work with a communicator that is kept", "kept-communicator"),
    Planted("even work, and a little MPI-IO of 1 MiB", "large-accesses", source=FILES),
    Planted("even work with MPI_Alltoall", "even-alltoall"),
    Planted("a reduction with a cheap operation of the program's own", "cheap-operation", source=COLLECTIVES),
    Planted("a broadcast of a few parameters", "parameters", source=COLLECTIVES),
    Planted("even work in memory", "memory-bound"),
    Planted("an even halo exchange", "even-halo", source=MESSAGES),
    Planted("messages on their way while ranks compute", "overlap", source=MESSAGES),
    Planted("MPI_Test after each 0.1 ms of work", "asking-rarely", source=MESSAGES),
    Planted("synchronous sends whose receivers are there", "even-ssend", source=MESSAGES),
    Planted("a thread writes while ranks compute", "overlapped", source=FILES),
    Planted("a line of a log in each step", "logging", source=FILES),
)
PLANTED = (*COMPUTING, *CALLS, *WAITING, *OUTSIDE, *CPUS, *CONTROLS)


def _cases() -> Iterator[Case]:
    """Every step with each library; and with measured waiting, which must not make it worse, on a quiet machine."""
    for library in LIBRARIES:
        for one in PLANTED:
            for wait in (False, True):
                yield Case(
                    "profiles",
                    one.name,
                    lambda bench, one=one, library=library, wait=wait: _profiled(bench, one, library, wait=wait),
                    right=one.right,
                    together=one.together,
                    words=one.words,
                    allowed=(NO_LOSS | one.allowed) - one.right,
                    variant=f"{library.name}, --wait 10" if wait else library.name,
                    loads=QUIET_ONLY if wait or one.spins or one.quota else BOTH,
                    is_quick=one.is_quick and not wait,
                    seconds=one.seconds,
                    needs_cpus=2,
                )


def _profiled(bench: Bench, one: Planted, library: Library, *, wait: bool) -> Said:
    command = [*library.launcher(one.ranks), str(built(library, one.source)), one.step, str(bench.seconds)]
    options = ["--wait", "10"] if wait else []
    if one.cpus:
        command = ["taskset", "-c", ",".join(str(bench.cpus[k]) for k in one.cpus), *command]
        if library.name == "Open MPI":
            command[command.index("-n") : command.index("-n")] = ["--bind-to", "none"]
    with contextlib.ExitStack() as stack:
        prefix = stack.enter_context(quota(one.quota)) if one.quota is not None else []
        if one.spins_s is None:
            stack.enter_context(spinners([bench.cpus[k] for k in one.spins]))
        else:
            for k in one.spins:
                stack.enter_context(passing_spinner(bench.cpus[k], *one.spins_s))
        document = bench.seatrial(
            "profile",
            *("--results", str(bench.folder / "results"), "--format", "json", *options),
            *("--", *prefix, *command),
        )
    diagnoses = document.get("diagnoses", [])
    causes = tuple((one["cause"], one["share"]) for one in diagnoses)
    return Said(causes, " ".join(one["said"] for one in diagnoses))


CASES = tuple(_cases())
