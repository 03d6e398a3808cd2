"""Outputs of LAMMPS (log.lammps or its standard output), of the versions from 2016 on, which have a timing breakdown.

`Loop time` is the elapsed time of one `run` command without its set-up. An input may have several; the last counts.
The performance and the breakdown repeat it, so damage is detected. A file may hold several runs of the program: each is
an experiment of its own.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from seatrial.imports.application_log import Found, Log, Printed, refuse_exploded, time_per_ns_from_step
from seatrial.imports.reader import Reader
from seatrial.imports.text import Line, number
from seatrial.model.frozen import Frozen
from seatrial.model.imported import ImportedExperiment, ImportedFile
from seatrial.model.parameter import Value

_TOOL = "LAMMPS"
_BANNER = re.compile(r"LAMMPS \(([^)]{1,80})\).{0,80}")
_ERROR = re.compile(r"ERROR(?: on proc [0-9]{1,9})?: .{0,1000}")
_FATAL = re.compile(r".{0,80}(?:MPI_ABORT was invoked|Segmentation fault|CANCELLED AT).{0,200}")
_UNITS = re.compile(r"Unit style +: ([a-z]{1,20})")
_TIMESTEP = re.compile(r"Time step +: (\S{1,40})")
_PAIR = re.compile(r"\(1\) pair ([^ ,]{1,80}), perpetual.{0,80}")
_LOOP = re.compile(r"Loop time of (\S{1,40}) on ([0-9]{1,9}) procs for ([0-9]{1,15}) steps with ([0-9]{1,15}) atoms")
_LOOP_LIKE = re.compile(r"Loop time of.{0,200}")
_PERFORMANCE = re.compile(
    r"Performance: (?:\S{1,40} ns/day, (?P<hours>\S{1,40}) hours/ns|.{1,80})"
    r", (?P<rate>[^ ,]{1,40}) timesteps/s(?:, .{1,80})?"
)
_TASKS = re.compile(r"(\S{1,20})% CPU use with ([0-9]{1,9}) MPI tasks x ([0-9]{1,9}|no) OpenMP threads")
_SECTION = re.compile(
    r"([A-Z][A-Za-z0-9_/-]{0,19}) *\|([^|]{1,40})\|([^|]{1,40})\|([^|]{1,40})\|([^|]{1,20})\|([^|]{1,20})"
)
_BREAKDOWN = "MPI task timing breakdown:"
_TOTAL = re.compile(r"Total wall time: ([0-9]{1,6}):([0-5][0-9]):([0-5][0-9])")
_FS_OF_UNIT = {"real": 1.0, "metal": 1e3}
"""Style of units -> femtoseconds of its unit of time; their temperatures are in kelvins (LAMMPS' command `units`)."""
_AN_HOUR_S = 3600.0
_SUM_SLACK = 1e-3
"""Each section is printed to five digits."""


class _Run(Frozen):
    """One `run` command."""

    step: Printed
    loop: Printed
    parameters: dict[str, Value]
    performance: Found


def read(data: bytes) -> ImportedFile:
    """The runs of LAMMPS in a file. Raises ParseError if one did not end, failed or exploded, or if its numbers
    contradict each other."""
    log = Log(_TOOL, data)
    banners = log.found(_BANNER)
    if not banners:
        raise log.error("no line such as 'LAMMPS (29 Sep 2021)': from another program, or its beginning is missing")
    log.refuse(_ERROR, "LAMMPS stopped with an error: the run has no figure")
    log.refuse(_FATAL, "the run was ended: it has no figure")
    versions = {one.text(1) for one in banners}
    ends = [one.line.number - 1 for one in banners[1:]] + [len(log.lines)]
    experiments = tuple(
        _experiment(log, log.lines[banner.line.number - 1 : end]) for banner, end in zip(banners, ends, strict=True)
    )
    return ImportedFile(_TOOL, versions.pop() if len(versions) == 1 else "", experiments)


def _experiment(log: Log, lines: Sequence[Line]) -> ImportedExperiment:
    """One start of the program."""
    total = _only(log, _TOTAL, lines, "the run has not ended, or the file is cut off: there is no `Total wall time`")
    like, loops = log.found(_LOOP_LIKE, lines), log.found(_LOOP, lines)
    if not like:
        raise lines[0].error(_TOOL, "no `Loop time` follows: nothing was run")
    if len(loops) < len(like):
        whole = {one.line.number for one in loops}
        raise next(one for one in like if one.line.number not in whole).error("a damaged `Loop time`")
    _check_total(total, loops)
    units, timestep = _last(log, _UNITS, lines), _last(log, _TIMESTEP, lines)
    fs = _FS_OF_UNIT.get(units.match[1]) if units else None
    first, last_line = lines[0].number, lines[-1].number
    starts = [first, *(loop.line.number for loop in loops), last_line + 1]
    runs = [
        _run(log, loop, log.lines[before - 1 : loop.line.number - 1], log.lines[loop.line.number : after - 1], fs)
        for loop, before, after in zip(loops, starts[:-2], starts[2:], strict=True)
    ]
    last = runs[-1]
    parameters = dict(last.parameters)
    if pairs := log.found(_PAIR, lines):
        parameters["pair"] = pairs[-1].text(1)
    samples = [last.step.sample("step"), last.loop.sample("loop")]
    if fs is not None and timestep is not None:
        timestep_fs = timestep.number(1, "the time step") * fs
        parameters["timestep"] = f"{timestep_fs:g} fs"
        samples.append(_time_per_ns(last, timestep_fs).sample("ns_time"))
    notes = {"runs": len(runs)}
    return ImportedExperiment("imported.lammps", tuple(samples), parameters, notes)


def _time_per_ns(run: _Run, timestep_fs: float) -> Printed:
    """Seconds per simulated nanosecond. Raises ParseError if the performance contradicts the time step."""
    computed = time_per_ns_from_step(run.step, timestep_fs)
    stated = run.performance
    if stated.match["hours"] is None:
        raise stated.error("no hours/ns, which units real and metal have")
    if not stated.printed("hours", "the hours per ns").scaled(_AN_HOUR_S).agrees(computed):
        raise stated.error(f"{stated.match['hours']} hours/ns are not that of steps of {timestep_fs:g} fs")
    return computed


def _run(log: Log, loop: Found, before: Sequence[Line], after: Sequence[Line], fs: float | None) -> _Run:
    """The `run` command of this loop time, with the lines from the loop before it and to the loop after it."""
    took, steps = loop.printed(1, "the loop time"), loop.whole(3, "the steps")
    tasks = _only(log, _TASKS, after, f"no line of MPI tasks follows line {loop.line.number}")
    ranks, threads = tasks.whole(2, "the ranks"), 1 if tasks.match[3] == "no" else tasks.whole(3, "the threads")
    if ranks * threads != loop.whole(2, "the processes"):
        raise tasks.error(f"not the {loop.match[2]} processes of line {loop.line.number}")
    stated = _only(log, _PERFORMANCE, after, f"no performance follows line {loop.line.number}: a minimisation has none")
    if not took.scaled(1 / steps).inverse().agrees(stated.printed("rate", "the timesteps per second")):
        raise stated.error(f"{stated.match['rate']} timesteps/s are not {steps} steps in {loop.match[1]} s")
    _check_breakdown(log, after, loop, took)
    _check_rows(log, before, loop, steps, has_kelvins=fs is not None)
    parameters: dict[str, Value] = {
        "atoms": loop.whole(4, "the atoms"),
        "steps": steps,
        "ranks": ranks,
        "threads": threads,
    }
    return _Run(took.scaled(1 / steps), took, parameters, stated)


def _check_total(total: Found, loops: Sequence[Found]) -> None:
    """Raise ParseError if the whole took less than its loops."""
    hours, minutes, seconds = (int(total.match[group]) for group in (1, 2, 3))
    took = sum(loop.number(1, "the loop time") for loop in loops)
    if 3600 * hours + 60 * minutes + seconds + 1 < took:
        raise total.error(f"below the {took:g} s of its loops")


def _check_breakdown(log: Log, lines: Sequence[Line], loop: Found, took: Printed) -> None:
    """Raise ParseError if the sections do not add up to the loop time."""
    start = next((at for at, line in enumerate(lines) if log.text(line) == _BREAKDOWN), None)
    if start is None:
        raise loop.error("no `MPI task timing breakdown` follows: from a version before 2016, or cut off")
    sections = [
        found
        for line in itertools.takewhile(lambda line: log.text(line), lines[start + 3 :])
        for found in log.found(_SECTION, [line])
    ]
    times = [found.line.number_or_zero(_TOOL, found.match[3].strip(), "a section's time") for found in sections]
    if abs(sum(times) - took.value) > _SUM_SLACK * took.value + took.error:
        raise loop.error(f"its breakdown adds up to {sum(times):g} s")


def _check_rows(log: Log, lines: Sequence[Line], loop: Found, steps: int, *, has_kelvins: bool) -> None:
    """Raise ParseError for a row with a value that is not a number or a temperature that is none, and for rows of other
    steps. An input may print its rows in another form; then nothing is checked."""
    heads = [at for at, line in enumerate(lines) if log.text(line).split()[:1] == ["Step"]]
    if not heads:
        return
    columns = log.text(lines[heads[-1]]).split()
    rows = []
    for line in lines[heads[-1] + 1 :]:
        cells = log.text(line).split()
        if len(cells) != len(columns) or not cells[0].isdecimal():
            continue  # a warning, or what a `print` of the input writes
        if any(number(cell) is None for cell in cells):
            raise line.error(_TOOL, "not all of its values are numbers: the simulation has exploded, or it is damaged")
        if has_kelvins and "Temp" in columns:
            at = columns.index("Temp")
            refuse_exploded(Found(_TOOL, line, re.fullmatch(r".*", log.text(line), re.DOTALL) or loop.match), cells[at])
        rows.append(int(cells[0]))
    if len(rows) < 2 or rows[-1] - rows[0] != steps:
        raise loop.error(f"{steps} steps, but the rows above are of other steps")


def _only(log: Log, pattern: re.Pattern[str], lines: Sequence[Line], why: str) -> Found:
    """The one line of this pattern among these. Raises ParseError with `why` if there is none, or if there are more."""
    found = log.found(pattern, lines)
    if not found:
        raise (lines[-1] if lines else log.lines[-1]).error(_TOOL, why)
    if len(found) > 1:
        raise found[1].error(f"a second line of this kind; the first is on line {found[0].line.number}")
    return found[0]


def _last(log: Log, pattern: re.Pattern[str], lines: Sequence[Line]) -> Found | None:
    found = log.found(pattern, lines)
    return found[-1] if found else None


READER = Reader("lammps", read)
