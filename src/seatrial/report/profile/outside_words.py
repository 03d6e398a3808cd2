"""What ranks do outside MPI, in words: calls on files, sleep, other programs."""

from __future__ import annotations

from seatrial.profiler.cause import Diagnosis, Signal
from seatrial.report.profile.rank_words import number_of
from seatrial.report.units import count, show, show_percent

_LEAST_PART = 0.1
"""Parts of the time in calls on files below this share are left out, ..."""
_FEW = 10
"""... and numbers of calls below this."""
_MOSTLY = 0.5
_WAITS = (Signal.SLEEP_TIME, Signal.POLL_TIME, Signal.CHILD_TIME, Signal.LOCK_TIME)


def file_words(one: Diagnosis) -> str:
    """The calls on files: "write 3.1 s, fsync 8.1 s (120 calls)", and the bytes that the ranks moved."""
    total_s = number_of(one, Signal.IO_TIME)
    parts = [
        ("read", Signal.READ_TIME, None, ""),
        ("write", Signal.WRITE_TIME, None, ""),
        ("fsync and the like", Signal.SYNC_TIME, Signal.SYNC_CALLS, "call"),
        ("open, close, stat and the like", Signal.METADATA_TIME, Signal.METADATA_CALLS, "call"),
    ]
    named = []
    for name, time, calls, what in parts:
        time_s, number = number_of(one, time), 0.0 if calls is None else number_of(one, calls)
        if time_s >= _LEAST_PART * total_s and time_s > 0:
            many = f" ({count(round(number), what)})" if number >= _FEW else ""
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
    }
    what = max(times, key=lambda name: times[name])
    faults = one.value(Signal.MAJOR_FAULTS)
    read = "" if not faults else f" It read {count(round(faults), 'page')} from a device (major page faults)."
    if times[what] > 0 and times[what] >= _MOSTLY * sum(times.values()):
        return f"it {what} for {show(times[what], 's')}{_competing(one)}.{read}"
    return f"what it waited for is not known (no sleep, socket, child process or lock of a file was seen).{read}"


def _competing(one: Diagnosis) -> str:
    ranks = round(number_of(one, Signal.LOCK_RANKS))
    return f"; {ranks} ranks wait for such locks" if waits_for_locks(one) and ranks > 1 else ""


def waits_for_locks(one: Diagnosis) -> bool:
    """Whether a rank is blocked mostly because others hold locks."""
    return number_of(one, Signal.LOCK_TIME) > _MOSTLY * sum(number_of(one, signal) for signal in _WAITS)


def is_explained(one: Diagnosis) -> bool:
    """Whether the calls in which a rank was blocked are known."""
    return any(number_of(one, signal) > 0 for signal in _WAITS)


def io_words(one: Diagnosis, who: str) -> str:
    """Time in calls on files, whether others wait for it or not."""
    return f"{who} in calls on files outside MPI for {show_percent(one.share)} of the time: {file_words(one)}."
