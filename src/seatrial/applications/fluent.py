"""Transcripts of Ansys Fluent: the performance timer that `/parallel/timer/usage` prints.

Each timer of a transcript is one experiment: `timer` is its number, because nothing says whether two of them solved the
same. The CPU time is a sum over the processes.

`apps.fluent`: Ansys Fluent on the user's case and journal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log
from seatrial.applications.reading.text import LogLine, Pattern, is_product
from seatrial.applications.running.given_input import FORMAT_SEEN, application
from seatrial.model.benchmark.given_input import INPUT
from seatrial.model.benchmark.parameter import Value
from seatrial.model.results.imported import ImportedExperiment, ImportedFile

_TOOL = "Fluent"
_TIMER = Pattern(r"(?:Performance )?Timer for ([0-9]{1,12}) iterations? on ([0-9]{1,9}) compute nodes?")
_TIMER_LIKE = Pattern(r".{0,80}Performance Timer.{0,200}")
_VERSION = Pattern(r"Welcome to A(?:NSYS|nsys) Fluent (\d[\w .]{0,20}?)|.{0,200}/fluent(\d\d\.\d[.\d]{0,8})/.{0,400}")
_MEAN = Pattern(r"Average wall-clock time per iteration:\s{1,40}(\S{1,40}) sec")
_WALL = Pattern(r"Total wall-clock time:\s{1,60}(\S{1,40}) sec")
_CPU = Pattern(r"Total CPU time:\s{1,60}(\S{1,40}) sec")
_CPU_LIKE = Pattern(r"Total CPU time.{0,100}")
_VALUES = {"mean": _MEAN, "wall": _WALL, "cpu": _CPU}
_FAILED = Pattern(
    r"processes or machines have crashed|lost connection while reading|Fatal error|fatal signal|BAD TERMINATION"
    r"|process could not be started|[Dd]ivergence detected in|[Ff]loating point (?:exception|error)"
    r"|exited before MPI_Finalize|[Nn]o licenses? available|[Ff]ailed to (?:obtain|checkout) a?.{0,20}license"
)
_NOT_FINITE = Pattern(r"^[0-9]{1,12} .{0,400}?(?<![\w.])[+-]?(?:nan|inf)(?![\w.])", re.IGNORECASE)
_MOST_CPU = 1.15
"""CPU time over elapsed time x processes: they also wait while a timer is printed."""


def read(data: bytes) -> ImportedFile:
    """The timers of one transcript. Raises ParseError if there is none, one is damaged, or the run crashed."""
    log = Log(_TOOL, data, is_spaced_once=True)
    log.refuse_signs((_FAILED, "the run crashed or diverged"), (_NOT_FINITE, "a residual is not a number"))
    starts = [i for i, text in enumerate(log.texts) if _TIMER_LIKE.fullmatch(text) or _TIMER.fullmatch(text)]
    if not starts:
        why = "no `Performance Timer for ... iterations`: the run has not ended, or /parallel/timer/usage is not in it"
        raise log.error(why)
    if above := [one for pattern in _VALUES.values() for one in log.found(pattern, log.lines[: starts[0]])]:
        raise above[0].error("no `Performance Timer for ... iterations` above this line: it is cut off")
    blocks = [log.lines[start:end] for start, end in zip(starts, [*starts[1:], len(log.lines)], strict=True)]
    experiments = [_experiment(log, block, number) for number, block in enumerate(blocks, start=1)]
    versions = {one.match[1] or one.match[2] for one in log.found(_VERSION)}
    return ImportedFile(_TOOL, versions.pop() if len(versions) == 1 else "", tuple(experiments))


def _experiment(log: Log, block: Sequence[LogLine], number: int) -> ImportedExperiment:
    """One timer. Raises ParseError if a line is missing, or the times contradict each other."""
    headings = log.found(_TIMER, block[:1])
    if not headings:
        raise block[0].error("not of the form `Performance Timer for 10 iterations on 8 compute nodes`")
    iterations = headings[0].whole(1, "the number of iterations")
    ranks = headings[0].whole(2, "the number of compute nodes")
    mean_line, wall_line = _value(log, block, "mean"), _value(log, block, "wall")
    mean, wall = mean_line.printed(1, "the time per iteration"), wall_line.printed(1, "the wall-clock time")
    if not is_product(wall.value, (mean.value, mean.error), (iterations, wall.error / mean.value)):
        why = f"the wall-clock time is not {iterations} iterations x {mean_line.match[1]} s"
        raise wall_line.error(f"{why} (line {mean_line.line.number})")
    notes: dict[str, object] = {}
    if log.found(_CPU_LIKE, block):  # newer versions do not print it
        cpu = _value(log, block, "cpu")
        cpu_s = cpu.number_or_zero(1, "the CPU time")
        if cpu_s > _MOST_CPU * wall.value * ranks:
            raise cpu.error(f"more CPU time than {ranks} processes can use in {wall_line.match[1]} s")
        notes["cpu_time_of_all_ranks_s"] = cpu_s
    samples = (wall.sample("wall"), wall.sample("step", count=iterations))
    parameters: dict[str, Value] = {"timer": number, "ranks": ranks, "iterations": iterations}
    return ImportedExperiment("imported.fluent", samples, parameters, notes)


def _value(log: Log, block: Sequence[LogLine], name: str) -> Found:
    """The line of a value. Raises ParseError if it is missing or cut off, or there is another."""
    found = log.found(_VALUES[name], block)
    if not found:
        raise block[0].error(f"this timer has no line `{_WORDS[name]}`: it is damaged or cut off")
    if len(found) > 1:
        raise found[1].error(f"a second `{_WORDS[name]}` in one timer")
    return found[0]


_WORDS = {"mean": "Average wall-clock time per iteration", "wall": "Total wall-clock time", "cpu": "Total CPU time"}


IMPORTED = figures.imported(
    "fluent",
    "Ansys Fluent",
    "How long did Fluent take for these iterations?",
    (
        figures.count("timer", "number of the performance timer in the transcript, from 1"),
        figures.count("ranks", "solver processes, which Fluent calls compute nodes"),
        figures.count("iterations", "iterations that the timer covers"),
    ),
    (
        figures.time("wall", "elapsed time of all iterations of the timer"),
        figures.time("step", "mean elapsed time of an iteration"),
    ),
)

READER = figures.Reader("fluent", read)


BENCHMARK = application(
    IMPORTED,
    "How long does Fluent take for the iterations of a journal?",
    tool="Fluent",
    programs=("fluent",),
    install="Fluent needs a licence (https://www.ansys.com): put fluent on PATH",
    arguments=lambda params: ["3ddp", "-g", f"-t{params['processes']}", "-i", str(params[INPUT])],
    # the vendor's are for its customers; the journal must print the timer once (/parallel/timer/usage)
    starts="itself",
    evidence=FORMAT_SEEN,
)
