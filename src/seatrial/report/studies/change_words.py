"""Why two sides differ in time, in sentences. All sentences about changes between sides are here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from seatrial.diagnosis.cpu import NOT_KNOWN, RANKS_WAIT, others_words, ready_words, steal_words
from seatrial.model.benchmark.program import RANKS
from seatrial.model.spelling import count, label, show, show_percent
from seatrial.model.study.comparison import Breakdown, Change, ChangeDiagnosis, ChangeEvidence, ChangeSignal, Part
from seatrial.model.study.result import Compared
from seatrial.model.study.study import is_of_environment
from seatrial.report.blocks import Table, right
from seatrial.report.studies.verdicts import short
from seatrial.stats.interval import MINIMUM_REPEATS


def change_lines(breakdown: Breakdown) -> list[str]:
    """The causes of a difference with their share of it, as sentences; empty if none was looked for."""
    lines = []
    for one in breakdown.diagnoses:
        lines.append(f"{change_sentence(one)} ({show_percent(one.share)} of the difference).")
        if one.on is not None and one.seen:
            name = short(breakdown.baseline if one.on == "baseline" else breakdown.candidate)
            lines[-1] += f" Seen with {name}: {one.seen} {one.remedy}."
    return lines and [f"Why: {lines[0]}", *lines[1:]]


def change_sentence(one: ChangeDiagnosis) -> str:
    """The change and its evidence, as baseline -> candidate, without a full stop."""
    text = _SENTENCES[one.change](one)
    return f"{text[:1].upper()}{text[1:]}"


def _sides(one: ChangeDiagnosis, signal: ChangeSignal, words: Callable[[float], str], missing: str = "unknown") -> str:
    found = next((each for each in one.evidence if each.signal is signal), ChangeEvidence(signal, None, None))
    return " -> ".join(missing if value is None else words(value) for value in (found.baseline, found.candidate))


def _seconds(one: ChangeDiagnosis, signal: ChangeSignal, missing: str = "unknown") -> str:
    return _sides(one, signal, lambda value: show(value, "s"), missing)


def _delay(one: ChangeDiagnosis) -> str:
    return _sides(one, ChangeSignal.RUN_DELAY, lambda value: show_percent(min(1.0, value)))


def _per_call(one: ChangeDiagnosis) -> str:
    return f"{_seconds(one, ChangeSignal.CALL_MEAN, 'none')} per call on average"


def _has(one: ChangeDiagnosis, signal: ChangeSignal) -> bool:
    """Whether a signal is known on both sides."""
    return any(each.signal is signal and None not in (each.baseline, each.candidate) for each in one.evidence)


def _call(one: ChangeDiagnosis) -> str:
    if one.size_B is None:
        return one.call
    return f"{one.call} of {show(one.size_B, 'B', binary=one.size_B % 1024 == 0)}"


def _no_cpu(why: Callable[[ChangeDiagnosis], str]) -> Callable[[ChangeDiagnosis], str]:
    def words(one: ChangeDiagnosis) -> str:
        if _has(one, ChangeSignal.WALL):
            return _of_run("waiting for a CPU", ChangeSignal.CPU_WAIT)(one)
        ready = ready_words("ranks", f"{_delay(one)} of their time", are_several=True)
        return f"{ready}: {why(one)}. {RANKS_WAIT}"

    return words


def _ranks(one: ChangeDiagnosis) -> str:
    slowest, middle = (_seconds(one, of) for of in (ChangeSignal.LONGEST_COMPUTING, ChangeSignal.COMPUTING))
    return f"{slowest} for the slowest rank, {middle} for the middle one"


def _computation(one: ChangeDiagnosis) -> str:
    text = f"time outside MPI: {_seconds(one, ChangeSignal.COMPUTING)} per rank"
    if not _has(one, ChangeSignal.CPU_TIME):
        return text
    return f"{text}, CPU time of a rank {_seconds(one, ChangeSignal.CPU_TIME)}"


def _blocked(one: ChangeDiagnosis) -> str:
    return (
        f"ranks are blocked outside MPI (input, output, sleep): {_seconds(one, ChangeSignal.BLOCKED)} per rank neither "
        f"running nor ready to run, of {_seconds(one, ChangeSignal.COMPUTING)} outside MPI"
    )


def _imbalance(one: ChangeDiagnosis) -> str:
    who = "the slowest rank" if one.rank is None else f"rank {one.rank}"
    return f"the others wait for {who}: time outside MPI {_ranks(one)}"


def _calls(one: ChangeDiagnosis) -> str:
    counts = _sides(one, ChangeSignal.CALLS, lambda value: f"{value:.0f}", "0")
    return f"the number of calls, mostly {_call(one)}: {counts} per rank"


def _cost(one: ChangeDiagnosis) -> str:
    shortest = _seconds(one, ChangeSignal.CALL_SHORTEST)
    return f"each call itself, mostly {_call(one)}: {shortest} for the shortest, {_per_call(one)}"


def _late(what: str) -> Callable[[ChangeDiagnosis], str]:
    return lambda one: (
        f"{what}, mostly in {_call(one)}: {_per_call(one)}, {_seconds(one, ChangeSignal.CALL_SHORTEST)} for the "
        f"shortest. Time outside MPI does not explain it: {_ranks(one)}"
    )


def _not_known(one: ChangeDiagnosis) -> str:
    if any(each.signal is ChangeSignal.USER for each in one.evidence):  # a program without MPI
        user, kernel, waited = (
            _seconds(one, of) for of in (ChangeSignal.USER, ChangeSignal.KERNEL, ChangeSignal.CPU_WAIT)
        )
        times = f"CPU time of a run {user} in user code, {kernel} in the kernel; {waited} without a CPU"
        return f"the rest is unknown. Looked at: {times}"
    looked = [f"time outside MPI {_ranks(one)}"] if _has(one, ChangeSignal.COMPUTING) else []
    if one.call:
        looked.append(f"{_call(one)} {_per_call(one)}")
    if _has(one, ChangeSignal.RUN_DELAY):
        looked.append(f"without a CPU {_delay(one)} of the time")
    seen = f" Looked at: {'; '.join(looked)}." if looked else " Records of this version of seatrial have more signals."
    return f"the rest is unknown.{seen} `seatrial profile --wait 10` of each side separates waiting from transfer"


def _of_run(what: str, signal: ChangeSignal) -> Callable[[ChangeDiagnosis], str]:
    """A part of the run of a program, as its share of the wall time and in seconds."""

    def words(one: ChangeDiagnosis) -> str:
        known = {each.signal: (each.baseline, each.candidate) for each in one.evidence}
        shown = signal if signal in known else next(iter(known), signal)
        pairs = zip(known.get(shown, ()), known.get(ChangeSignal.WALL, ()), strict=False)
        shares = [
            "unknown" if part is None or not whole else show_percent(min(1.0, part / whole)) for part, whole in pairs
        ]
        return f"{what}: {' -> '.join(shares)} of the time ({_seconds(one, shown)} of a run)"

    return words


_SENTENCES: Mapping[Change, Callable[[ChangeDiagnosis], str]] = {
    Change.MORE_RANKS_THAN_CPUS: _no_cpu(lambda one: "more ranks or threads than CPUs"),
    Change.SAME_CPUS: _no_cpu(lambda one: "ranks are bound to the same CPUs"),
    Change.CPU_QUOTA: _no_cpu(
        lambda one: (
            "a CPU quota was used up "
            f"(quota: {_sides(one, ChangeSignal.QUOTA, lambda value: f'{value:.3g} CPUs', 'none')})"
        )
    ),
    Change.STEAL: _no_cpu(lambda one: steal_words("CPU time")),
    Change.OTHER_PROCESSES: _no_cpu(
        lambda one: others_words(_sides(one, ChangeSignal.OTHERS_CPUS, lambda value: f"{value:.2f} CPUs"))
    ),
    Change.CHILD_PROCESSES: _no_cpu(lambda one: "programs that the ranks started used CPUs"),
    Change.NO_CPU: _no_cpu(lambda one: NOT_KNOWN),
    Change.COMPUTATION: _computation,
    Change.BLOCKED: _blocked,
    Change.IMBALANCE: _imbalance,
    Change.CALLS: _calls,
    Change.SIZES: lambda one: f"the size of messages: {_call(one)} on one side only, {_per_call(one)}",
    Change.LATENCY: _cost,
    Change.TRANSFER: _cost,
    Change.LATE_SENDER: _late("receives wait longer for their message"),
    Change.LATE_RECEIVER: _late("sends wait longer for their receiver"),
    Change.LATE_AT_COLLECTIVE: _late("ranks wait longer for the last one at collectives"),
    Change.STARTUP: lambda one: f"startup and shutdown of MPI, mostly {one.call}: {_per_call(one)}",
    Change.USER_CODE: _of_run(
        "CPU time in user code, which computes or waits in a loop (the kernel does not distinguish)", ChangeSignal.USER
    ),
    Change.MORE_THREADS_THAN_CPUS: _of_run("more threads than CPUs", ChangeSignal.CPU_WAIT),
    Change.LOCKS: _of_run("waiting for mutexes", ChangeSignal.LOCK_WAIT),
    Change.PAGE_FAULTS: _of_run("CPU time in the kernel, by page faults", ChangeSignal.KERNEL),
    Change.KERNEL_TIME: _of_run("CPU time in the kernel", ChangeSignal.KERNEL),
    Change.SMALL_CALLS: _of_run("CPU time in the kernel, by small reads and writes", ChangeSignal.KERNEL),
    Change.FILE_OPENINGS: _of_run("CPU time in the kernel, by opening files", ChangeSignal.KERNEL),
    Change.THREAD_STARTS: _of_run("CPU time in the kernel, by starting threads", ChangeSignal.KERNEL),
    Change.PROCESS_STARTS: _of_run("CPU time of processes that end at once", ChangeSignal.USER),
    Change.WAITING_LOOP: _of_run("CPU time in user code, mostly in a loop that only waits", ChangeSignal.USER),
    Change.UNEVEN_THREADS: _of_run("threads that wait for a busier one", ChangeSignal.THREAD_WAIT),
    Change.SLEEP: _of_run("sleep", ChangeSignal.SLEEP),
    Change.CHILD: _of_run("waiting for child processes", ChangeSignal.CHILD_WAIT),
    Change.OTHERS_DATA: _of_run("waiting for data of another process", ChangeSignal.DATA_WAIT),
    Change.FILE_LOCK: _of_run("waiting for a lock on a file", ChangeSignal.FILE_LOCK_WAIT),
    Change.FILES: _of_run("waiting for files", ChangeSignal.FILE_WAIT),
    Change.FILE_SYSTEM: _of_run("waiting for files", ChangeSignal.FILE_WAIT),
    Change.SYNCHRONISED_IO: _of_run("waiting for files", ChangeSignal.FILE_WAIT),
    Change.IO_LIMIT: _of_run("waiting for files", ChangeSignal.FILE_WAIT),
    Change.NOT_KNOWN: _not_known,
}


BREAKDOWN_RULE = (
    "Seconds per rank for the whole run, including its start and end: the mean over ranks and repeats, so the parts "
    "add up. A figure may measure only a part of the run. Beyond noise: if the sides were equal, any part would differ "
    "by this much in fewer than 1 of 20 comparisons (sides exchanged within blocks, all parts tested together). Of a "
    "program without MPI: seconds of one run, those of threads divided by the number that work at once."
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
        if not breakdown.blocks and breakdown.diagnoses:
            return "The sides were measured apart, so the machine may have changed in between"
        if not breakdown.blocks:
            return "No conclusion: the sides were measured apart, and the parts can be tested in blocks only"
        return f"No conclusion with {count(breakdown.blocks, 'block')}: at least {MINIMUM_REPEATS} are needed"
    difference = whole.difference_s
    same_way = [part for part in sure if part.difference_s * difference > 0]
    if not same_way:
        moved = [(part, "more" if part.difference_s > 0 else "less") for part in sure[:_MOST_NAMED]]
        named = ", ".join(f"{show(abs(part.difference_s), 's')} {more} in {part_words(part)}" for part, more in moved)
        return f"The total time is about the same, but {named}"
    more = "more" if difference > 0 else "less"
    shares = [
        f"{show(abs(part.difference_s), 's')} ({show_percent(part.difference_s / difference)}) in {part_words(part)}"
        for part in same_way[:_MOST_NAMED]
        if part is same_way[0] or part.difference_s / difference >= _WORTH_NAMING
    ]
    return f"Of {show(abs(difference), 's')} {more} per {breakdown.per}, {' and '.join(shares)}"


def part_words(part: Part) -> str:
    """A part in words: "MPI_Allreduce of 8 B", "computing"."""
    if part.size_B is None or not part.size_B:
        return part.what
    return f"{part.what} of {show(part.size_B, 'B', binary=part.size_B % 1024 == 0)}"


def breakdown_table(breakdown: Breakdown) -> Table | None:
    """The whole and its parts; None if no times were recorded. The time per call compares sides with different numbers
    of calls."""
    numbers = right("Baseline", "Candidate", "Difference", "Calls per rank", "Time per call")
    whole = [] if breakdown.whole is None else [breakdown.whole, *breakdown.parts]
    return Table.if_any(breakdown_title(breakdown), ["Part", *numbers, ""], map(_row, whole))


def _row(part: Part) -> list[str]:
    sides = ((part.baseline_s, part.baseline_count), (part.candidate_s, part.candidate_count))
    calls = per_call = ""
    if any(number > 0 for _, number in sides):
        calls = " -> ".join(dict.fromkeys(f"{number:.0f}" for _, number in sides))
        per_call = " -> ".join(show(seconds / number, "s") if number else "none" for seconds, number in sides)
    return [
        part_words(part),
        show(part.baseline_s, "s"),
        show(part.candidate_s, "s"),
        f"{'+' if part.difference_s >= 0 else '-'}{show(abs(part.difference_s), 's')}",
        calls,
        per_call,
        "beyond noise" if part.is_beyond_noise else "",
    ]


def breakdown_lines(breakdown: Breakdown) -> list[str]:
    """Notes on a breakdown: input and output, numbers of calls, and skipped repeats."""
    lines = []
    if breakdown.moved:
        moved = "; ".join(
            f"{one.what} {show(one.baseline_B, 'B')} -> {show(one.candidate_B, 'B')}" for one in breakdown.moved
        )
        lines.append(f"Input and output of the whole program: {moved}.")
    counts = [(part.baseline_count, part.candidate_count) for part in breakdown.parts if part.is_beyond_noise]
    if any(max(pair) > (1 + _NEGLIGIBLE) * min(pair) for pair in counts):
        lines.append("The sides made different numbers of calls: compare the time per call, not the sums.")
    if breakdown.incomplete:
        lines.append(f"Not included: {count(breakdown.incomplete, 'repeat')} with an incomplete profile.")
    return lines
