"""Output files of the Ansys CFX solver: the elapsed time of the solver, and per iteration.

`CPU SECONDS` is a sum over the processes. The number of iterations is that of the last one; `Maximum Number of
Iterations` is a limit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from seatrial.errors import ParseError
from seatrial.imports.reader import Reader
from seatrial.imports.samples import time_sample
from seatrial.imports.tables import body
from seatrial.imports.text import Line, last_digit, number, only_one, read_lines
from seatrial.model.imported import ImportedExperiment, ImportedFile
from seatrial.model.parameter import Value

_TOOL = "CFX"
_WALL = re.compile(r"CFD Solver wall clock seconds: ([0-9]\.[0-9]{4}E[+-][0-9]{2})")
_WALL_LIKE = re.compile(r".{0,80}wall clock seconds.{0,200}")
_FINISHED = re.compile(r"This run of the .{0,40}CFX.{0,20} has finished\.?", re.IGNORECASE)
_MOST = re.compile(r"Maximum Number of Iterations = ([0-9]{1,9})")
_ITERATION = re.compile(r"OUTER LOOP ITERATION = ([0-9]{1,9}) (?:\( ?[0-9]{1,9}\) )?CPU SECONDS = (\S{1,20})")
_TIME_STEP = re.compile(
    r"TIME STEP = ([0-9]{1,9}) (?:\( ?[0-9]{1,9}\) )?SIMULATION TIME = (\S{1,20}) CPU SECONDS = (\S{1,20})"
)
_STARTED = re.compile(r"CFD Solver started: (.{10,40})")
_STOPPED = re.compile(r"CFD Solver finished: (.{10,40})")
_PROCESSES = re.compile(r"Number of Processes = ([0-9]{1,9})")
_VERSION = re.compile(
    r".{0,80}CFX(?:\(R\))?[- ]Solver(?: Release)? (20[0-9]{2} ?R[0-9]|[0-9]{1,2}\.[0-9.]{1,6}).{0,80}", re.IGNORECASE
)
_OUTCOME = re.compile(r"CFD Solver: (\S.{0,100})")
_FAILED = re.compile(
    r"ERROR #[0-9]{3,12} has occurred|An error has occurred in cfx5solve|Fatal overflow|Details of error"
    r"|Floating point (?:exception|error)|terminated abnormally|exited with return code"
    r"|\blicense\b.{0,40}(?:not available|denied)",
    re.IGNORECASE,
)
_NOT_FINITE = re.compile(r"^\| \S.{0,40}\|.{0,100}(?<![\w.])[+-]?(?:nan|inf(?:inity)?)(?![\w.])", re.IGNORECASE)


def read(data: bytes) -> ImportedFile:
    """The output of one run. Raises ParseError for a run that failed, diverged or did not end, and for two runs."""
    lines = [(line, " ".join(body(line).split())) for line in read_lines(data, _TOOL)]
    for line, text in lines:
        if _FAILED.search(text):
            raise line.error(_TOOL, "the run failed: it has no figure")
        if _NOT_FINITE.search(text):
            raise line.error(_TOOL, "a residual is not a number: such a run has no figure")
    if not any("CFX" in text or "CFD Solver" in text or "OUTER LOOP" in text for _, text in lines):
        raise ParseError(_TOOL, None, "", "nothing that the CFX solver prints: from another program?")
    if not any(_FINISHED.fullmatch(text) for _, text in lines):
        why = "no `This run of the ANSYS CFX Solver has finished.`: the run has not ended, or the file is cut off"
        raise lines[-1][0].error(_TOOL, why)
    wall_line = only_one([line for line, text in lines if _WALL_LIKE.fullmatch(text)], _TOOL, "`wall clock seconds`")
    wall = _WALL.fullmatch(" ".join(body(wall_line).split()))
    if wall is None:
        raise wall_line.error(_TOOL, "not of the form `CFD Solver wall clock seconds: 1.2345E+02`: the line is damaged")
    wall_s = wall_line.number_of(_TOOL, wall[1], "the wall clock time")
    _check_stamps(lines, wall_line, wall_s)
    parameters: dict[str, Value] = {}
    ranks = [int(match[1]) for _, text in lines if (match := _PROCESSES.fullmatch(text))]
    if ranks:  # the partitioner may run on one
        parameters["ranks"] = max(ranks)
    samples = [time_sample("time", wall_s, resolution=last_digit(wall[1]))]
    notes: dict[str, object] = {}
    for name, pattern in (("iteration", _ITERATION), ("time_step", _TIME_STEP)):
        if count := _count(lines, pattern, wall_line):
            samples.append(time_sample(f"{name}_time", wall_s / count, resolution=last_digit(wall[1])))
            notes[f"{name}s"] = count
            break
    if outcomes := [match[1] for _, text in lines if (match := _OUTCOME.fullmatch(text))]:
        notes["outcome"] = outcomes[-1]
    version = next((match[1] for _, text in lines if (match := _VERSION.fullmatch(text))), "")
    return ImportedFile(_TOOL, version, (ImportedExperiment("imported.cfx", tuple(samples), parameters, notes),))


def _count(lines: Sequence[tuple[Line, str]], pattern: re.Pattern[str], wall_line: Line) -> int:
    """The number of the last iteration or time step, 0 if there is none. Raises ParseError if they are out of order."""
    last, cpu_s = 0, 0.0
    limits = [int(match[1]) for _, text in lines if (match := _MOST.fullmatch(text))]
    most = max(limits, default=10**9) if pattern is _ITERATION else 10**9
    for line, text in lines:
        if match := pattern.fullmatch(text):
            now, cpu = int(match[1]), number(match[match.re.groups])
            if now <= last or cpu is None or cpu < cpu_s:
                raise line.error(_TOOL, f"not after number {last}: two runs, or a damaged line")
            if now > most:
                raise line.error(_TOOL, f"the file states at most {most} iterations")
            if line.number > wall_line.number:
                raise line.error(_TOOL, "an iteration after the end of the run: two runs in one file; split it")
            last, cpu_s = now, cpu
    return last


def _check_stamps(lines: Sequence[tuple[Line, str]], wall_line: Line, wall_s: float) -> None:
    """The wall clock time must be that between the two dates, to the second. Raises ParseError."""
    times = []
    for pattern in (_STARTED, _STOPPED):
        found = [match[1] for _, text in lines if (match := pattern.fullmatch(text))]
        if len(found) != 1:
            return
        try:
            times.append(datetime.strptime(found[0].strip(), "%a %b %d %H:%M:%S %Y"))
        except ValueError:
            return
    between_s = (times[1] - times[0]).total_seconds()
    if abs(between_s - wall_s) > 3 + 0.002 * wall_s:
        raise wall_line.error(_TOOL, f"the solver started and finished {between_s:g} s apart, which contradicts this")


READER = Reader("cfx", read)
