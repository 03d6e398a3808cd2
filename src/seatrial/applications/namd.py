"""Logs of NAMD 2 and 3.

`Benchmark time` is the elapsed time per step since the last load balancing; there are several lines, which fall through
the run, and the last counts. NAMD 2 prints days/ns beside it, NAMD 3 ns/day. `WallClock` is the whole run with its
start; it is another figure. A copy of the line that a script printed below the log is not another line.

`apps.namd`: NAMD on its published inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, Printed, plain_reader
from seatrial.applications.reading.text import SIX_DIGITS, Pattern
from seatrial.applications.running.given_input import FORMAT_SEEN, application
from seatrial.model.benchmark.given_input import INPUT, InputCase
from seatrial.model.benchmark.parameter import Params, Value, whole

_TOOL = "NAMD"
_BANNER = Pattern(r"Info: NAMD +(\S{1,40}) +for +(\S{1,80})")
_RUNNING = Pattern(r"Info: Running on ([0-9]{1,9}) processors, ([0-9]{1,9}) nodes, ([0-9]{1,9}) physical nodes\.")
_CONFIGURATION = Pattern(r"Info: Configuration file is (.{1,300})")
_TIMESTEP = Pattern(r"Info: TIMESTEP +(\S{1,20})")
_STEPS = Pattern(r"Info: NUMBER OF STEPS +([0-9]{1,15})")
_ATOMS = Pattern(r"Info: ([0-9]{1,15}) ATOMS")
_STAGE = Pattern(r"TCL: (?:Running for|Minimizing for) .{1,80}")
_BENCHMARK = Pattern(
    r"Info: Benchmark time: ([0-9]{1,9}) CPUs (\S{1,20}) s/step (\S{1,20}) (days/ns|ns/day)(?: .{0,60})?"
)
_BENCHMARK_LIKE = Pattern(r"Info: Benchmark time:.{0,200}")
_TIMING = Pattern(
    r"TIMING: ([0-9]{1,15}) +CPU: (\S{1,20}), (\S{1,20})/step +Wall: (\S{1,20}), (\S{1,20})/step, .{0,80}"
)
_TITLES = Pattern(r"ETITLE: +(.{1,600})")
_ENERGY = Pattern(r"ENERGY: +([0-9]{1,15} +.{1,600})")
_WALL = Pattern(r"WallClock: +(\S{1,20}) +CPUTime: +(\S{1,20}) .{0,80}")
_END = Pattern(r"(?:\[Partition [0-9]{1,9}\]\[Node [0-9]{1,9}\] )?End of program.{0,80}")
_FATAL = Pattern(r"(?:\[[^]]{1,80}\] ?)*(?:FATAL ERROR:|Charm\+\+ fatal error:|------------- Processor [0-9]).{0,400}")
_FARTHEST = 1.5
"""In whole logs the elapsed time of an interval is within 0.0001 of what its line states per step."""
_EXPLODED = Pattern(r"ERROR: (?:Atoms? (?:[0-9]{1,15} velocity|moving too fast)|Constraint failure).{0,300}")


def _measured(log: Log) -> Measured:
    """One run of NAMD. Raises ParseError if it did not end, failed or exploded, if the file holds two runs, or if its
    numbers contradict each other."""
    banner = log.banner(_BANNER, "Info: NAMD 2.14 for Linux-x86_64-multicore")
    log.refuse(_EXPLODED, "atoms move too fast: the simulation has exploded, so its rate means nothing")
    _refuse_hot(log)
    _refuse_joined(log)
    walls, ends, fatal = log.found(_WALL), log.found(_END), log.found(_FATAL)
    if len(walls) > 1:
        raise walls[1].error("a second WallClock: two runs in one file; put each in its own file")
    if not walls and not ends:
        raise (
            fatal[0].error("NAMD stopped here: the run has no figure")
            if fatal
            else log.not_ended("there is no `WallClock` and no `End of program`")
        )
    end = (walls or ends)[0].line.number
    remarks = _remarks(log, fatal, end)
    timestep = log.maybe(_TIMESTEP, "time step")
    if timestep is None:
        raise log.error("no `Info: TIMESTEP`: its beginning is missing")
    timestep_fs = timestep.number(1, "the time step")
    benchmarks = _benchmarks(log, end)
    step, ns = [_times(one, timestep_fs) for one in benchmarks][-1]
    parameters, notes = _parameters(log, banner, benchmarks[-1], timestep_fs), {"benchmark_lines": len(benchmarks)}
    samples = [
        figures.time_sample("ns_time", ns.value, resolution=SIX_DIGITS),
        figures.time_sample("step", step.value, resolution=SIX_DIGITS),
    ]
    if walls:
        wall = walls[0].printed(1, "WallClock")
        _refuse_short(log, walls[0], wall)
        samples.append(wall.sample("wall"))
    return Measured(samples, parameters, notes, remarks, banner.text(1))


def _remarks(log: Log, fatal: list[Found], end: int) -> list[str]:
    """What went wrong after the last step. Raises ParseError if it was before it."""
    if not fatal:
        return []
    steps = log.maybe(_STEPS, "number of steps")
    timings = [one for one in log.found(_TIMING) if one.line.number < fatal[0].line.number]
    if steps is None or not timings or timings[-1].whole(1, "the step", least=0) < steps.whole(1, "the steps"):
        raise fatal[0].error("NAMD stopped here, before its last step: the run has no figure")
    return [f"NAMD failed after its last step: {fatal[0].text(0)[:200]}"]


def _benchmarks(log: Log, end: int) -> list[Found]:
    """The lines of the last stage before the program's end. Raises ParseError if there is none."""
    stages = [one.line.number for one in log.found(_STAGE)]
    begin = stages[-1] if stages else 0
    like = [one.line for one in log.found(_BENCHMARK_LIKE) if begin < one.line.number < end]
    found = log.found(_BENCHMARK, like)
    if not like:
        raise log.error("no `Benchmark time` in the last stage of the run: NAMD prints it after some hundred steps")
    if len(found) < len(like):
        raise like[-1].error("a damaged `Benchmark time`")
    for one in found[1:]:
        if one.match[1] != found[0].match[1]:
            raise one.error(f"on {one.match[1]} CPUs, the lines before on {found[0].match[1]}: two runs in one file")
    return found


def _times(line: Found, timestep_fs: float) -> tuple[Printed, Printed]:
    """Seconds per step and per simulated nanosecond. Raises ParseError if the line contradicts itself."""
    step, other = line.printed(2, "s/step"), line.printed(3, line.match[4])
    stated = other.ns_time_from_days() if line.match[4] == "days/ns" else other.ns_time_from_rate()
    ns = step.ns_time_from_step(timestep_fs)
    # Six digits are printed, without trailing zeros.
    if not Printed(ns.value, SIX_DIGITS * ns.value).agrees(Printed(stated.value, SIX_DIGITS * stated.value)):
        raise line.error(f"{line.match[2]} s/step of {timestep_fs:g} fs are not {line.match[3]} {line.match[4]}")
    return step, ns


def _refuse_short(log: Log, found: Found, wall: Printed) -> None:
    """Raise ParseError if the whole run took less than its steps."""
    timings = log.found(_TIMING)
    if timings and wall.value + wall.error < 0.999 * timings[-1].number(4, "the elapsed time"):
        raise found.error(f"WallClock is below the {timings[-1].match[4]} s that the steps took")


def _refuse_joined(log: Log) -> None:
    """Raise ParseError where the elapsed time from one line to the next is far from what the second states per step: it
    is of another run. A line between them may be missing, and then a slower interval counts."""
    stages = [one.line.number for one in log.found(_STAGE)]
    timings = log.found(_TIMING)
    for before, one in pairwise(timings):
        steps = one.whole(1, "the step", least=0) - before.whole(1, "the step", least=0)
        if steps <= 0 or any(before.line.number < stage < one.line.number for stage in stages):
            continue
        passed = (one.number(4, "the elapsed time") - before.number(4, "the elapsed time")) / steps
        stated = one.number(5, "the time per step")
        rounding = SIX_DIGITS * (one.number(4, "the elapsed time") + before.number(4, "the elapsed time")) / steps
        if not stated / _FARTHEST - rounding <= passed <= stated * _FARTHEST + rounding:
            raise one.error(
                f"{one.match[5]} s per step, but {passed:.6g} s have passed for each since the line before: two runs"
            )


def _refuse_hot(log: Log) -> None:
    """Raise ParseError for a row of energies with a temperature that is none."""
    titles = log.found(_TITLES)
    if not titles or "TEMP" not in titles[0].match[1].split():
        return
    at = titles[0].match[1].split().index("TEMP")
    for row in log.found(_ENERGY):
        words = row.match[1].split()
        if len(words) <= at:
            raise row.error("a row of energies is damaged: it has no temperature")
        row.refuse_exploded(words[at])


def _parameters(log: Log, banner: Found, last: Found, timestep_fs: float) -> dict[str, Value]:
    parameters: dict[str, Value] = {"build": banner.text(2), "timestep": f"{timestep_fs:g} fs"}
    if (configuration := log.maybe(_CONFIGURATION, "configuration file")) is not None:
        parameters["input"] = configuration.text(1)
    for name, pattern in (("atoms", _ATOMS), ("steps", _STEPS)):
        if (found := log.maybe(pattern, f"number of {name}")) is not None and (count := found.whole(1, name, least=0)):
            parameters[name] = count
    if (running := log.maybe(_RUNNING, "number of processors")) is not None:
        workers, processes, hosts = (running.whole(group, "a number of processors") for group in (1, 2, 3))
        if workers != last.whole(1, "the CPUs"):
            raise last.error(f"{last.match[1]} CPUs, but NAMD runs on {workers} processors")
        if workers % processes:
            raise running.error(f"{workers} processors in {processes} processes: not the same number in each")
        parameters |= {"ranks": processes, "threads": workers // processes, "nodes": hosts}
    return parameters


IMPORTED = figures.imported(
    "namd",
    "NAMD",
    "How fast did NAMD simulate?",
    (
        figures.text("input", "configuration file"),
        figures.text("build", "platform that NAMD was built for (Linux-x86_64-multicore)"),
        *figures.DYNAMICS_PARAMETERS,
    ),
    (
        figures.time_per_ns("ns_time", "elapsed time of a simulated nanosecond, by the last `Benchmark time` line"),
        figures.time("step", "elapsed time of a step, by the last `Benchmark time` line"),
        figures.time("wall", "elapsed time of the whole run, with its start (WallClock)"),
    ),
)

READER = plain_reader(IMPORTED, _TOOL, _measured, begins=_BANNER.text)


_SITE = "https://www.ks.uiuc.edu/Research/namd/benchmarks/"
_APOA1 = {
    "apoa1.psf": "32aa47e446abd793d714f443d8a41eb5ac0d03e05e6d19888261f5e89949cc6d",
    "apoa1.pdb": "7325bb5f65185095409fa27a68ce7917f19b34c8f0d178ff9d656c0cc80ded03",
    "par_all22_popc.xplor": "7b88f0a5d707909689bcac87868f770f2c698198b74fdc5c17dc53f089b87687",
    "par_all22_prot_lipid.xplor": "b1ea48036ca1781303c3a4f986a31167258662427fc35012a7b4641db00feda1",
}
"""Files of 2000, alike in three public copies; apoa1.namd is for the user to change (steps, outputs)."""


def _arguments(params: Params) -> Sequence[str]:
    """A multicore build takes its threads from `+p`, ranks with threads (MPI-SMP builds) take them from `+ppn`."""
    threads, is_alone = whole(params["threads"]), whole(params["ranks"]) == 1
    of_ranks = ["+ppn", str(threads)] if threads > 1 else []
    return [*([f"+p{threads}"] if is_alone else of_ranks), str(params[INPUT])]


BENCHMARK = application(
    IMPORTED,
    "How fast does NAMD simulate?",
    tool="NAMD",
    programs=("namd3", "namd2"),
    install="get NAMD from https://www.ks.uiuc.edu/Research/namd/ (it may not be redistributed) and put it on PATH",
    arguments=_arguments,
    cases=(
        InputCase("apoa1", "92,224 atoms", _SITE, "apoa1.namd", ("apoa1.psf", "apoa1.pdb"), 92_224, _APOA1),
        InputCase("f1atpase", "327,506 atoms", _SITE, "f1atpase.namd", ("f1atpase.psf", "f1atpase.pdb"), 327_506),
        InputCase("stmv", "1,066,628 atoms", _SITE, "stmv.namd", ("stmv.psf", "stmv.pdb"), 1_066_628),
    ),
    evidence=FORMAT_SEEN,
)
