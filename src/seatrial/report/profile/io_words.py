"""Input and output of a profile in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from seatrial.profiler.profile_io import ProfileIo
from seatrial.report.profile.words import share_words
from seatrial.report.units import count, show

_MOSTLY, _OF_TWO, _ALL_BUT = 0.5, 0.8, 0.9
_ALIKE = 1.1
"""Of the mean: what the rank with most has at most where all do alike."""
_AT_START = 0.1
"""Of the run: what is read until then is read at its start."""
_LEAST_B = 1 << 20
"""Below this a total is what starting any program takes: nothing is said about who or when."""
_BURST = 0.05
"""Of the fullest bin: what a bin of a burst holds at least."""
_LEAST_BURSTS = 3
_REGULAR = 0.3
_WORDS = {"read": ("read_B", "device_read_B"), "written": ("written_B", "device_written_B")}
_VERBS = {"read": "reads", "written": "writes"}

IO_RULE = (
    "Asked for is what calls such as read and write moved, whatever served them: a cache, a pipe, a socket, a network "
    "file system, a disk. Devices is what the kernel had block devices move for the ranks; a write may reach them "
    "after the program has ended. Disks are whole nodes, whoever used them. MPI-IO is within; its time is in the "
    "calls of MPI_File."
)


def io_lines(io: ProfileIo) -> list[str]:
    """What is worth saying, each a sentence without its full stop: how much, who, when, and what is not known."""
    lines = []
    if io.known:
        lines.append(_amounts(io))
        for what in _WORDS:
            lines += [line for line in (_who(io, what), _when(io, what)) if line]
    return [*lines, *_doubts(io)]


def _amounts(io: ProfileIo) -> str:
    read, written = io.total("read_B"), io.total("written_B")
    device_read, device_written = io.total("device_read_B"), io.total("device_written_B")
    said = f"The ranks read {show(read, 'B')} and write {show(written, 'B')}; "
    said += f"storage devices read {show(device_read, 'B')} and write {show(device_written, 'B')} for them"
    cancelled = io.total("cancelled_B")
    said += f", {show(cancelled, 'B')} of which were deleted first" if cancelled else ""
    start = [show(io.total(f"start_{what}_B"), "B") for what in _WORDS]
    return f"{said}. MPI_Init and what came before it are not counted: they read {start[0]} and write {start[1]}"


def _who(io: ProfileIo, what: str) -> str:
    """The rank with most of it, where it has more than its share; or that all have alike."""
    name = _WORDS[what][0]
    total = io.total(name)
    if len(io.known) < 2 or total < _LEAST_B:
        return ""
    rank, most = max(((rank, getattr(totals, name)) for rank, totals in io.known), key=lambda one: one[1])
    share = most / total
    if share >= (_MOSTLY if len(io.known) > 2 else _OF_TWO):
        return f"Rank {rank} {_VERBS[what]} {share_words(share)} of all bytes"
    if share <= _ALIKE / len(io.known):
        return f"All ranks {_VERBS[what].removesuffix('s')} about as much as each other"
    return ""


def _when(io: ProfileIo, what: str) -> str:
    series = io.over_time(_WORDS[what][0])
    total = sum(series)
    if total < _LEAST_B or len(series) < 2:
        return ""
    early, share = _soon(series)
    if early <= max(1, round(_AT_START * len(series))):
        return f"{share_words(share)} of what is {what} comes in the first {show(early * io.width_s, 's')}"
    apart = recurring(series)
    if apart is None:
        return ""
    bursts, bins = apart
    return f"What is {what} comes in {count(bursts, 'burst')}, {show(bins * io.width_s, 's')} apart"


def _soon(series: Sequence[float]) -> tuple[int, float]:
    """The number of bins from the start after which nearly all is done, and the share of it that is."""
    total = sum(series)
    for bins, done in enumerate(accumulate(series), start=1):
        if done >= _ALL_BUT * total:
            return bins, done / total
    return len(series), 1.0


def recurring(series: Sequence[float]) -> tuple[int, float] | None:
    """(number of bursts, bins from one to the next) where bursts come again and again at about the same distance.

    A burst is a run of bins that hold a twentieth of the fullest or more. They recur where there are three or more, and
    no distance between two of them is farther from the median than three tenths of it, or one bin.
    """
    full = max(series, default=0.0)
    is_burst = [full > 0 and value >= _BURST * full for value in series]
    begins = [k for k, now in enumerate(is_burst) if now and not (k and is_burst[k - 1])]
    if len(begins) < _LEAST_BURSTS:
        return None
    apart = [later - sooner for sooner, later in pairwise(begins)]
    median = sorted(apart)[len(apart) // 2]
    if median < 2 or any(abs(one - median) > max(1.0, _REGULAR * median) for one in apart):
        return None
    return len(begins), (begins[-1] - begins[0]) / len(apart)


def _doubts(io: ProfileIo) -> list[str]:
    lines = []
    if io.unknown:
        ranks = ", ".join(str(one.rank) for one in io.unknown[:6])
        more = f" and {len(io.unknown) - 6} more" if len(io.unknown) > 6 else ""
        why = io.unknown[0].error
        who = "rank" if len(io.unknown) == 1 else "ranks"
        lines.append(f"What {who} {ranks}{more} read and wrote is not known: {why}")
    cut = [rank for rank, totals in io.known if not totals.is_to_end]
    if cut:
        some = "some ranks" if len(cut) > 1 else f"rank {cut[0]}"
        lines.append(f"What {some} did after the last sample is not known: MPI_Finalize was not reached")
    return lines
