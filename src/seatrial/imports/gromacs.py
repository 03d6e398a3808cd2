"""Logs of GROMACS' mdrun (md.log), versions 4.5 to 2024.

`Wall t` is the elapsed time since the counters were last reset, and ns/day and hours/ns follow from it and the steps,
so damage to one of them is detected. The time of a simulated nanosecond is taken from the number with the most digits.
`Core t` sums over cores and is no elapsed time.
"""

from __future__ import annotations

import re

from seatrial.imports.application_log import Found, Log, Printed, refuse_exploded, time_per_ns_from_step
from seatrial.imports.reader import Reader
from seatrial.imports.text import number
from seatrial.model.imported import ImportedExperiment, ImportedFile
from seatrial.model.parameter import Value

_TOOL = "GROMACS"
_VERSION = re.compile(r"GROMACS(?: version:|: +[^,]{1,200}, version) +(?:VERSION )?(\S{1,80})")
_BANNER = re.compile(r"Log file opened on .{1,200}|GROMACS: +(?:gmx )?mdrun\S{0,20}, version .{1,80}")
_FATAL = re.compile(r"(?:Fatal error:|Program .{1,80}, (?:VERSION|version) .{1,80}|.{0,80}Segmentation fault).{0,200}")
_DT = re.compile(r"(?:dt|delta_t) += (\S{1,40})")
_STEPS = re.compile(r"nsteps += ([0-9]{1,15})")
_OVERRIDING = re.compile(r"Overriding nsteps with value passed on the command line: ([0-9]{1,15}) steps.{0,80}")
_FIRST = re.compile(r"init[-_]step += ([0-9]{1,15})")
_RESET = re.compile(r"[Ss]tep ([0-9]{1,15}): resetting all time and cycle counters")
_ENDS_EARLY = re.compile(r"(?:Step ([0-9]{1,15}): )?Run time exceeded .{1,200}")
_STATISTICS = re.compile(r"Statistics over ([0-9]{1,15}) steps(?: \[.{1,80}\])? using [0-9]{1,15} frames")
_TIME_LIKE = re.compile(r"Time: +[0-9].{1,200}")
_TIME = re.compile(r"Time: +(\S{1,40}) +(\S{1,40}) +(\S{1,40})")
_COLUMNS = re.compile(r"Core t \(s\) +Wall t \(s\) +\(%\)")
_PERFORMANCE = re.compile(r"Performance: +(\S{1,40}) +(\S{1,40})")
_RATES = re.compile(r"\(ns/day\) +\(hour/ns\)")
_END = re.compile(r"Finished mdrun on (?:rank|node) 0 .{1,80}")
_AVERAGES = "A V E R A G E S"
_ATOMS = re.compile(r"There are: ([0-9]{1,15}) Atoms")
_RANKS = re.compile(r"Using ([0-9]{1,9}) MPI (?:process(?:es)?|threads?)")
_THREADS = re.compile(r"Using ([0-9]{1,9}) OpenMP threads?(?: per t?MPI (?:process|thread))?")
_NODES = re.compile(r"Running on ([0-9]{1,9}) nodes? with total .{1,200}")
_WARNING = re.compile(r".{0,80}(?:LINCS WARNING|[Ww]ater molecule starting at atom).{0,200}")
_ANY = re.compile(r".*", re.DOTALL)
_ENERGY_COLUMN = 15
"""Width of a column in a table of energies."""
_PS_PER_NS, _A_DAY_S, _AN_HOUR_S, _FS_PER_PS = 1000.0, 86400.0, 3600.0, 1000.0
_COMPUTED_IN_SINGLE = 2e-4
"""Old versions compute the rates from single precision, and count the step of the start or not."""


def read(data: bytes) -> ImportedFile:
    """One run of mdrun. Raises ParseError if it did not end, failed or exploded, if the file holds two runs, or if its
    numbers contradict each other."""
    log = Log(_TOOL, data)
    if not log.found(_BANNER) or not log.found(_VERSION):
        raise log.error("no line such as 'GROMACS: gmx mdrun, version 2022.5': from another program, or damaged")
    log.refuse(_FATAL, "mdrun failed: the run has no figure")
    if not log.found(_END):
        raise log.not_ended("there is no `Finished mdrun`")
    log.only(_END, "`Finished mdrun`")
    time = log.of_form(_TIME_LIKE, _TIME, "Time: CORE WALL PERCENT")
    if not log.found(_COLUMNS, log.lines[: time.line.number - 1]):
        raise time.error("no header `Core t (s) Wall t (s) (%)` above it")
    wall = time.printed(2, "the wall time")
    rates = log.only(_PERFORMANCE, "`Performance:`")
    if not log.found(_RATES, log.lines[: rates.line.number - 1]):
        raise rates.error("no header `(ns/day) (hour/ns)` above it")
    _refuse_hot(log)
    dt = log.only(_DT, "`dt`")
    timestep_fs = dt.number(1, "the time step") * _FS_PER_PS
    steps = _steps(log)
    step, ns = _times(rates, wall, timestep_fs, steps)
    parameters, version = _parameters(log, timestep_fs, steps), log.found(_VERSION)[0].text(1)
    samples = (ns.sample("ns_time"), step.sample("step"), wall.sample("time"))
    warnings = log.found(_WARNING)
    remarks = (f"line {warnings[0].line.number}: {warnings[0].text(0)}: may be unstable",) if warnings else ()
    experiment = ImportedExperiment("imported.gromacs", samples, parameters, remarks=remarks)
    return ImportedFile(_TOOL, version, (experiment,))


def _steps(log: Log) -> int:
    """How many steps were counted: those after the last reset of the counters. Raises ParseError."""
    overriding = log.found(_OVERRIDING)
    asked = overriding[-1] if overriding else log.only(_STEPS, "`nsteps`")
    statistics = log.only(_STATISTICS, "`Statistics over ... steps`")
    ran = statistics.whole(1, "the steps of the statistics")
    if ran != asked.whole(1, "nsteps") + 1 and not log.found(_ENDS_EARLY):
        raise statistics.error(f"line {asked.line.number} has {asked.match[1]} steps: steps are missing, or two runs")
    resets = log.found(_RESET)
    first = log.found(_FIRST)
    begun = first[-1].whole(1, "the first step", least=0) if first else 0
    counted = ran - (max(resets[-1].whole(1, "the step of the reset", least=0) - begun, 0) if resets else 0)
    if counted < 1:
        raise resets[-1].error(f"after the last of {ran} steps")
    return counted


def _times(rates: Found, wall: Printed, timestep_fs: float, steps: int) -> tuple[Printed, Printed]:
    """Seconds per step and per simulated nanosecond, from the number with the most digits. Raises ParseError if they
    contradict each other."""
    by_wall = time_per_ns_from_step(wall.scaled(1 / steps), timestep_fs)
    by_day = rates.printed(1, "ns/day").inverse(_A_DAY_S)
    by_hours = rates.printed(2, "hour/ns").scaled(_AN_HOUR_S)
    for other, what in ((by_day, f"{rates.match[1]} ns/day"), (by_hours, f"{rates.match[2]} hour/ns")):
        slack = _COMPUTED_IN_SINGLE + 1 / steps
        if abs(other.value - by_wall.value) > other.error + by_wall.error + slack * by_wall.value:
            raise rates.error(f"{what} are not {steps} steps of {timestep_fs:g} fs in {wall.value:g} s")
    ns = min((by_wall, by_day, by_hours), key=lambda one: one.error / one.value)
    return ns.scaled(timestep_fs / (_FS_PER_PS * _PS_PER_NS)), ns


def _refuse_hot(log: Log) -> None:
    """Raise ParseError for a mean of an energy that is not a number, or a temperature that is none."""
    texts = [line.text for line in log.lines]
    starts = [at for at, text in enumerate(texts) if _AVERAGES in text]
    if not starts:
        return
    for at in range(starts[-1], min(starts[-1] + 40, len(texts) - 1)):
        names, values = texts[at].rstrip("\r\n"), texts[at + 1].rstrip("\r\n")
        if "Temperature" not in names:
            continue
        end = names.index("Temperature") + len("Temperature")
        token = values[max(0, end - _ENERGY_COLUMN) : end].strip()
        found = log.found(_ANY, [log.lines[at + 1]])[0]
        if number(token) is None:
            raise found.error("the mean temperature is not a number: the simulation has exploded")
        refuse_exploded(found, token)
        return


def _parameters(log: Log, timestep_fs: float, steps: int) -> dict[str, Value]:
    parameters: dict[str, Value] = {"timestep": f"{timestep_fs:g} fs", "steps": steps}
    for name, pattern in (("atoms", _ATOMS), ("ranks", _RANKS), ("threads", _THREADS), ("nodes", _NODES)):
        found = log.found(pattern)
        if len({one.match[1] for one in found}) == 1:
            parameters[name] = found[0].whole(1, name)
    return parameters


READER = Reader("gromacs", read)
