"""Logs of Quantum ESPRESSO's pw.x.

`PWSCF : ... CPU ... WALL` is the whole run. From one hour on it is printed in whole minutes. CPU time is not elapsed
time: threads add up. `JOB DONE.` alone is not an end: pw.x prints it after it ran out of its own time as well. The
time is checked against the whole seconds at which the run began and ended, and against those of its stages.
"""

from __future__ import annotations

import re
from datetime import datetime

from seatrial.imports.application_log import Found, Log, Printed
from seatrial.imports.reader import Reader
from seatrial.imports.samples import time_sample
from seatrial.imports.text import half_unit
from seatrial.model.imported import ImportedExperiment, ImportedFile
from seatrial.model.parameter import Value

_TOOL = "Quantum ESPRESSO"
_CLOCK = r"([0-9]{1,2}): *([0-9]{1,2}): *([0-9]{1,2})"
_DATE = r"([0-9]{1,2}) ?([A-Z][a-z]{2}) ?([0-9]{4})"
_BANNER = re.compile(rf"Program PWSCF v\.?([0-9]\S{{0,20}}) .{{0,40}}?starts on +{_DATE} +at +{_CLOCK}")
_BANNER_LIKE = re.compile(r"Program PWSCF.{0,80}")
_ENDED = re.compile(rf"This run was terminated on: +{_CLOCK} +{_DATE}")
_TIME = r"((?:[0-9]{1,4}d)? *(?:[0-9]{1,2}h)? *(?:[0-9]{1,2}m)? *(?:[0-9]{1,5}(?:\.[0-9]{1,3})?s)?)"
_TOTAL = re.compile(rf"PWSCF +: *{_TIME} +CPU(?: time,)? *{_TIME} +(?:WALL|wall time)", re.IGNORECASE)
_JOB_DONE = re.compile(r"JOB DONE\.")
_STAGE = re.compile(r"(init_run|electrons|update_pot|forces|stress) +: +\S{1,20}s CPU +(\S{1,20})s WALL \(.{1,20}\)")
_STOPPED = re.compile(
    r"(?:Maximum CPU time exceeded|Calculation stopped in .{1,80}|Signal Received, stopping .{0,40}"
    r"|Program stopped by user request.{0,80})"
)
_ERROR = re.compile(r"(?:task # +[0-9]+|from \S+ : error # +.{1,40}|Error in routine .{1,120})")
_FAILED_TO_CONVERGE = re.compile(r"convergence NOT achieved.{0,40}stopping.{0,40}")
_UNCONVERGED = re.compile(
    r"(?:.{0,30}convergence NOT achieved.{0,80}|The maximum number of steps has been reached\."
    r"|bfgs failed after.{0,80}|.{0,20}history already reset.{0,80})"
)
_PROCESSORS = re.compile(r"(Parallel|Serial) .{1,60}, running on +([0-9]{1,9}) processor(?:s| cores?)")
_RANKS = re.compile(r"Number of MPI processes: +([0-9]{1,9})")
_THREADS = re.compile(r"Threads/MPI process: +([0-9]{1,9})")
_NODES = re.compile(r"MPI processes distributed on +([0-9]{1,9}) nodes")
_ATOMS = re.compile(r"number of atoms/cell += +([0-9]{1,12})")
_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_LEFT_OUT_S = 3.0
"""pw.x prints its time before it ends, and the moments are whole seconds."""


def read(data: bytes) -> ImportedFile:
    """One run of pw.x. Raises ParseError if it did not end, stopped early, or its times contradict each other."""
    log = Log(_TOOL, data)
    log.banner(_BANNER_LIKE, "Program PWSCF v.7.2 starts on 1Jan2024 at 10:00:00")
    banner = log.banner(_BANNER, "Program PWSCF v.7.2 starts on 1Jan2024 at 10:00:00")
    log.refuse(_STOPPED, "pw.x stopped before it was done: `JOB DONE.` below means only that it stopped in order")
    log.refuse(_ERROR, "pw.x failed: the run has no figure")
    log.refuse(_FAILED_TO_CONVERGE, "pw.x stopped because the electrons did not converge: the run has no figure")
    if not log.found(_JOB_DONE):
        raise log.not_ended("there is no `JOB DONE.`")
    total = log.only(_TOTAL, "line `PWSCF : ... CPU ... WALL`")
    wall = _seconds(total, 2)
    ended = log.only(_ENDED, "line `This run was terminated on`")
    _check_span(total, wall, (_moment(ended, date=4, clock=1) - _moment(banner, date=2, clock=5)).total_seconds())
    _check_stages(log, total, wall)
    remarks = [f"line {one.line.number}: {one.text(0)}" for one in log.found(_UNCONVERGED)[:1]]
    experiment = ImportedExperiment(
        "imported.qe",
        (time_sample("wall", wall.value, resolution=wall.resolution),),
        _parameters(log),
        remarks=tuple(remarks),
    )
    return ImportedFile(_TOOL, banner.text(1), (experiment,))


def _check_span(total: Found, wall: Printed, span_s: float) -> None:
    """Raise ParseError if the time is not that from the begin to the end, which are whole seconds."""
    error_s = 1.5 + 2 * wall.error  # minutes are cut off, not rounded
    if not wall.value - error_s <= span_s <= wall.value + error_s + _LEFT_OUT_S + 0.01 * wall.value:
        raise total.error(f"{wall.value:g} s, but the run took {span_s:g} s from its begin to its end")


def _check_stages(log: Log, total: Found, wall: Printed) -> None:
    """Raise ParseError if the stages of a run, which do not overlap, took longer than the run."""
    stages = [one.line.number_or_zero(_TOOL, one.match[2], f"the time of {one.match[1]}") for one in log.found(_STAGE)]
    if 0.99 * sum(stages) - 0.005 * len(stages) > wall.value + 2 * wall.error:
        raise total.error(f"{wall.value:g} s, but the stages of the run took {sum(stages):g} s")


def _seconds(found: Found, group: int) -> Printed:
    """A time such as `1m 2.33s`. Raises ParseError for an empty one, or 0 s."""
    parts = re.findall(r"([0-9.]+)([dhms])", found.match[group])
    value = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if not value:
        raise found.error("the elapsed time is 0 s, or missing: the run was too short for a figure")
    number, unit = parts[-1]
    return Printed(value, half_unit(number) * _UNITS[unit])


def _moment(found: Found, *, date: int, clock: int) -> datetime:
    """The moment that a line states. Raises ParseError."""
    day, month, year = found.match[date], found.match[date + 1], found.match[date + 2]
    hour, minute, second = (int(found.match[clock + place]) for place in range(3))
    try:
        return datetime(int(year), _MONTHS.index(month) + 1, int(day), hour, minute, second)
    except ValueError as error:
        raise found.error("not a valid date and time") from error


def _parameters(log: Log) -> dict[str, Value]:
    parameters: dict[str, Value] = {}
    for name, pattern in (("ranks", _RANKS), ("threads", _THREADS), ("nodes", _NODES), ("atoms", _ATOMS)):
        if (found := log.maybe(pattern, f"number of {name}")) is not None:
            parameters[name] = found.whole(1, name)
    if (running := log.maybe(_PROCESSORS, "number of processors")) is not None:
        processors, is_serial = running.whole(2, "the processors"), running.match[1] == "Serial"
        if "ranks" not in parameters:
            parameters |= {"ranks": 1, "threads": processors} if is_serial else {"ranks": processors}
    return parameters


READER = Reader("qe", read)
