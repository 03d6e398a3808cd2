"""Logs of OpenFOAM's solvers (openfoam.org, openfoam.com, foam-extend): the elapsed time and the time per step.

`ExecutionTime` is the CPU time of rank 0 and says nothing of waiting: the elapsed time is `ClockTime`, which is printed
in whole seconds. The time per step is that of all steps but the first, which builds what the others reuse, and but the
last if it took more CPU time than others: it writes results, or its clock is that of a later step.

`apps.openfoam`: the flow in a cavity whose lid moves, by icoFoam of OpenFOAM.

The case is made here: a square of n x n cells at a Reynolds number of 100, at rest at first. Time steps have a Courant
number of 0.8; after 26 n of them (20.8 times the time that the lid takes to pass) the flow is steady. Most of the time
goes into the pressure (conjugate gradients with an incomplete Cholesky factorisation): memory bandwidth, small messages
between neighbours, and all-reduces. The mesh and its parts (method `simple`, blocks as square as possible) are made
before the time counts.

The time of a step is elapsed time: OpenFOAM's profile of itself has it at both halves of the run, and the second
half counts. What the log prints cannot serve: `ExecutionTime` is the CPU time of rank 0, which does not grow while the
rank sleeps, and `ClockTime` counts whole seconds.

Checks of the flow. U. Ghia, K. N. Ghia, C. T. Shin, J. Comput. Phys. 48 (1982) 387, table I, give the velocity along
the centre line. Their own error is some 0.005: so much icoFoam differs with 64 cells and with 96; at the centre they
have -0.2058, it tends to -0.2091. The schemes used here are of second order: with 16 to 96 cells the velocity at the
centre is -0.2091 + 6.0 / n^2 within 0.5 / n^2. It is held to that more narrowly, as it must not depend on the number of
ranks.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from msgspec.structs import replace

from seatrial.applications import openfoam_output as output
from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Log, Measured, Printed, plain_reader
from seatrial.applications.reading.text import LogLine, Pattern, number
from seatrial.applications.running.copies import input_files, problem
from seatrial.benchmarks.figures import between, exactly, time_step, wall_time
from seatrial.benchmarks.placement import RANK_LAYOUT, cpus_of, resolved
from seatrial.model.benchmark.benchmark import Better, Check, External, Figure, Skip
from seatrial.model.benchmark.declaration import WALL
from seatrial.model.benchmark.parameter import Parameter, Params, Value, whole
from seatrial.model.benchmark.program import RANKS as RANKS_NAME
from seatrial.model.benchmark.program import ProgramRecord
from seatrial.model.frozen import Frozen
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

_TOOL = "OpenFOAM"
_VERSION = Pattern(r"\W{1,24}O peration\s{1,40}\| Version:\s{1,8}([\w.+-]{1,40})\W*")
_BUILD_VERSION = Pattern(r"OPENFOAM=([\w.]{1,20})|([0-9][\w.]{0,10})-[0-9a-f]{6,40}")
_EXEC = Pattern(r"Exec\s{1,6}: (\S{1,200})(?: .{0,2000})?")
_CASE = Pattern(r"Case\s{1,6}: (\S.{0,1000})")
_HOSTS = Pattern(r"Hosts\s{1,6}:")
_HOST = Pattern(r"\((\S{1,200}) ([0-9]{1,9})\)")
_UTILITY = (
    r"Exec\s{1,6}: (?:\S{0,200}/)?((?:decompose|reconstruct)Par\w{0,8}"
    r"|(?:block|snappyHex|check|renumber|refine|extrude)Mesh|surfaceFeature\w{1,8}|(?:surface|topo|faces?|cells?|point)Set|setFields|mapFields(?:Par)?|createPatch"
    r"|(?:create|split)Baffles|splitMeshRegions|transformPoints|foamToVTK|changeDictionary|patchSummary|postProcess)"
    r"\b.{0,2000}"
)
"""Programs that prepare or examine a case: their time is not that of a solver."""
_START = Pattern(r"Create mesh for time = (\S{1,40}?)s?")
_CLOCK_LIKE = Pattern(r".{0,200}(?:ExecutionTime|ClockTime).{0,200}")
_DELTA = Pattern(r"deltaT = (\S{1,40})")
_PLANNED = Pattern(r"\w{1,20}: no convergence criteria found\. Calculations will run for ([0-9]{1,9}) steps\.")
_CONVERGED = Pattern(r"\w{1,20} solution converged in (\S{1,20}?)s? iterations")
_COUNTED = Pattern(r"Number of steps = ([0-9]{1,9})")
_NOT_FINITE = Pattern(r"(?:= ?|: ?)[+-]?(?:nan|inf)\b", re.IGNORECASE)
_ERRORS = Pattern(r"time step continuity errors|(?:Interface )?Courant Number|Region: .{0,100}Courant")
_SIZE = Pattern(r"(?:sum local = |\bmax: )(\S{1,40}?)(?:,|$| )")

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

    line: LogLine
    cpu_s: float
    clock_s: int
    times: tuple[float, ...]
    delta: float | None


def _measured(log: Log) -> Measured:
    """The log of one run. Raises ParseError for a run that crashed, diverged, did not end, or took less than a second,
    and for two runs in one file."""
    banner = log.banner(output.BANNER, output.LOOKS_LIKE)
    program = log.at_most_one(_EXEC, "program (`Exec   : ...`)")
    if program is None:
        raise banner.error("no `Exec   : ...` below this banner: the file is cut off")
    log.refuse_signs((output.FAILED, "the run crashed"))
    _refuse_diverged(log)
    steps = _steps(log)
    below = log.lines[steps[-1].line.number :] if steps else log.lines
    if not log.found(output.END, below):
        raise log.not_ended("no `End`")
    if not steps:
        raise log.not_ended("no `ExecutionTime = ... s  ClockTime = ... s`: this program reports no time")
    if steps[0].line.number < program.line.number:
        raise program.error(f"the run begins here, but a step has ended before (line {steps[0].line.number})")
    elapsed_s = steps[-1].clock_s
    if elapsed_s == 0:
        raise steps[-1].line.error("ClockTime is 0 s: it counts whole seconds, and the run was too short for it")
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
    return Measured(samples, parameters, notes, remarks, version)


def _refuse_diverged(log: Log) -> None:
    """Raise ParseError at the first line of a field that is not finite any more."""
    for line, text in log.numbered():
        if "Solving for " in text or _ERRORS.match(text):
            sizes = [size for match in _SIZE.finditer(text) if (size := number(match[1])) is not None]
            if _NOT_FINITE.search(text) or any(abs(size) >= _EXPLODED for size in sizes):
                raise line.error("the solution diverged (not a number, or huge): such a run has no figure")


def _steps(log: Log) -> list[_Step]:
    steps: list[_Step] = []
    times: list[float] = []
    delta: float | None = None
    damaged: LogLine | None = None
    for line, text in log.numbered():
        if "Time" not in text and not text.startswith("deltaT"):
            continue
        if match := output.TIME.fullmatch(text):
            time = number(match[1])
            if time is None:
                raise line.error("the time is not a number")
            times.append(time)
        elif match := _DELTA.fullmatch(text):
            delta = number(match[1])
        elif match := output.CLOCK.fullmatch(text):
            cpu_s = line.number_or_zero(match[1], "ExecutionTime")
            steps.append(_Step(line, cpu_s, line.whole_of(match[2], "ClockTime", least=0), tuple(times), delta))
            times, delta = [], None
        elif _CLOCK_LIKE.fullmatch(text):
            damaged = line
    if damaged is not None and (not steps or damaged.number > steps[-1].line.number):
        why = "not of the form `ExecutionTime = 1.5 s  ClockTime = 2 s`: the line is damaged, and it may be the last"
        raise damaged.error(why)
    if steps and times:
        raise steps[-1].line.error(f"no clock after the step at time {times[-1]:g}: the run has not ended")
    return steps


def _check_clocks(steps: Sequence[_Step]) -> None:
    """Both clocks must run forward, and one process cannot use more CPU time than elapsed. Raises ParseError."""
    for i, step in enumerate(steps):
        before = steps[i - 1] if i else None
        if before is not None and (step.cpu_s < before.cpu_s or step.clock_s < before.clock_s):
            raise step.line.error(f"a clock ran backwards since line {before.line.number}")
        if step.cpu_s > _MOST_CPU * (step.clock_s + 1):
            raise step.line.error("more CPU time of one process than elapsed time")


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
    build = next((one.match[1] for one in log.found(output.BUILD)), "")
    if not version and (match := _BUILD_VERSION.search(build)):
        version = match[1] or match[2]
    parameters: dict[str, Value] = {}
    hosts: list[int] = []
    in_hosts = False
    for line, text in log.numbered():
        if match := output.N_PROCS.fullmatch(text):
            parameters["ranks"] = line.whole_of(match[1], "nProcs")
        elif match := _CASE.fullmatch(text):
            parameters["case"] = re.split(r"[/\\]", match[1].rstrip("/\\"))[-1]
        elif _HOSTS.fullmatch(text):
            in_hosts = True
        elif in_hosts and (match := _HOST.fullmatch(text)):
            hosts.append(int(match[2]))
        elif in_hosts and text == ")":
            in_hosts = False
            if sum(hosts) != parameters.get("ranks", sum(hosts)):
                raise line.error(f"the hosts have {sum(hosts)} ranks, but nProcs is {parameters['ranks']}")
            parameters["nodes"] = len(hosts)
    return version, parameters


IMPORTED = figures.imported(
    "openfoam",
    "OpenFOAM",
    "How long did this solver of OpenFOAM take?",
    (
        figures.text("solver", "the program"),
        figures.text("case", "folder of the case"),
        *figures.counts(ranks="processes", nodes="hosts"),
    ),
    (
        figures.time("wall", "elapsed time of the whole run, in whole seconds (ClockTime)"),
        figures.time("step", "mean time of a step, without the first one"),
    ),
)

READER = plain_reader(IMPORTED, _TOOL, _measured, begins=output.BANNER.text, aside=_UTILITY)


_SMALLEST = 16
_COURANT = 0.8
_STEPS_PER_CELL = 26
_VISCOSITY = 0.01
_PRESSURE_TOLERANCE = 1e-6
_DEPTH = 0.1

_PLACES = (0.5, 0.1016, 0.1719, 0.2813, 0.4531, 0.6172, 0.8516)
_GHIA = (-0.20581, -0.06434, -0.10150, -0.15662, -0.21090, -0.13641, 0.23151)
"""Velocity along the lid at these heights on the centre line, over that of the lid."""
_GHIA_ERROR = 0.007
_GHIA_ERROR_OF_MESH = 6.0
"""Times the square of the width of a cell."""
_CENTRE = -0.2091
_CENTRE_OF_MESH = 6.0
_CENTRE_SLACK = 2e-4
_CENTRE_SLACK_OF_MESH = 0.9

_S_PER_CELL_AND_STEP = 1e-6
_START_S = 3.0


def _steps_of_run(params: Params) -> int:
    return _STEPS_PER_CELL * whole(params["cells"])


def _blocks(ranks: int) -> tuple[int, int]:
    """The most square grid of that many blocks."""
    across = next(n for n in range(math.isqrt(ranks), 0, -1) if ranks % n == 0)
    return ranks // across, across


def _inputs(params: Params) -> dict[str, bytes]:
    cells, ranks = whole(params["cells"]), whole(params[RANKS_NAME])
    step = _COURANT / cells
    along, across = _blocks(ranks)
    places = " ".join(f"(0.5 {height} {_DEPTH / 2})" for height in _PLACES)
    return input_files(
        "openfoam_cavity",
        end=f"{_steps_of_run(params) * step:.12g}",
        step=f"{step:.12g}",
        half=_steps_of_run(params) // 2,
        places=places,
        tolerance=_PRESSURE_TOLERANCE,
        cells=cells,
        depth=_DEPTH,
        ranks=ranks,
        along=along,
        across=across,
        viscosity=_VISCOSITY,
    )


_ONE_FILE_PER_RANK = ("-fileHandler", "uncollated")
"""The site's settings may collect the files of all ranks, which would then be elsewhere."""


def _preparation(params: Params) -> list[list[str]]:
    parts = [["decomposePar", *_ONE_FILE_PER_RANK]] if whole(params[RANKS_NAME]) > 1 else []
    return [["blockMesh"], *parts]


def _arguments(params: Params, directory: Path) -> Sequence[str]:
    return [*(("-parallel",) if whole(params[RANKS_NAME]) > 1 else ()), *_ONE_FILE_PER_RANK]


def _prepare(machine: Machine, params: Params) -> Params:
    params = resolved(machine, params)
    if _blocks(whole(params[RANKS_NAME]))[0] > whole(params["cells"]):
        raise Skip(f"{params[RANKS_NAME]} ranks get no whole cells of a mesh of {params['cells']} x {params['cells']}")
    return params


def _estimate_s(params: Params) -> float:
    cells = whole(params["cells"])
    solving_s = _S_PER_CELL_AND_STEP * cells**2 * _steps_of_run(params) * max(1.0, cells / 64)
    return _START_S + solving_s / cpus_of(params)


def _complete(record: ProgramRecord, files: Mapping[str, bytes]) -> ProgramRecord:
    """The record with the times, and with the velocities checked against Ghia's. Raises ProtocolError."""
    record, found = output.with_times(record, files), output.probed_velocities(files)
    if len(found) != len(_GHIA):
        return record
    deviation = max(abs(value - given) for value, given in zip(found, _GHIA, strict=True))
    return replace(record, checks={**record.checks, "centreline": deviation, "centre": found[0]})


def _ghia_bound(machine: Machine, params: Params) -> tuple[float, float]:
    return (0.0, _GHIA_ERROR + _GHIA_ERROR_OF_MESH / whole(params["cells"]) ** 2)


def _centre_bound(machine: Machine, params: Params) -> tuple[float, float]:
    square = 1.0 / whole(params["cells"]) ** 2
    expected, slack = _CENTRE + _CENTRE_OF_MESH * square, _CENTRE_SLACK + _CENTRE_SLACK_OF_MESH * square
    return (expected - slack, expected + slack)


def _share_of_wall(machine: Machine, params: Params, samples: Sequence[Sample]) -> float | None:
    """The elapsed time that OpenFOAM states over ours, which has the launcher in it."""
    by_series = {sample.series: sample for sample in samples}
    if not {output.STEPS, WALL} <= by_series.keys():
        return math.inf
    return float(by_series[output.STEPS].extra["program_s"]) / by_series[WALL].elapsed_s


BENCHMARK = problem(
    External(
        name="icoFoam",
        install="install OpenFOAM of openfoam.com (Debian: package openfoam; Spack: spack install openfoam), or load "
        "its module",
        output="stdout",
        arguments=_arguments,
        parse=output.read_solver,
        version=(),
        inputs=_inputs,
        preparation=_preparation,
        defaults={"WM_PROJECT_DIR": "/usr/share/openfoam"},  # Debian's package has no script that sets it
        companions=("blockMesh", "decomposePar"),
        sensitive_to=("FOAM_SETTINGS", "WM_PROJECT_SITE", "WM_PROJECT_USER_DIR", "FOAM_CONFIG_ETC"),
        files=(output.PROFILE, output.PROFILE_OF_RANK_0, output.PROBES),
        complete=_complete,
        is_timed=True,
    ),
    name="apps.openfoam",
    question="How fast does OpenFOAM compute the flow in a cavity whose lid moves?",
    parameters=(
        Parameter.integer(
            "cells",
            48,
            "cells along an edge of the square; the steps until the flow is steady grow with them",
            minimum=_SMALLEST,
        ),
        *RANK_LAYOUT,
    ),
    figures=(
        time_step(output.STEPS, "one time step of all cells, in the second half of the run"),
        Figure(
            "pressure",
            "s",
            Better.LOWER,
            lambda sample: float(sample.extra["pressure_s"]) / sample.work["steps"],
            "solving for the pressure, in one time step",
            series=output.STEPS,
        ),
        wall_time("the whole run: launcher, reading the mesh, all time steps"),
    ),
    checks=(
        Check(RANKS_NAME, "ranks, as OpenFOAM reports", exactly(RANKS_NAME)),
        Check(output.STEPS, "time steps", exactly(_steps_of_run)),
        Check("courant", "largest Courant number", between(0.0, 1.0)),
        Check(
            "pressure_residual",
            "largest residual of the pressure at the end of a time step",
            between(0.0, _PRESSURE_TOLERANCE),
        ),
        Check(
            "velocity_residual",
            "how far the velocity is from steady, as the residual before the last time step",
            between(0.0, 1e-5),
        ),
        Check("continuity", "continuity error of the last time step, as OpenFOAM scales it", between(0.0, 1e-7)),
        Check("centreline", "largest deviation from the velocities of Ghia, Ghia and Shin (1982)", _ghia_bound),
        Check("centre", "velocity at the centre, which must not depend on ranks", _centre_bound),
        Check(
            "clock",
            "elapsed time that OpenFOAM reports, over that of the whole run by our own clock",
            between(0.05, 1.02),
            _share_of_wall,
        ),
    ),
    prepare=_prepare,
    estimate_s=_estimate_s,
)
