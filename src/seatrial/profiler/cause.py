"""A diagnosis as a value. Sentences are made from it in `report/profile/diagnosis_words.py`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Annotated

from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import Count, Key, Keywords, Later, NonNegative, Number, ShareOrNaN


class Frame(Frozen):
    """A position in a source file: `file` is "" and `line` 0 if the program has no debug information for it."""

    function: str
    file: str = ""
    line: int = 0


class Caller(Frozen):
    """One call on the way to a call of MPI: the return address, as `offset` in the file `module`, or a line of Python,
    which has only `frames`. These go from the innermost (perhaps inlined) function outwards; empty if no symbol is
    known."""

    module: str = ""
    offset: int = 0
    frames: tuple[Frame, ...] = ()


_FOR_OTHERS = re.compile(
    r"lib(petsc|slepc|hdf5|netcdf|pnetcdf|adios2|scalapack|fftw3|superlu_dist|HYPRE|parmetis|ptscotch|"
    r"mpi|pmpi|mpich|mpifort|mpicxx|mpichf90|mpichcxx|mpicxx|oshmem|ffi|boost_mpi|MPItrampoline)[^/]*\.so.*"
    r"|MPI\..*\.so|_ctypes\..*\.so|_cffi_backend\..*\.so|(_?h5py|defs|h5\w*)\.(cpython|abi3).*\.so|PETSc\..*\.so"
)
"""Files of libraries and language bindings that call MPI for the code that calls them."""


def is_for_others(module: str) -> bool:
    """Whether this file is a library that calls MPI for others, by its name."""
    return _FOR_OTHERS.fullmatch(PurePosixPath(module).name) is not None


def shown_of(path: Sequence[Caller]) -> int:
    """The index of the innermost call outside of libraries that call MPI for others; 0 if all are inside."""
    return next((k for k, one in enumerate(path) if not (one.module and is_for_others(one.module))), 0)


Resolve = Callable[[str, Sequence[int]], Mapping[int, tuple[Frame, ...]]]
"""(file, return addresses as offsets in it) -> the frames of the known addresses."""


def no_symbols(module: str, offsets: Sequence[int]) -> Mapping[int, tuple[Frame, ...]]:
    """Leave call sites as file and offset."""
    return {}


class CallSite(Frozen):
    """One call site of one MPI function. `offset` is the return address in the file `module`.

    `frames` go from the innermost (perhaps inlined) function outwards; empty if no symbol is known. `ranks` is the
    number of ranks that called from here. `module` is "" if the call site is a line of Python, if the address is in no
    mapped file, or if it was dropped. `path` are the calls that led here, innermost first, including the call site;
    empty if only that is known. If the innermost ones are in libraries that call MPI for others, the call site is the
    first one outside of them.
    """

    call: Annotated[str, Keywords(pattern="^(MPIX?_.*)?$"), '"" for a parallel region']
    module: str
    offset: int
    count: Count
    time_s: NonNegative
    bytes: Count
    ranks: Annotated[Count, "how many of them called here"]
    frames: tuple[Frame, ...] = ()
    path: tuple[Caller, ...] = ()


class Cause(StrEnum):
    """What takes the time. The first seven: ranks were ready to run, but had no CPU."""

    MORE_RANKS_THAN_CPUS = "more-ranks-than-cpus"
    SAME_CPUS = "ranks-on-the-same-cpus"
    CPU_QUOTA = "cpu-quota"
    STEAL = "steal"
    OTHER_PROCESSES = "other-processes"
    CHILD_PROCESSES = "child-processes"  # of the ranks themselves
    NO_CPU = "no-cpu"
    IMBALANCE = "imbalance"
    SLOW_CPU = "slow-cpu"  # A rank with as much work as the others takes longer for it.
    IDLE_RANK = "idle-rank"
    SERIAL_IO = "serial-io"
    BLOCKED_RANK = "blocked-rank"
    LATE_SENDER = "late-sender"
    LATE_RECEIVER = "late-receiver"
    LATE_AT_COLLECTIVE = "late-at-collective"
    LATE_IN_CALL = "late-in-call"
    SLOW_RECEIVES = "slow-receives"  # Of small messages, although no rank is late.
    SLOW_COLLECTIVE = "slow-collective"
    OPERATION = "operation"  # A reduction operation of the program computes.
    WINDOW_WAIT = "window-wait"
    IO = "io"
    METADATA = "metadata"
    BLOCKED = "blocked"
    WAITING_LOOP = "waiting-loop"  # A loop of the program that only waits, outside MPI.
    MESSAGE_RATE = "message-rate"
    LOCAL_CALLS = "local-calls"  # Calls that neither communicate nor wait: packing, datatypes, the clock.
    MANY_REQUESTS = "many-requests"  # A call looks through many requests to complete one.
    POLLING = "polling"  # A program asks again and again if something is complete, and does other work between.
    LATENCY = "latency"
    TRANSFER = "transfer"
    PACKING = "packing"
    COMMUNICATORS = "communicators"
    MPI_IO = "mpi-io"
    THREAD_IMBALANCE = "thread-imbalance"
    PAGING = "paging"
    PAGE_FAULTS = "page-faults"
    KERNEL_TIME = "kernel-time"
    MEMORY_BOUND = "memory-bound"
    COMPUTE_BOUND = "compute-bound"
    STARTUP = "startup"
    COMPUTATION = "computation"
    NOT_KNOWN = "not-known"


NO_CPU_CAUSES = frozenset(tuple(Cause)[:7])

WAITING_CAUSES = frozenset(
    {
        *(Cause.IMBALANCE, Cause.SLOW_CPU, Cause.IDLE_RANK, Cause.SERIAL_IO, Cause.BLOCKED_RANK, Cause.LATE_SENDER),
        *(Cause.LATE_RECEIVER, Cause.LATE_AT_COLLECTIVE, Cause.LATE_IN_CALL, Cause.WINDOW_WAIT, Cause.NOT_KNOWN),
    }
)
"""Ranks wait for others in MPI."""


class Sureness(StrEnum):
    """MEASURED: the kernel or the profiler counted it. INFERRED: it follows from totals and stated constants."""

    MEASURED = "measured"
    INFERRED = "inferred"


class Signal(StrEnum):
    """A quantity that a diagnosis was made from."""

    RUN_DELAY = "run-delay"
    """Seconds that the rank's threads were ready to run without running, over its wall time."""
    FROM = "from"
    """Seconds since the first rank was started: the other signals are of the time from then on, ..."""
    UNTIL = "until"  # ... until then.
    BURSTS = "bursts"  # How often it waited for a CPU, at about the same interval, ...
    PERIOD = "period"  # ... of so many seconds.
    CPU_TIME = "cpu-time"  # CPU seconds of the rank over its wall time.
    RANKS_ON_NODE = "ranks-on-node"
    CPUS = "cpus"  # The CPUs that these ranks may use together.
    BUSY_THREADS = "busy-threads"  # Threads of these ranks that ran or were ready to run, on average.
    QUOTA = "quota"  # CPUs that the control groups allow.
    THROTTLED = "throttled-periods"  # Share of the quota's periods in which it was used up.
    STEAL_SHARE = "steal"  # CPUs that the hypervisor gave to others, of those of the node.
    OTHERS_CPUS = "other-processes"  # CPUs that processes other than the ranks and their children used.
    CHILDREN_CPUS = "child-processes"  # CPUs that the children of the ranks used.
    CPU_SHARE = "cpu-share"
    """Seconds of the cause over the CPU seconds of the ranks: where ranks waited for a CPU, a part of the wall time
    says little."""
    EXCESS_COMPUTING = "excess-computing"
    """Time outside MPI of the slowest rank, over the mean of all ranks, less 1."""
    WAITING_EXPLAINED = "waiting-explained"
    """The differences in computing over the waiting; 1 if they are longer."""
    SLOWER_CPU = "slower-cpu"
    """CPU seconds of a short loop on this rank, over the mean of all ranks, less 1: the loop is the same everywhere."""
    CPU_VARIES = "cpu-varies"
    """CPU seconds of this loop on the rank where it varied most, mean over shortest, less 1."""
    MORE_INSTRUCTIONS = "more-instructions"  # Of the rank outside MPI, over the mean of all ranks, less 1.
    SLICE = "slice"  # Seconds: the length of the slices of time of the next signal.
    EXPLAINED_IN_SLICES = "waiting-explained-in-slices"
    """The differences in computing within slices of time over the waiting; 1 if they are longer."""
    LEAST_WAITING = "least-waiting"  # Waiting of the rank that waits least, over the mean of all ranks.
    BLOCKED = "blocked"  # Share of the rank's wall time in which it neither ran nor was ready to run.
    IO_SHARE = "io-share"  # This rank's part of the bytes that all ranks read and wrote.
    IO_BYTES = "io-bytes"
    IO_TIME = "io-time"
    """Seconds in calls on files outside MPI, of the rank, or of all ranks together; the next ones are parts of it."""
    READ_TIME = "read-time"
    READ_CALLS = "read-calls"
    WRITE_TIME = "write-time"
    WRITE_CALLS = "write-calls"
    SYNC_TIME = "sync-time"
    SYNC_CALLS = "sync-calls"
    METADATA_TIME = "metadata-time"  # Open, close, stat and the like.
    METADATA_CALLS = "metadata-calls"
    OPEN_CALLS = "open-calls"  # Of these, those that open files.
    LOOP_TIME = "loop-time"
    """CPU seconds of the rank in loops of the program that only wait, at least."""
    LOOP_SHARE = "loop-share"  # These over its wall time.
    RETURNS = "returns-from-system-calls"  # Samples of the ranks behind system calls, ...
    RETURNS_SHARE = "returns-from-one-system-call"  # ... and the part of them behind the one that is named.
    SLEEP_TIME = "sleep-time"
    POLL_TIME = "poll-time"  # Seconds in calls on sockets, or that wait for them or for pipes.
    CHILD_TIME = "child-time"  # Seconds in calls that start child processes or wait for them.
    LOCK_RANKS = "lock-ranks"
    """Ranks that wait for locks of files or semaphores, each for at least a tenth of what all do."""
    LOCK_TIME = "lock-time"  # Seconds in calls that wait for locks of files or semaphores.
    THREAD_TIME = "thread-time"  # Seconds in calls that wait for threads of the rank: mutexes, conditions, joins.
    THREADS_CPUS = "threads-cpus"  # CPUs that other threads of the rank used while one waited in the kernel, at least.
    PYTHON = "python"  # 1: MPI is called from Python.
    KERNEL_TIME = "kernel-time"
    """CPU seconds in the kernel outside MPI and outside timed calls, at least, over the wall time of the ranks."""
    MINOR_FAULTS = "minor-faults"  # Page faults that read no device.
    FAULT_RATE = "minor-faults-per-second"  # These of a rank per second, the mean over the ranks.
    FAULTS_PER_PAGE = "faults-per-page"
    """These over the pages of 4 KiB that the ranks had at most: how often each was handed out, at least."""
    KERNEL_PER_FAULT = "kernel-time-per-fault"  # These seconds over these faults.
    MAJOR_FAULTS = "major-faults"  # Pages that were read from a device.
    SMALL_CALLS = "small-reads-and-writes"
    """Reads and writes of the rank with most of them, if they are many and small."""
    SMALL_CALL_BYTES = "small-read-or-write"  # Bytes of one of these, on average.
    SMALL_CALLS_RANK = "small-reads-and-writes-rank"  # The number of that rank.
    COMPUTING_OF_MEDIAN = "computing-of-median"  # Time outside MPI of the rank over the median of all ranks.
    RANKS = "ranks"  # The number of ranks that this is true of.
    OUTSIDE_MPI = "outside-mpi"  # At most this share of the waiting passed while another rank was outside MPI.
    REFERENCE = "reference"  # Seconds of such a call by measurements on the same hosts.
    ALLOWED = "allowed"
    """Seconds that such a call takes at most, by stated constants; used where nothing was measured."""
    DATATYPES = "datatypes"  # Calls that make derived datatypes.
    OPERATIONS = "operations"
    """Calls that make reduction operations of the program's own; where their time is measured, their functions."""
    OPERATION_SHARE = "operation-share"  # Of the time of the call, in operations of the program.
    NONCONTIGUOUS = "noncontiguous-share"
    """Share of the bytes passed for sending whose datatypes have gaps, at least."""
    HOSTS = "hosts"
    CALL_SHARE = "call-share"  # Time in this call over the wall time of all ranks.
    CALL_MEAN = "call-mean"  # Seconds of one call.
    CALL_BEST = "call-best"  # Seconds of a fast call.
    CALL_TIME = "call-time"  # Seconds of the rank in this call.
    PARTNERS_FREE = "partners-free"
    """Seconds in which the ranks that it exchanges messages with did not wait at collectives, together; or in which any
    other rank was outside MPI meanwhile, if that is less."""
    WAITING_SHARE = "waiting-share"  # Share of the time in which ranks wait for this one.
    CALLS = "calls"
    REQUESTS_EACH = "requests-each"  # Requests that one of these calls is given, on average.
    MESSAGES_EACH = "messages-each"  # Messages that one of these calls received, on average, at least.
    ACCESSES_EACH = "accesses-each"  # Accesses to windows for each fence.
    MESSAGES_SHARE = "messages-share"
    """Share of the waiting on messages that this rank sent or should have received."""
    THREADS = "threads"  # The most threads of a parallel region.
    THREADS_WAIT = "threads-wait"
    """Share of the time of its threads that they wait at its end for the last one."""
    REGIONS = "parallel-regions"
    RESIDENT = "most-resident"  # Bytes: the most memory that the rank had.
    MEMORY_RATE = "memory-rate"  # Bytes per second from memory into the caches of all ranks.
    MEMORY_LIMIT = "memory-limit"  # Bytes per second: the highest triad measured on this machine.
    FLOP_RATE = "flop-rate"  # Floating-point operations per second of all ranks.
    FLOP_LIMIT = "flop-limit"  # Floating-point operations per second: the highest measured on this machine.


BLOCKING = (Signal.SLEEP_TIME, Signal.POLL_TIME, Signal.CHILD_TIME, Signal.LOCK_TIME, Signal.THREAD_TIME)
"""The calls in which a rank is blocked outside MPI, and not for files."""


class Evidence(Frozen):
    """The value of one signal that a diagnosis was made from."""

    signal: Signal
    value: Number
    is_against: Annotated[bool, "speaks against the cause"] = False


class Diagnosis(Frozen):
    """A cause and the share of the program's time that it explains, between 0 and 1.

    `rank` and `host` say where, `call` and `size_B` in which MPI function and message size, if that is part of it.
    `site` is the call site with most of the time: of these calls, or where ranks wait. `source` is the measurement that
    it was judged against. `late_at` is the site of the calls that are late, or that a late rank is in; `then` where
    others wait as a consequence, for rank `then_rank`.
    """

    cause: Cause
    share: Annotated[ShareOrNaN, "of the time of the program that the cause explains"]
    sureness: Sureness
    evidence: tuple[Evidence, ...] = ()
    rank: int | None = None
    host: str = ""
    call: str = ""
    size_B: Annotated[Count | None, Key("size"), "bytes"] = None
    site: CallSite | None = None
    source: Later[Annotated[str, "the measurement or the constants that it was judged against"]] = ""
    late_at: CallSite | None = None
    then: CallSite | None = None
    then_rank: Later[int | None] = None
    system_call: Later[Annotated[str, "the one that the ranks were mostly seen to come back from"]] = ""

    def value(self, signal: Signal) -> float | None:
        """The value of a signal; None if it is not part of the evidence."""
        return next((one.value for one in self.evidence if one.signal is signal), None)
