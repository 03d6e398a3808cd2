"""WRF's logs rsl.out.0000 and rsl.error.0000.

`Timing for main` is the elapsed time of one step of a domain; that of the outermost has the steps of the nests in it,
and counts alone. The first step takes longer and is left out. Steps with radiation take longer too, so that mean and
median are two figures. Files that are read and written in between are not in these times.

`apps.wrf`: WRF, a weather model, on published inputs.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from datetime import datetime
from fractions import Fraction
from statistics import median

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, plain_reader
from seatrial.applications.reading.text import Pattern
from seatrial.applications.running.given_input import FORMAT_SEEN, application
from seatrial.model.benchmark.given_input import InputCase
from seatrial.model.benchmark.parameter import Value

_TOOL = "WRF"
_TIME = r"([0-9]{4}-[0-9]{2}-[0-9]{2}_[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\+([0-9]{1,9})/([0-9]{1,9}))?"
_BANNER = Pattern(r"(?:Equivalent WRF version: )?WRF V([0-9]\S{0,20}) MODEL")
"""As WRF prints it, or AceCAST, which is WRF on GPUs."""
_STEP = Pattern(
    rf"Timing for main(?: \(dt= *([0-9.]{{1,12}})\))?: time {_TIME} on domain +([0-9]{{1,3}})"
    r": +([0-9]{1,9}\.[0-9]{5}) elapsed seconds\.?"
)
_STEP_LIKE = Pattern(r"Timing for main.{0,200}")
_SUCCESS = Pattern(rf"(?:d01 {_TIME} )?wrf: SUCCESS COMPLETE WRF")
_SUCCESS_LIKE = Pattern(r".{0,60}SUCCESS COMPLETE.{0,60}")
_FATAL = Pattern(
    r"(?:-+ *FATAL CALLED .{0,120}|.{0,40}(?:Segmentation fault|SIGSEGV|SIGABRT|SIGFPE).{0,120}|forrtl: .{1,160})"
)
_CFL = Pattern(r"(?:d[0-9]{2} .{1,30})?[0-9]{1,12} points exceeded .{0,4}cfl *=.{1,120}", re.IGNORECASE)
_TASKS = Pattern(r"Ntasks in X +([0-9]{1,6}) *, ntasks in Y +([0-9]{1,6})")
_THREADS = Pattern(r"WRF NUMBER OF TILES FROM OMP_GET_MAX_THREADS += +([0-9]{1,6})")
_GRID = Pattern(r"ids,ide,jds,jde +(-?[0-9]{1,6}) +([0-9]{1,6}) +(-?[0-9]{1,6}) +([0-9]{1,6})")


def _measured(log: Log) -> Measured:
    """One run of WRF. Raises ParseError if it did not end, failed, or steps are missing or damaged."""
    banner = log.banner(_BANNER, "WRF V4.1.4 MODEL")
    log.refuse(_FATAL, "WRF failed: the run has no figure")
    if not log.found(_SUCCESS_LIKE):
        raise log.not_ended("there is no `SUCCESS COMPLETE WRF`")
    success = log.only(_SUCCESS, "`wrf: SUCCESS COMPLETE WRF`")
    steps = log.each_of_form(_STEP_LIKE, _STEP, "a damaged `Timing for main`")
    outer = [step for step in steps if int(step.match[5]) == 1]
    if len(outer) < 2:
        raise log.error(f"{len(outer)} steps of domain 1: too few, the first is left out")
    step_s = _check_steps(outer, success)
    if success.line.number < outer[-1].line.number:
        raise outer[-1].error("a step after the end of the run")
    times = [step.printed(6, "the time of the step") for step in outer]
    steady = [time.value for time in times[1:]]
    mean, middle = sum(steady) / len(steady), median(steady)
    parameters, notes = _parameters(log), {"steps": len(outer), "first_step_s": times[0].value}
    if step_s is not None:
        parameters["timestep"] = f"{float(step_s):g} s"
    parameters["domains"] = len({step.match[5] for step in steps})
    exceeded = log.found(_CFL)
    remarks = [f"line {one.line.number}: {one.text(0)}: the run may be unstable" for one in exceeded[:1]]
    if success.match[1] is None:
        remarks.append("the last line does not state the simulated time: steps before it may be missing")
    samples = (
        figures.time_sample("step", mean, resolution=1e-5 / mean),
        figures.time_sample("step_median", middle, resolution=1e-5 / middle),
    )
    return Measured(samples, parameters, notes, remarks, banner.text(1))


def _check_steps(steps: list[Found], success: Found) -> Fraction | None:
    """The simulated seconds of a step; None if they change. Raises ParseError if a step is missing, or there twice."""
    moments = [_moment(step, 2) for step in steps]
    widths = [after - before for before, after in itertools.pairwise(moments)]
    for step, width in zip(steps[1:], widths, strict=True):
        if width <= 0:
            raise step.error("not later than the step before it: two runs in one file, or damaged")
    if success.match[1] is not None and _moment(success, 1) != moments[-1]:
        raise success.error(f"the last step in the file is that of {steps[-1].text(2)}: steps are missing")
    if any(step.match[1] for step in steps):
        for step, width in zip(steps[1:], widths, strict=True):
            if step.match[1] and abs(float(width) - step.number(1, "dt")) > 1.0:
                raise step.error("later than the step before it by more than dt: a step is missing")
        return None
    usual = Counter(widths).most_common(1)[0][0]
    for step, width in zip(steps[1:], widths, strict=True):
        if width > usual:
            raise step.error(
                f"{float(width):g} s after the step before it, the others {float(usual):g} s: steps missing"
            )
    return usual


def _moment(found: Found, group: int) -> Fraction:
    """The simulated moment in seconds. Raises ParseError."""
    try:
        whole = datetime.fromisoformat(found.match[group])
        part = Fraction(int(found.match[group + 1] or 0), int(found.match[group + 2] or 1))
    except (ValueError, ZeroDivisionError) as error:
        raise found.error("not a valid date and time") from error
    since = whole - datetime(1, 1, 1)
    return since.days * 86400 + since.seconds + part


def _parameters(log: Log) -> dict[str, Value]:
    parameters: dict[str, Value] = {}
    if (tasks := log.maybe(_TASKS, "grid of ranks")) is not None:
        parameters["ranks"] = tasks.whole(1, "ranks in X") * tasks.whole(2, "ranks in Y")
    threads = log.found(_THREADS)
    if len({one.match[1] for one in threads}) == 1:  # once for each domain
        parameters["threads"] = threads[0].whole(1, "threads")
    if grids := log.found(_GRID):
        grid = grids[0]
        for name, low, high in (("nx", 1, 2), ("ny", 3, 4)):
            if (points := int(grid.match[high]) - int(grid.match[low])) > 0:
                parameters[name] = points
    return parameters


IMPORTED = figures.imported(
    "wrf",
    "WRF",
    "How long did WRF take for a step of the outermost domain?",
    (
        figures.count("nx", "cells from west to east, outermost domain"),
        figures.count("ny", "cells from south to north, outermost domain"),
        figures.count("domains", "the outermost domain and its nests"),
        figures.text("timestep", "simulated time of a step"),
        *figures.counts(ranks="processes that compute", threads="threads of each process"),
    ),
    (
        figures.time("step", "mean elapsed time of a step, without the first one and without files"),
        figures.time("step_median", "median elapsed time of a step, without the first one and without files"),
    ),
)

READER = plain_reader(IMPORTED, _TOOL, _measured)


_SITE = "https://www2.mmm.ucar.edu/wrf/users/benchmark/"
_FILES = ("namelist.input", "wrfbdy_d01")

BENCHMARK = application(
    IMPORTED,
    "How long does WRF take for a step of the outermost domain?",
    tool="WRF",
    programs=("wrf.exe",),
    install="build WRF (https://github.com/wrf-model/WRF) and put wrf.exe on PATH; its tables belong to the input",
    output="rsl.out.0000",
    cases=(
        InputCase("conus12km", "the continental United States at 12 km", _SITE, files=_FILES),
        InputCase("conus2.5km", "the continental United States at 2.5 km", _SITE, files=_FILES),
    ),
    has_start=False,
    evidence=FORMAT_SEEN,
)
