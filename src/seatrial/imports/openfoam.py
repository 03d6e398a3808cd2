"""Logs of OpenFOAM's solvers (openfoam.org, openfoam.com, foam-extend): the elapsed time and the time per step.

`ExecutionTime` is the CPU time of rank 0 and says nothing of waiting: the elapsed time is `ClockTime`, which is printed
in whole seconds. The time per step is that of all steps but the first, which builds what the others reuse, and but the
last if it took more CPU time than others: it writes results, or its clock is that of a later step.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from statistics import median

from seatrial.benchmarks.apps.openfoam_output import BANNER, BUILD, CLOCK, END, FAILED, RANKS, TIME
from seatrial.imports.application_log import Log, Printed
from seatrial.imports.reader import Reader
from seatrial.imports.text import Line, number
from seatrial.model.frozen import Frozen
from seatrial.model.imported import ImportedExperiment, ImportedFile
from seatrial.model.parameter import Value

_TOOL = "OpenFOAM"
_VERSION = re.compile(r"\W{1,24}O peration\s{1,40}\| Version:\s{1,8}([\w.+-]{1,40})\W*")
_BUILD_VERSION = re.compile(r"OPENFOAM=([\w.]{1,20})|([0-9][\w.]{0,10})-[0-9a-f]{6,40}")
_EXEC = re.compile(r"Exec\s{1,6}: (\S{1,200})(?: .{0,2000})?")
_CASE = re.compile(r"Case\s{1,6}: (\S.{0,1000})")
_HOSTS = re.compile(r"Hosts\s{1,6}:")
_HOST = re.compile(r"\((\S{1,200}) ([0-9]{1,9})\)")
_START = re.compile(r"Create mesh for time = (\S{1,40}?)s?")
_CLOCK_LIKE = re.compile(r".{0,200}(?:ExecutionTime|ClockTime).{0,200}")
_DELTA = re.compile(r"deltaT = (\S{1,40})")
_PLANNED = re.compile(r"\w{1,20}: no convergence criteria found\. Calculations will run for ([0-9]{1,9}) steps\.")
_CONVERGED = re.compile(r"\w{1,20} solution converged in (\S{1,20}?)s? iterations")
_COUNTED = re.compile(r"Number of steps = ([0-9]{1,9})")
_NOT_FINITE = re.compile(r"(?:= ?|: ?)[+-]?(?:nan|inf)\b", re.IGNORECASE)
_ERRORS = re.compile(r"time step continuity errors|(?:Interface )?Courant Number|Region: .{0,100}Courant")
_SIZE = re.compile(r"(?:sum local = |\bmax: )(\S{1,40}?)(?:,|$| )")

_EXPLODED = 1e9
"""No Courant number or continuity error of a sound run reaches it."""
_MANY = 10
"""So many steps, and the last is one like the others."""
_LONGER = 1.5
_CPU_STEP_S = 0.02
"""CPU time is printed in steps of 0.01 s."""
_MOST_CPU = 1.25
"""CPU time of one process over elapsed time: a thread that writes files may add some."""


class _Step(Frozen):
    """The end of a step: both clocks, and the times (of the simulation) named since the step before."""

    line: Line
    cpu_s: float
    clock_s: int
    times: tuple[float, ...]
    delta: float | None


def read(data: bytes) -> ImportedFile:
    """The log of one run. Raises ParseError for a run that crashed, diverged, did not end, or took less than a second,
    and for two runs in one file."""
    log = Log(_TOOL, data)
    banner = log.banner(BANNER, "F ield         | OpenFOAM: The Open Source CFD Toolbox")
    program = log.at_most_one(_EXEC, "program (`Exec   : ...`)")
    if program is None:
        raise banner.error("no `Exec   : ...` below this banner: the file is cut off")
    log.refuse_signs((FAILED, "the run crashed"))
    _refuse_diverged(log)
    steps = _steps(log)
    below = log.lines[steps[-1].line.number :] if steps else log.lines
    if not log.found(END, below):
        raise log.not_ended("no `End`")
    if not steps:
        raise log.not_ended("no `ExecutionTime = ... s  ClockTime = ... s`: this program reports no time")
    if steps[0].line.number < program.line.number:
        raise program.error(f"the run begins here, but a step has ended before (line {steps[0].line.number})")
    elapsed_s = steps[-1].clock_s
    if elapsed_s == 0:
        why = "ClockTime is 0 s: it counts whole seconds, and the run was too short for it"
        raise steps[-1].line.error(_TOOL, why)
    _check_clocks(steps)
    count, remarks = _count(steps, log)
    before_last_s = steps[-2].clock_s if len(steps) > 1 else 0
    if len(steps) >= _MANY and elapsed_s - before_last_s > before_last_s:
        took = f"{elapsed_s - before_last_s} s, more than all before it"
        remarks = (*remarks, f"the last of {len(steps)} steps took {took}: it may be the time to write results")
    samples = [Printed(float(elapsed_s), 0.5).sample("wall")]
    left_out = 1
    if count and (longer := _longer_at_the_end(steps)):
        left_out, remarks = 2, (*remarks, longer)
    steady_s = steps[-left_out].clock_s - steps[0].clock_s
    if count > left_out and steady_s > 0:
        samples.append(Printed(float(steady_s), 0.5).sample("step", count=count - left_out))
    notes: dict[str, object] = {"cpu_time_of_rank_0_s": steps[-1].cpu_s, "steps": count or None}
    version, parameters = _setup(log)
    path = program.match[1]
    parameters = {"solver": path.replace("\\", "/").rpartition("/")[2] or path, **parameters}
    experiment = ImportedExperiment("imported.openfoam", tuple(samples), parameters, notes, remarks=remarks)
    return ImportedFile(_TOOL, version, (experiment,))


def _refuse_diverged(log: Log) -> None:
    """Raise ParseError at the first line of a field that is not finite any more."""
    for line, text in log.numbered():
        if "Solving for " in text or _ERRORS.match(text):
            sizes = [size for match in _SIZE.finditer(text) if (size := number(match[1])) is not None]
            if _NOT_FINITE.search(text) or any(abs(size) >= _EXPLODED for size in sizes):
                raise line.error(_TOOL, "the solution diverged (not a number, or huge): such a run has no figure")


def _steps(log: Log) -> list[_Step]:
    steps: list[_Step] = []
    times: list[float] = []
    delta: float | None = None
    damaged: Line | None = None
    for line, text in log.numbered():
        if "Time" not in text and not text.startswith("deltaT"):
            continue
        if match := TIME.fullmatch(text):
            time = number(match[1])
            if time is None:
                raise line.error(_TOOL, "the time is not a number")
            times.append(time)
        elif match := _DELTA.fullmatch(text):
            delta = number(match[1])
        elif match := CLOCK.fullmatch(text):
            cpu_s = line.number_or_zero(_TOOL, match[1], "ExecutionTime")
            clock_s = line.whole_of(_TOOL, match[2], "ClockTime", least=0)
            steps.append(_Step(line, cpu_s, clock_s, tuple(times), delta))
            times, delta = [], None
        elif _CLOCK_LIKE.fullmatch(text):
            damaged = line
    if damaged is not None and (not steps or damaged.number > steps[-1].line.number):
        why = "not of the form `ExecutionTime = 1.5 s  ClockTime = 2 s`: the line is damaged, and it may be the last"
        raise damaged.error(_TOOL, why)
    if steps and times:
        raise steps[-1].line.error(_TOOL, f"no clock after the step at time {times[-1]:g}: the run has not ended")
    return steps


def _check_clocks(steps: Sequence[_Step]) -> None:
    """Both clocks must run forward, and one process cannot use more CPU time than elapsed. Raises ParseError."""
    for i, step in enumerate(steps):
        before = steps[i - 1] if i else None
        if before is not None and (step.cpu_s < before.cpu_s or step.clock_s < before.clock_s):
            raise step.line.error(_TOOL, f"a clock ran backwards since line {before.line.number}")
        if step.cpu_s > _MOST_CPU * (step.clock_s + 1):
            raise step.line.error(_TOOL, "more CPU time of one process than elapsed time")


def _count(steps: Sequence[_Step], log: Log) -> tuple[int, tuple[str, ...]]:
    """The number of steps, 0 if the file does not show all of them, and what to tell the user.

    Raises ParseError if the program counted differently.
    """
    last = steps[-1].times[-1] if steps[-1].times else None
    for one in log.found(_CONVERGED):
        if number(one.match[1]) != last:
            raise one.error(f"the last step is {last:g}" if last is not None else "no step before it")
    for one in log.found(_COUNTED):
        if int(one.match[1]) != len(steps):
            raise one.error(f"the file has {len(steps)} steps")
    starts = [start for one in log.found(_START) if (start := number(one.match[1])) is not None]
    if not any(step.times for step in steps):
        return 0, ()
    if all(len(step.times) == 1 for step in steps) and _is_without_gap(steps, starts[:1]):
        return len(steps), ()
    planned = [int(one.match[1]) for one in log.found(_PLANNED)]
    times = [time for step in steps for time in step.times]
    width = median(b - a for a, b in itertools.pairwise(times)) if len(times) > 2 else 0.0
    is_first_whole = len(steps[0].times) == 1
    if (
        is_first_whole
        and len(planned) == 1
        and width > 0
        and abs((times[-1] - times[0]) / width + 1 - planned[0]) < 1e-6 * planned[0]
    ):
        return planned[0], ("steps are cut out of the file; their number is the one that the program announced",)
    return 0, ("not every step is in the file, so there is no time per step",)


def _longer_at_the_end(steps: Sequence[_Step]) -> str:
    """Why the last step is not one like the others; "" if it is, or if there are few. It may write the results; or its
    clock is that of a later step, and those between are missing, which nothing else shows."""
    spent = [after.cpu_s - before.cpu_s for before, after in itertools.pairwise(steps)]
    if len(steps) < _MANY or spent[-1] <= _LONGER * median(spent[:-1]) + _CPU_STEP_S:
        return ""
    took = f"{spent[-1]:.2f} s of CPU time, the others {median(spent[:-1]):.2f} s"
    return f"the last step took {took}: it is left out of the time per step (it writes results, or steps are missing)"


def _is_without_gap(steps: Sequence[_Step], start: Sequence[float]) -> bool:
    """Whether each step follows the one before it, and the first the `start` if it is known: at the printed step width,
    or all at the same."""
    times = [*start, *(step.times[0] for step in steps)]
    widths = [b - a for a, b in itertools.pairwise(times)]
    if not widths:
        return True
    usual = median(widths)
    for step, width in zip(steps[-len(widths) :], widths, strict=True):
        expected = usual if step.delta is None else step.delta
        rounding = 1e-5 * abs(step.times[0]) + 0.01 * expected
        if not 0 < width <= expected + rounding or (step.delta is None and width < expected - rounding):
            return False
    return True


def _setup(log: Log) -> tuple[str, dict[str, Value]]:
    """The version, and the parameters that the header states. Raises ParseError if it contradicts itself."""
    version = next((one.match[1] for one in log.found(_VERSION)), "")
    build = next((one.match[1] for one in log.found(BUILD)), "")
    if not version and (match := _BUILD_VERSION.search(build)):
        version = match[1] or match[2]
    parameters: dict[str, Value] = {}
    hosts: list[int] = []
    in_hosts = False
    for line, text in log.numbered():
        if match := RANKS.fullmatch(text):
            parameters["ranks"] = line.whole_of(_TOOL, match[1], "nProcs")
        elif match := _CASE.fullmatch(text):
            parameters["case"] = re.split(r"[/\\]", match[1].rstrip("/\\"))[-1]
        elif _HOSTS.fullmatch(text):
            in_hosts = True
        elif in_hosts and (match := _HOST.fullmatch(text)):
            hosts.append(int(match[2]))
        elif in_hosts and text == ")":
            in_hosts = False
            if sum(hosts) != parameters.get("ranks", sum(hosts)):
                raise line.error(_TOOL, f"the hosts have {sum(hosts)} ranks, but nProcs is {parameters['ranks']}")
            parameters["nodes"] = len(hosts)
    return version, parameters


READER = Reader("openfoam", read)
