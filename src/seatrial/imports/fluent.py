"""Transcripts of Ansys Fluent: the performance timer that `/parallel/timer/usage` prints.

Each timer of a transcript is one experiment: `timer` is its number, because nothing says whether two of them solved the
same. The CPU time is a sum over the processes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from seatrial.errors import ParseError
from seatrial.imports.reader import Reader
from seatrial.imports.samples import time_sample
from seatrial.imports.tables import body
from seatrial.imports.text import Line, half_unit, is_product, last_digit, read_lines
from seatrial.model.imported import ImportedExperiment, ImportedFile
from seatrial.model.parameter import Value

_TOOL = "Fluent"
_TIMER = re.compile(r"(?:Performance )?Timer for ([0-9]{1,12}) iterations? on ([0-9]{1,9}) compute nodes?")
_TIMER_LIKE = re.compile(r".{0,80}Performance Timer.{0,200}")
_VERSION = re.compile(
    r"Welcome to A(?:NSYS|nsys) Fluent (\d[\w .]{0,20}?)|.{0,200}/fluent(\d\d\.\d[.\d]{0,8})/.{0,400}"
)
_MEAN = re.compile(r"Average wall-clock time per iteration:\s{1,40}(\S{1,40}) sec")
_WALL = re.compile(r"Total wall-clock time:\s{1,60}(\S{1,40}) sec")
_CPU = re.compile(r"Total CPU time:\s{1,60}(\S{1,40}) sec")
_CPU_LIKE = re.compile(r"Total CPU time.{0,100}")
_VALUES = {"mean": _MEAN, "wall": _WALL, "cpu": _CPU}
_FAILED = re.compile(
    r"processes or machines have crashed|lost connection while reading|Fatal error|fatal signal|BAD TERMINATION"
    r"|process could not be started|[Dd]ivergence detected in|[Ff]loating point (?:exception|error)"
    r"|exited before MPI_Finalize|[Nn]o licenses? available|[Ff]ailed to (?:obtain|checkout) a?.{0,20}license"
)
_NOT_FINITE = re.compile(r"^[0-9]{1,12} .{0,400}?(?<![\w.])[+-]?(?:nan|inf)(?![\w.])", re.IGNORECASE)
_MOST_CPU = 1.15
"""CPU time over elapsed time x processes: they also wait while a timer is printed."""


def read(data: bytes) -> ImportedFile:
    """The timers of one transcript. Raises ParseError if there is none, one is damaged, or the run crashed."""
    lines = [(line, " ".join(body(line).split())) for line in read_lines(data, _TOOL)]
    for line, text in lines:
        if _FAILED.search(text):
            raise line.error(_TOOL, "the run crashed or diverged: it has no figure")
        if _NOT_FINITE.search(text):
            raise line.error(_TOOL, "a residual is not a number: such a run has no figure")
    starts = [i for i, (_, text) in enumerate(lines) if _TIMER_LIKE.fullmatch(text) or _TIMER.fullmatch(text)]
    if not starts:
        why = "no `Performance Timer for ... iterations`: the run has not ended, or /parallel/timer/usage is not in it"
        raise ParseError(_TOOL, None, "", why)
    for line, text in lines[: starts[0]]:
        if any(pattern.fullmatch(text) for pattern in _VALUES.values()):
            raise line.error(_TOOL, "no `Performance Timer for ... iterations` above this line: it is cut off")
    blocks = [lines[start:end] for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)]
    experiments = [_experiment(block, number) for number, block in enumerate(blocks, start=1)]
    versions = {match[1] or match[2] for _, text in lines if (match := _VERSION.fullmatch(text))}
    return ImportedFile(_TOOL, versions.pop() if len(versions) == 1 else "", tuple(experiments))


def _experiment(block: Sequence[tuple[Line, str]], number: int) -> ImportedExperiment:
    """One timer. Raises ParseError if a line is missing, or the times contradict each other."""
    heading = block[0][0]
    match = _TIMER.fullmatch(block[0][1])
    if match is None:
        raise heading.error(_TOOL, "not of the form `Performance Timer for 10 iterations on 8 compute nodes`")
    iterations = heading.whole_of(_TOOL, match[1], "the number of iterations")
    ranks = heading.whole_of(_TOOL, match[2], "the number of compute nodes")
    (mean_line, mean), (wall_line, wall) = _value(block, "mean"), _value(block, "wall")
    mean_s = mean_line.number_of(_TOOL, mean, "the time per iteration")
    wall_s = wall_line.number_of(_TOOL, wall, "the wall-clock time")
    if not is_product(wall_s, (mean_s, half_unit(mean)), (iterations, half_unit(wall) / mean_s)):
        raise wall_line.error(
            _TOOL, f"the wall-clock time is not {iterations} iterations x {mean} s (line {mean_line.number})"
        )
    notes: dict[str, object] = {}
    if any(_CPU_LIKE.fullmatch(text) for _, text in block):  # newer versions do not print it
        cpu_line, cpu = _value(block, "cpu")
        cpu_s = cpu_line.number_or_zero(_TOOL, cpu, "the CPU time")
        if cpu_s > _MOST_CPU * wall_s * ranks:
            raise cpu_line.error(_TOOL, f"more CPU time than {ranks} processes can use in {wall} s")
        notes["cpu_time_of_all_ranks_s"] = cpu_s
    samples = (
        time_sample("time", wall_s, resolution=last_digit(wall)),
        time_sample("iteration_time", wall_s / iterations, resolution=last_digit(wall)),
    )
    parameters: dict[str, Value] = {"timer": number, "ranks": ranks, "iterations": iterations}
    return ImportedExperiment("imported.fluent", samples, parameters, notes)


def _value(block: Sequence[tuple[Line, str]], name: str) -> tuple[Line, str]:
    """The line of a value, and the value as printed. Raises ParseError if it is missing, or there is another."""
    found = [(line, match[1]) for line, text in block if (match := _VALUES[name].fullmatch(text))]
    if not found:
        raise block[0][0].error(_TOOL, f"this timer has no line `{_WORDS[name]}`: it is damaged or cut off")
    if len(found) > 1:
        raise found[1][0].error(_TOOL, f"a second `{_WORDS[name]}` in one timer")
    if not found[0][0].is_ended:
        raise found[0][0].error(_TOOL, "the file ends in this line: it may have been cut off")
    return found[0]


_WORDS = {"mean": "Average wall-clock time per iteration", "wall": "Total wall-clock time", "cpu": "Total CPU time"}

READER = Reader("fluent", read)
