"""Output files of the Ansys CFX solver: the elapsed time of the solver, and per iteration.

`CPU SECONDS` is a sum over the processes. The number of iterations is that of the last one; `Maximum Number of
Iterations` is a limit.

`apps.cfx`: the solver of Ansys CFX on the user's definition file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, log_reader
from seatrial.applications.reading.text import Pattern, moment_of, number
from seatrial.applications.running.given_input import FORMAT_SEEN, application
from seatrial.model.benchmark.given_input import INPUT
from seatrial.model.benchmark.parameter import Params, Value, whole

_WALL = Pattern(r"CFD Solver wall clock seconds: ([0-9]\.[0-9]{4}E[+-][0-9]{2})")
_WALL_LIKE = Pattern(r".{0,80}wall clock seconds.{0,200}")
_MOST = Pattern(r"Maximum Number of Iterations = ([0-9]{1,9})")
_ITERATION = Pattern(r"OUTER LOOP ITERATION = ([0-9]{1,9}) (?:\( ?[0-9]{1,9}\) )?CPU SECONDS = (\S{1,20})")
_TIME_STEP = Pattern(
    r"TIME STEP = ([0-9]{1,9}) (?:\( ?[0-9]{1,9}\) )?SIMULATION TIME = (\S{1,20}) CPU SECONDS = (\S{1,20})"
)
_STARTED = Pattern(r"CFD Solver started: (.{10,40})")
_STOPPED = Pattern(r"CFD Solver finished: (.{10,40})")
_PROCESSES = Pattern(r"Number of Processes = ([0-9]{1,9})")
_VERSION = Pattern(
    r".{0,80}CFX(?:\(R\))?[- ]Solver(?: Release)? (20[0-9]{2} ?R[0-9]|[0-9]{1,2}\.[0-9.]{1,6}).{0,80}", re.IGNORECASE
)
_OUTCOME = Pattern(r"CFD Solver: (\S.{0,100})")


def _measured(log: Log, begin: Found, finished: Found) -> Measured:
    wall = log.of_form(_WALL_LIKE, _WALL, "CFD Solver wall clock seconds: 1.2345E+02")
    wall_s = wall.printed(1, "the wall clock time")
    _check_stamps(log, wall, wall_s.value)
    parameters: dict[str, Value] = {}
    if ranks := [int(one.match[1]) for one in log.found(_PROCESSES)]:  # the partitioner may run on one
        parameters["ranks"] = max(ranks)
    samples = [wall_s.sample("wall")]
    notes: dict[str, object] = {}
    for simulation, steps, pattern in (("steady", "iterations", _ITERATION), ("transient", "time_steps", _TIME_STEP)):
        if count := _count(log, pattern, wall):
            samples.append(wall_s.sample("step", count=count))
            parameters["simulation"], notes[steps] = simulation, count
            break
    if outcomes := log.found(_OUTCOME):
        notes["outcome"] = outcomes[-1].match[1]
    return Measured(samples, parameters, notes, version=next((one.match[1] for one in log.found(_VERSION)), ""))


def _count(log: Log, pattern: Pattern, wall: Found) -> int:
    """The number of the last iteration or time step, 0 if there is none. Raises ParseError if they are out of order."""
    last, cpu_s = 0, 0.0
    limits = [int(one.match[1]) for one in log.found(_MOST)] if pattern is _ITERATION else []
    most = max(limits, default=10**9)
    for one in log.found(pattern):
        now, cpu = int(one.match[1]), number(one.match[one.match.re.groups])
        if now <= last or cpu is None or cpu < cpu_s:
            raise one.error(f"not after number {last}: two runs, or a damaged line")
        if now > most:
            raise one.error(f"the file states at most {most} iterations")
        if one.line.number > wall.line.number:
            raise one.error("an iteration after the end of the run: two runs in one file; split it")
        last, cpu_s = now, cpu
    return last


def _check_stamps(log: Log, wall: Found, wall_s: float) -> None:
    """The wall clock time must be that between the two dates, to the second. Raises ParseError."""
    lines = [log.found(pattern) for pattern in (_STARTED, _STOPPED)]
    times = [moment_of(found[0].match[1].strip(), "%a %b %d %H:%M:%S %Y") for found in lines if len(found) == 1]
    if len(times) < len(lines) or times[0] is None or times[1] is None:
        return
    between_s = (times[1] - times[0]).total_seconds()
    if abs(between_s - wall_s) > 3 + 0.002 * wall_s:
        raise wall.error(f"the solver started and finished {between_s:g} s apart, which contradicts this")


IMPORTED = figures.imported(
    "cfx",
    "Ansys CFX",
    "How long did the CFX solver take?",
    (
        figures.count("ranks", "solver processes"),
        figures.choice("simulation", "what a step is: an iteration (steady) or a time step", "steady", "transient"),
    ),
    (
        figures.time("wall", "elapsed time of the solver, without reading and partitioning"),
        figures.time("step", "mean elapsed time of one iteration of the outer loop, or of one time step"),
    ),
)

READER = log_reader(
    IMPORTED,
    "CFX",
    _measured,
    begin=("CFX|CFD Solver|OUTER LOOP", "This run of the ANSYS CFX Solver"),
    is_begun_anywhere=True,
    is_spaced_once=True,
    signs=(
        (
            r"(?i)ERROR #[0-9]{3,12} has occurred|An error has occurred in cfx5solve|Fatal overflow|Details of error"
            r"|Floating point (?:exception|error)|terminated abnormally|exited with return code"
            r"|\blicense\b.{0,40}(?:not available|denied)",
            "the run failed",
        ),
        (r"(?i)^\| \S.{0,40}\|.{0,100}(?<![\w.])[+-]?(?:nan|inf(?:inity)?)(?![\w.])", "a residual is not a number"),
    ),
    end=(
        r"(?i)This run of the .{0,40}CFX.{0,20} has finished\.?",
        "no `This run of the ANSYS CFX Solver has finished.`",
    ),
)


def _arguments(params: Params) -> Sequence[str]:
    processes = whole(params["processes"])
    return ["-def", str(params[INPUT]), *(["-par-local", "-part", str(processes)] if processes > 1 else [])]


BENCHMARK = application(
    IMPORTED,
    "How long does the solver of CFX take?",
    tool="CFX",
    programs=("cfx5solve",),
    install="CFX needs a licence (https://www.ansys.com): put cfx5solve on PATH",
    arguments=_arguments,
    output="*.out",
    starts="itself",
    evidence=FORMAT_SEEN,
)
