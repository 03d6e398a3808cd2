"""Logs of M-PSDNS (pseudo-spectral turbulence, OLCF-6 benchmark).

A step is as slow as its slowest process (max). The first step and those that write output take longer: they are in the
whole run only. `total cpu` is a sum over processes of the last step: no elapsed time.

`apps.psdns`: M-PSDNS, the turbulence of the OLCF-6 benchmark, on the inputs of its repository; its file `log` is read
as `seatrial import psdns=FILE` does. `apps.spectral` is a code of the same kind that runs anywhere.
"""

from __future__ import annotations

import statistics

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, Printed, log_reader
from seatrial.applications.reading.text import Pattern
from seatrial.applications.running.given_input import FORMAT_SEEN, Made, application
from seatrial.model.benchmark.given_input import InputCase
from seatrial.model.benchmark.parameter import Value

_TASKS = Pattern(r"No\. of MPI tasks= *([0-9]{1,9}) +iproc, [a-z]{1,9}= *([0-9]{1,6}) x +([0-9]{1,6})")
_DATE = Pattern(
    r"istep= *([0-9]{1,9}) taskid +[0-9]{1,9} date & time is .{1,16} ([ 0-9]{1,2}): ?([0-9]{1,2}): ?([0-9]{1,2})"
)
_STEP = Pattern(r"cpu at step +([0-9]{1,9}) :min/ave/max= +(\S{1,20}) +(\S{1,20}) +(\S{1,20}) +secs\.")
_STEP_LIKE = Pattern(r"cpu at step.{0,200}")
_CPU = Pattern(r"total cpu over +([0-9]{1,9}) MPI tasks= *(\S{1,30}) +secs\.")
_OUTPUT = 1.5
"""A step this many times as long as the median writes output."""


def _measured(log: Log, banner: Found, wall: Found) -> Measured:
    tasks, cpu = log.only(_TASKS, "number of tasks"), log.only(_CPU, "`total cpu`")
    ranks, p, q = (tasks.whole(group, "a number of tasks") for group in (1, 2, 3))
    if p * q != ranks or cpu.whole(1, "the tasks") != ranks:
        raise tasks.error(f"{p} x {q} processes, and {cpu.match[1]} that used CPU time, are not {ranks} tasks")
    steps = _steps(log)
    wall_s = wall.printed(1, "the wall time")
    last_s = float(steps[-1].match[3])
    if not Printed.of(last_s, steps[-1].match[3]).scaled(float(ranks)).agrees(cpu.printed(2, "the CPU time")):
        raise cpu.error(f"the CPU time of the last step is not {ranks} x {steps[-1].match[3]} s")
    slowest = [one.printed(4, "the time of a step") for one in steps]
    if sum(one.value for one in slowest) > wall_s.value + wall_s.error + 1.0:
        raise wall.error("the steps took longer than the whole run")
    later = slowest[1:]
    if not later:
        raise log.error("one step alone: it holds the start, so no steady step is known")
    middle = statistics.median(one.value for one in later)
    steady = [one for one in later if one.value <= _OUTPUT * middle]
    samples = [one.sample("step", i=i) for i, one in enumerate(steady)]
    samples.append(wall_s.sample("wall"))
    sizes: dict[str, Value] = {name: banner.whole(i, name) for i, name in enumerate(("nx", "ny", "nz"), start=1)}
    notes = {"steps": len(steps), "slower_steps_left_out": len(later) - len(steady)}
    return Measured(samples, {**sizes, "ranks": ranks, "p": p, "q": q}, notes, version="")


def _steps(log: Log) -> list[Found]:
    """The lines of all steps, from 1 on, checked against the clock: it counts whole seconds."""
    steps, dates = log.found(_STEP), log.found(_DATE)
    if not steps or len(steps) < len(log.found(_STEP_LIKE)) or len(dates) != len(steps):
        raise log.error(f"{len(steps)} whole lines of steps and {len(dates)} of their dates: damaged, or cut off")
    before: int | None = None
    for place, (step, date) in enumerate(zip(steps, dates, strict=True)):
        least, mean, most = (step.number(group, "a time of a step") for group in (2, 3, 4))
        if not least <= mean <= most:
            raise step.error("not min <= ave <= max")
        if step.whole(1, "the step") != place + 1 or date.whole(1, "the step") != place + 1:
            raise step.error(f"not step {place + 1}: a step is missing, or out of order")
        hours, minutes, seconds = (int(date.match[group]) for group in (2, 3, 4))
        clock = 3600 * hours + 60 * minutes + seconds
        if before is not None:
            took, of = (clock - before) % 86400, steps[place - 1]
            # Output is written between steps, so the clock may show more; never less.
            if took < float(of.match[4]) - 1.1 or took > 3.0 * float(of.match[4]) + 2.0:
                raise of.error(f"the dates of this step and the next are {took} s apart")
        before = clock
    return steps


IMPORTED = figures.imported(
    "psdns",
    "M-PSDNS",
    "How long did M-PSDNS take for a step of its turbulence?",
    (
        *(figures.count(name, f"grid points, {name[1]}") for name in ("nx", "ny", "nz")),
        *figures.counts(ranks="processes", p="rows of the process grid", q="columns of the process grid"),
    ),
    (
        figures.time("step", "elapsed time of a step, slowest process; without the first step and those that write"),
        figures.time("wall", "elapsed time of the whole run"),
    ),
)

READER = log_reader(
    IMPORTED,
    "M-PSDNS",
    _measured,
    begin=(
        r"DNS-PEN-GPU turbulence code, nx,ny,nz= *([0-9]{1,6}) +([0-9]{1,6}) +([0-9]{1,6})",
        "DNS-PEN-GPU turbulence code, nx,ny,nz=  2048  2048  2048",
    ),
    end=(r"overall wall time for task +[0-9]{1,9} = +(\S{1,20}) +secs\.", "no wall time"),
)


_SITE = "https://github.com/austinguish/OLCF-6_M-PSDNS, folder benchmarks/SINUSOIDAL_CASES"
_SIZES = (2048, 16384, 32768)

BENCHMARK = application(
    IMPORTED,
    "How long does M-PSDNS take for a step of turbulence?",
    tool="M-PSDNS",
    programs=("DNS_PEN_GPU_p8.x", "DNS_PEN_GPU_p4.x"),
    install="build M-PSDNS of the OLCF-6 benchmarks and put DNS_PEN_GPU_p8.x (or _p4.x) on PATH",
    output="log",
    cases=tuple(InputCase(f"sinusoidal-{n}", f"{n}^3 points", f"{_SITE}/{n}", files=("input",)) for n in _SIZES),
    # It writes files into this folder, and does not make it.
    made=Made(inputs=lambda params: {"MPI_timings/made": b""}),
    has_start=False,
    stated={"ranks": "ranks"},
    evidence=FORMAT_SEEN,
)
