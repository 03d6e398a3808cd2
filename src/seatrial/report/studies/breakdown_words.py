"""Text about a breakdown, for terminal and page: which parts of a run cause a difference."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.model.breakdown import Breakdown, Part
from seatrial.model.layout import RANKS
from seatrial.model.study import is_of_environment
from seatrial.model.study_result import Compared
from seatrial.report.studies.verdicts import short
from seatrial.report.units import count, label, show, show_percent
from seatrial.stats.interval import MINIMUM_REPEATS

BREAKDOWN_COLUMNS = ("part", "baseline", "candidate", "difference", "calls per rank", "time per call", "")
BREAKDOWN_RULE = (
    "Seconds per rank for the whole run, including its start and end: the mean over ranks and repeats, so the parts "
    "add up. A figure may measure only a part of the run. Beyond noise: if the sides were equal, any part would differ "
    "by this much in fewer than 1 of 20 comparisons (sides exchanged within blocks, all parts tested together)."
)
_MOST_NAMED = 2
_WORTH_NAMING = 0.1
_NEGLIGIBLE = 0.02


def breakdowns_of(compared: Sequence[Compared]) -> list[Breakdown]:
    """All breakdowns, in the order of the comparisons."""
    return [breakdown for one in compared for breakdown in one.breakdowns]


def breakdown_title(breakdown: Breakdown) -> str:
    """The subject of a breakdown: benchmark, ranks, settings that a study varies besides, and the two sides."""
    settings = " ".join(
        label(*item) for item in breakdown.parameters.items() if item[0] == RANKS or is_of_environment(item[0])
    )
    named = f"{breakdown.benchmark} {settings}".rstrip()
    return f"{named}: {short(breakdown.candidate)} against {short(breakdown.baseline)}"


def breakdown_sentence(breakdown: Breakdown) -> str:
    """The parts that cause the difference in time, without a full stop."""
    whole = breakdown.whole
    if whole is None:
        return "Only input and output were recorded"
    sure = [part for part in breakdown.parts if part.is_beyond_noise]
    if not sure:
        if breakdown.blocks >= MINIMUM_REPEATS:
            return "No part differs beyond noise"
        if not breakdown.blocks:
            return "No conclusion: the sides were measured apart, and the parts can be tested in blocks only"
        return f"No conclusion with {count(breakdown.blocks, 'block')}: at least {MINIMUM_REPEATS} are needed"
    difference = whole.difference_s
    same_way = [part for part in sure if part.difference_s * difference > 0]
    if not same_way:
        named = ", ".join(_moved_words(part) for part in sure[:_MOST_NAMED])
        return f"The total time is about the same, but {named}"
    more = "more" if difference > 0 else "less"
    shares = [
        f"{show(abs(part.difference_s), 's')} ({show_percent(part.difference_s / difference)}) in {part_words(part)}"
        for part in same_way[:_MOST_NAMED]
        if part is same_way[0] or part.difference_s / difference >= _WORTH_NAMING
    ]
    return f"Of {show(abs(difference), 's')} {more} per rank, {' and '.join(shares)}"


def _moved_words(part: Part) -> str:
    more = "more" if part.difference_s > 0 else "less"
    return f"{show(abs(part.difference_s), 's')} {more} in {part_words(part)}"


def part_words(part: Part) -> str:
    """A part in words: "MPI_Allreduce of 8 B", "computing"."""
    if part.size_B is None or not part.size_B:
        return part.what
    return f"{part.what} of {show(part.size_B, 'B', binary=part.size_B % 1024 == 0)}"


def part_row(part: Part) -> list[str]:
    """The cells for BREAKDOWN_COLUMNS."""
    sign = "+" if part.difference_s >= 0 else "-"
    return [
        part_words(part),
        show(part.baseline_s, "s"),
        show(part.candidate_s, "s"),
        f"{sign}{show(abs(part.difference_s), 's')}",
        _counts(part),
        _time_per_call(part),
        "beyond noise" if part.is_beyond_noise else "",
    ]


def _counts(part: Part) -> str:
    first, second = (f"{number:.0f}" for number in (part.baseline_count, part.candidate_count))
    return "" if not _is_counted(part) else first if first == second else f"{first} -> {second}"


def _time_per_call(part: Part) -> str:
    """Time per call on each side, for comparing sides with different numbers of calls."""
    if not _is_counted(part):
        return ""
    sides = ((part.baseline_s, part.baseline_count), (part.candidate_s, part.candidate_count))
    return " -> ".join(show(seconds / calls, "s") if calls else "none" for seconds, calls in sides)


def _is_counted(part: Part) -> bool:
    return part.baseline_count > 0 or part.candidate_count > 0


def _counts_differ(breakdown: Breakdown) -> bool:
    counts = [(part.baseline_count, part.candidate_count) for part in breakdown.parts if part.is_beyond_noise]
    return any(max(pair) > (1 + _NEGLIGIBLE) * min(pair) for pair in counts)


def breakdown_lines(breakdown: Breakdown) -> list[str]:
    """Notes on a breakdown: input and output, numbers of calls, and skipped repeats."""
    lines = []
    if breakdown.moved:
        moved = "; ".join(
            f"{one.what} {show(one.baseline_B, 'B')} -> {show(one.candidate_B, 'B')}" for one in breakdown.moved
        )
        lines.append(f"Input and output of the whole program: {moved}.")
    if _counts_differ(breakdown):
        lines.append("The sides made different numbers of calls: compare the time per call, not the sums.")
    if breakdown.incomplete:
        lines.append(f"Not included: {count(breakdown.incomplete, 'repeat')} with an incomplete profile.")
    return lines
