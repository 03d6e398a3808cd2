"""Input and output of a profile, and what ranks do outside MPI, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from seatrial.diagnosis.cpu import cpus_words
from seatrial.model.spelling import count, few_names, show, show_percent
from seatrial.profiler.cause import BLOCKING, Diagnosis, Signal
from seatrial.profiler.profile_io import ProfileIo
from seatrial.report.profile.place_words import number_of, share_words
from seatrial.stats.bursts import recurring

_MOSTLY, _OF_TWO, _ALL_BUT = 0.5, 0.8, 0.9
_ALIKE = 1.1
"""Largest ratio of the busiest rank to the mean if all ranks do about the same."""
_AT_START = 0.1
"""Part of the run that counts as its start."""
_LEAST_B = 1 << 20
"""Below this, a total is the I/O of starting any program: ranks and times are not reported."""
_WORDS = {"read": ("read_B", "device_read_B"), "written": ("written_B", "device_written_B")}
_PAST = {"read": "read", "written": "wrote"}
_NOUNS = {"read": "Reads", "written": "Writes"}

IO_RULE = (
    "Requested I/O is what calls such as read and write moved, from or to a cache, pipe, socket, network file system "
    "or disk. Device I/O is what block devices moved for the ranks; a write may reach them after the program has "
    "ended. Disks are those of the whole node, for all its processes. MPI-IO is included; its time is in the MPI_File "
    "calls."
)


def io_lines(io: ProfileIo) -> list[str]:
    """Sentences without full stops: amounts, busiest ranks, times, and what is unknown."""
    lines = []
    if io.known:
        lines.append(_amounts(io))
        for what in _WORDS:
            lines += [line for line in (_who(io, what), _when(io, what)) if line]
    return [*lines, *_doubts(io)]


def _amounts(io: ProfileIo) -> str:
    read, written = io.total("read_B"), io.total("written_B")
    device_read, device_written = io.total("device_read_B"), io.total("device_written_B")
    text = f"The ranks read {show(read, 'B')} and wrote {show(written, 'B')}; "
    text += f"storage devices read {show(device_read, 'B')} and wrote {show(device_written, 'B')} for them"
    cancelled = io.total("cancelled_B")
    text += f", of which {show(cancelled, 'B')} were deleted before they reached the device" if cancelled else ""
    start = [show(io.total(f"start_{what}_B"), "B") for what in _WORDS]
    return f"{text}. I/O up to the end of MPI_Init is excluded: {start[0]} read, {start[1]} written"


def _who(io: ProfileIo, what: str) -> str:
    """The busiest rank if it does most of the I/O, or that all ranks do about the same; else ""."""
    name = _WORDS[what][0]
    total = io.total(name)
    if len(io.known) < 2 or total < _LEAST_B:
        return ""
    rank, most = max(((rank, getattr(totals, name)) for rank, totals in io.known), key=lambda one: one[1])
    share = most / total
    if share >= (_MOSTLY if len(io.known) > 2 else _OF_TWO):
        return f"Rank {rank} {_PAST[what]} {share_words(share)} of all bytes"
    if share <= _ALIKE / len(io.known):
        return f"All ranks {_PAST[what]} about the same amount"
    return ""


def _when(io: ProfileIo, what: str) -> str:
    series = io.over_time(_WORDS[what][0])
    total = sum(series)
    if total < _LEAST_B or len(series) < 2:
        return ""
    early, share = _soon(series)
    if early <= max(1, round(_AT_START * len(series))):
        return f"{share_words(share)} of the bytes are {what} in the first {show(early * io.width_s, 's')}"
    found = recurring(series)
    if found is None:
        return ""
    bursts, bins = found
    return f"{_NOUNS[what]} come in {count(bursts, 'burst')}, {show(bins * io.width_s, 's')} apart"


def _soon(series: Sequence[float]) -> tuple[int, float]:
    """The number of bins from the start that hold nearly all bytes, and their share."""
    total = sum(series)
    for bins, done in enumerate(accumulate(series), start=1):
        if done >= _ALL_BUT * total:
            return bins, done / total
    return len(series), 1.0


def _doubts(io: ProfileIo) -> list[str]:
    lines = []
    if io.unknown:
        ranks = few_names([one.rank for one in io.unknown], 6)
        why = io.unknown[0].error
        who = "rank" if len(io.unknown) == 1 else "ranks"
        lines.append(f"The I/O of {who} {ranks} is unknown: {why}")
    cut = [rank for rank, totals in io.known if not totals.is_to_end]
    if cut:
        who = "some ranks" if len(cut) > 1 else f"rank {cut[0]}"
        lines.append(f"The I/O of {who} after the last sample is unknown: MPI_Finalize was not reached")
    return lines


_LEAST_PART = 0.1
"""Parts of the time in calls on files below this share are left out, ..."""
_FEW = 10
"""... and numbers of calls below this."""
_MANY, _SMALL_B = 1000, 4096
"""So many reads and writes of fewer bytes than a page cost their number, not their bytes."""


def file_words(one: Diagnosis) -> str:
    """The calls on files: "write 3.1 s, fsync 8.1 s (120 calls)", and the bytes that the ranks moved."""
    total_s = number_of(one, Signal.IO_TIME)
    parts = [
        ("read", Signal.READ_TIME, Signal.READ_CALLS),
        ("write", Signal.WRITE_TIME, Signal.WRITE_CALLS),
        ("fsync and the like", Signal.SYNC_TIME, Signal.SYNC_CALLS),
        ("open, close, stat and the like", Signal.METADATA_TIME, Signal.METADATA_CALLS),
    ]
    named = []
    for name, time, calls in parts:
        time_s, number = number_of(one, time), number_of(one, calls)
        if time_s >= _LEAST_PART * total_s and time_s > 0:
            many = f" ({count(round(number), 'call')})" if number >= _FEW else ""
            named.append(f"{name} {show(time_s, 's')}{many}")
    moved = number_of(one, Signal.IO_BYTES)
    text = ", ".join(named) or "none of them was timed"
    return f"{text}; {show(moved, 'B')} read and written" if moved else text


def blocked_words(one: Diagnosis) -> str:
    """What a rank that neither runs nor is ready to run was seen to wait for."""
    times = {
        "sleeps (sleep, nanosleep and the like)": number_of(one, Signal.SLEEP_TIME),
        "waits for sockets or pipes (poll, recv and the like)": number_of(one, Signal.POLL_TIME),
        "waits for child processes (system, wait and the like)": number_of(one, Signal.CHILD_TIME),
        "waits for locks of files or semaphores (fcntl, flock, sem_wait and the like)": number_of(
            one, Signal.LOCK_TIME
        ),
        "waits for its own threads (mutexes, conditions, pthread_join)": number_of(one, Signal.THREAD_TIME),
    }
    what = max(times, key=lambda name: times[name])
    faults = one.value(Signal.MAJOR_FAULTS)
    read = "" if not faults else f" It read {count(round(faults), 'page')} from a device (major page faults)."
    if times[what] > 0 and times[what] >= _MOSTLY * sum(times.values()):
        return f"it {what} for {show(times[what], 's')}{_meanwhile(one)}{_competing(one)}.{read}"
    return f"what it waited for is unknown (no sleep, socket, child process, lock of a file or thread was seen).{read}"


def _meanwhile(one: Diagnosis) -> str:
    """What other threads of the rank used while it waited for them, or for a semaphore."""
    used = one.value(Signal.THREADS_CPUS)
    if used is None or not (waits_for_threads(one) or waits_for_locks(one)):
        return ""
    may_be = "" if waits_for_threads(one) else ": it may wait for these"
    return f", in which its own threads used {used:.2f} of {cpus_words(number_of(one, Signal.CPUS))}{may_be}"


def while_threads_run(one: Diagnosis) -> bool:
    """Whether a rank is blocked mostly for its own threads, or for semaphores, while its own threads run."""
    return one.value(Signal.THREADS_CPUS) is not None and (waits_for_threads(one) or waits_for_locks(one))


def _competing(one: Diagnosis) -> str:
    ranks = 0 if while_threads_run(one) else round(number_of(one, Signal.LOCK_RANKS))
    return f"; {ranks} ranks wait for such locks" if waits_for_locks(one) and ranks > 1 else ""


def has_small_pieces(one: Diagnosis) -> bool:
    """Whether reads and writes take most of the time in calls on files, and are small."""
    total_s = number_of(one, Signal.READ_TIME) + number_of(one, Signal.WRITE_TIME)
    calls = number_of(one, Signal.READ_CALLS) + number_of(one, Signal.WRITE_CALLS)
    is_most = total_s > _MOSTLY * number_of(one, Signal.IO_TIME)
    return is_most and calls >= _MANY and number_of(one, Signal.IO_BYTES) < _SMALL_B * calls


def waits_for_locks(one: Diagnosis) -> bool:
    """Whether a rank is blocked mostly because others hold locks."""
    return number_of(one, Signal.LOCK_TIME) > _MOSTLY * sum(number_of(one, signal) for signal in BLOCKING)


def waits_for_threads(one: Diagnosis) -> bool:
    """Whether a rank is blocked mostly because it waits for its own threads."""
    return number_of(one, Signal.THREAD_TIME) > _MOSTLY * sum(number_of(one, signal) for signal in BLOCKING)


def is_explained(one: Diagnosis) -> bool:
    """Whether the calls in which a rank was blocked are known."""
    return any(number_of(one, signal) > 0 for signal in BLOCKING)


def io_words(one: Diagnosis, who: str) -> str:
    """Time in calls on files, whether others wait for it or not."""
    return f"{who} in calls on files outside MPI for {show_percent(one.share)} of the time: {file_words(one)}."
