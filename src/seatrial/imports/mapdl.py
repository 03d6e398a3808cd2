"""Output files of Ansys Mechanical APDL (solve.out): the elapsed times of a run and of its solution.

The elapsed time of the run is printed with decimals but counts whole seconds. A run without a licence ends with `RUN
COMPLETED` as well, so a solution that took no time is refused.

Format from documentation: the only real output at hand is that of a run without a licence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from seatrial.imports.reader import Reader
from seatrial.imports.samples import time_sample
from seatrial.imports.tables import body
from seatrial.imports.text import Line, last_digit, only_one, read_lines
from seatrial.model.imported import ImportedExperiment, ImportedFile
from seatrial.model.parameter import Value

_TOOL = "MAPDL"
_COMPLETED = re.compile(r"\|? ?.{0,30}RUN COMPLETED ?\|?")
_TOTAL = re.compile(r"\|? ?Elapsed Time \(sec\) = ([0-9]{1,9}\.[0-9]{3})(?: .{0,60})?")
_TOTAL_LIKE = re.compile(r".{0,20}Elapsed Time \(sec\).{0,200}")
_PHASE = re.compile(r"Elapsed time spent (\S.{0,60}?) ?: ([0-9]{1,9}\.[0-9]) seconds")
_PHASE_LIKE = re.compile(r"Elapsed time spent .{0,200}")
_SOLUTION = "computing solution"
_PARTS = ("obtaining a license", "pre-processing model", "solution - ", _SOLUTION, "post-processing model")
"""The phases that follow each other. Others, if any, may be parts of these."""
_RELEASE = re.compile(r"Release: (.{1,30}?) (?:Build:|UP[0-9]{8}).{0,200}")
_RELEASE_IN_BOX = re.compile(
    r"\| (?:A(?:nsys|NSYS) )?(?:Release|MAPDL) (.{1,30}?) (?:Build .{1,20} )?UP[0-9]{8} .{0,80}\|"
)
_COUNTS = {
    "nodes": re.compile(r"Number of machines requested ?: (\S{1,20})"),
    "cores": re.compile(
        r"(?:Total number of cores requested|Number of cores(?: requested)?) ?: (\S{1,20})(?: .{0,60})?"
    ),
    "ranks": re.compile(r"Number of processes requested ?: (\S{1,20})"),
    "threads": re.compile(r"Number of threads per process requested ?: (\S{1,20})"),
}
_EQUATION_SOLVER = re.compile(r"Equation solver used ?: (\S.{0,40})")
_ERROR = re.compile(
    r"\*\*\* ?ERROR\b|LICENSE MANAGER ERROR|\blicense\b.{0,40}(?:not available|denied|could not)"
    r"|SIGSEGV|Segmentation fault|FLOATING POINT EXCEPTION",
    re.IGNORECASE,
)
_NOT_FINITE = re.compile(r"CONVERGENCE VALUE ?= ?[+-]?(?:nan|inf)", re.IGNORECASE)


def read(data: bytes) -> ImportedFile:
    """The output of one run. Raises ParseError for a run that failed, solved nothing or did not end, and for two
    runs in one file."""
    lines = [(line, " ".join(body(line).split())) for line in read_lines(data, _TOOL)]
    for line, text in lines:
        if _ERROR.search(text):
            raise line.error(_TOOL, "the run failed: it has no figure")
        if _NOT_FINITE.search(text):
            raise line.error(_TOOL, "the solution diverged (not a number): such a run has no figure")
    completed = [line for line, text in lines if _COMPLETED.fullmatch(text)]
    if not completed:
        why = "no `RUN COMPLETED`: the run has not ended, or the file is not from Ansys Mechanical APDL"
        raise lines[-1][0].error(_TOOL, why)
    only_one(completed, _TOOL, "`RUN COMPLETED`")
    releases = [
        (line, match[1])
        for line, text in lines
        if (match := _RELEASE.fullmatch(text) or _RELEASE_IN_BOX.fullmatch(text))
    ]
    if not releases:
        raise completed[0].error(_TOOL, "no line with the release of Ansys: from another program, or cut off")
    if len({release for _, release in releases}) > 1:
        raise releases[-1][0].error(_TOOL, f"the file names two releases; the first is at line {releases[0][0].number}")
    total_line = only_one([line for line, text in lines if _TOTAL_LIKE.fullmatch(text)], _TOOL, "`Elapsed Time (sec)`")
    total = _TOTAL.fullmatch(" ".join(body(total_line).split()))
    if total is None or total_line.number < completed[0].number:
        raise total_line.error(_TOOL, "not of the form `Elapsed Time (sec) = 12.000` below `RUN COMPLETED`")
    total_s = total_line.number_of(_TOOL, total[1], "the elapsed time")
    step = 1.0 / total_s if total_s.is_integer() else last_digit(total[1])
    samples = [time_sample("time", total_s, resolution=step)]
    phases = _phases(lines)
    if sum(float(value) for phase, value in phases.items() if phase.startswith(_PARTS)) > total_s + 1.0 + 0.1 * len(
        phases
    ):
        raise total_line.error(_TOOL, "less than the phases of the run took together")
    if _SOLUTION not in phases:
        why = f"no `Elapsed time spent {_SOLUTION}` above this line: whether it solved anything is unknown"
        raise completed[0].error(_TOOL, why)
    solution = phases[_SOLUTION]
    samples.append(time_sample("solution_time", float(solution), resolution=last_digit(solution)))
    experiment = ImportedExperiment("imported.mapdl", tuple(samples), _parameters(lines))
    return ImportedFile(_TOOL, releases[0][1], (experiment,))


def _phases(lines: Sequence[tuple[Line, str]]) -> dict[str, str]:
    """Phase -> its elapsed seconds as printed. Raises ParseError if one is damaged, or nothing was solved."""
    phases: dict[str, str] = {}
    for line, text in lines:
        if not _PHASE_LIKE.fullmatch(text):
            continue
        match = _PHASE.fullmatch(text)
        if match is None:
            raise line.error(_TOOL, "not of the form `Elapsed time spent ... : 1.2 seconds`: the line is damaged")
        if match[1] in phases:
            raise line.error(_TOOL, "a second time of this phase: two runs in one file; split it")
        if match[1] == _SOLUTION and float(match[2]) == 0:
            raise line.error(_TOOL, "the solution took no time: nothing was solved, or the run was too short")
        phases[match[1]] = match[2]
    return phases


def _parameters(lines: Sequence[tuple[Line, str]]) -> dict[str, Value]:
    parameters: dict[str, Value] = {}
    for line, text in lines:
        for name, pattern in _COUNTS.items():
            if match := pattern.fullmatch(text):
                parameters[name] = line.whole_of(_TOOL, match[1], f"the number of {name}")
        if match := _EQUATION_SOLVER.fullmatch(text):
            parameters["equation_solver"] = match[1]
    return parameters


READER = Reader("mapdl", read)
