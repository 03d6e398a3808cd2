"""VASP: its OUTCAR, and runs on an input of the user.

`Elapsed time` is the whole run; the sum of `LOOP+` is the ionic steps. Each `LOOP+` is checked against the `LOOP`s in
it. The version is printed on standard output too, which scripts append: only the line `executed on` is there once.
"""

from __future__ import annotations

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, Printed, log_reader
from seatrial.applications.reading.text import Pattern
from seatrial.applications.running.given_input import FORMAT_SEEN, application
from seatrial.model.benchmark.parameter import Value

_CPU = Pattern(r"Total CPU time used \(sec\): +(\S{1,20})")
_LOOP_LIKE = Pattern(r"LOOP(\+?):.{0,120}")
_STEP = Pattern(r"-+ Iteration +([0-9]{1,6})\( *[0-9*]{1,6}\) +-+")
_LOOP = Pattern(r"LOOP(\+?): +cpu time +(\S{1,20}): real time +([0-9]{1,12}\.[0-9]{4})")
_RUNNING = Pattern(r"running +([0-9]{1,9}) mpi-ranks, with +([0-9]{1,9}) threads/rank(?:, on +([0-9]{1,9}) nodes)?")
_CORES = Pattern(r"running on +([0-9]{1,9}) total cores")

IMPORTED = figures.imported(
    "vasp",
    "VASP",
    "How long did VASP take?",
    figures.RUN_PARAMETERS,
    (
        figures.time("wall", "elapsed time of the whole run"),
        figures.time("loop", "elapsed time of all ionic steps (LOOP+)"),
    ),
)


def _measured(log: Log, begin: Found, end: Found) -> Measured:
    elapsed = end.printed(1, "the elapsed time")
    loops, remarks = _ionic_steps(log)
    loop_s = sum(loop.value for loop in loops)
    if loop_s > elapsed.value + elapsed.error + sum(loop.error for loop in loops):
        raise end.error(f"the ionic steps took {loop_s:g} s, longer than the whole run")
    parameters = _layout(log)
    _check_cpu_time(log, elapsed, parameters.get("threads"))
    samples = [elapsed.sample("wall")]
    if loops:
        samples.append(figures.time_sample("loop", loop_s, resolution=2 * sum(loop.error for loop in loops) / loop_s))
    return Measured(samples, parameters, remarks=remarks)


def _check_cpu_time(log: Log, elapsed: Printed, threads: Value | None) -> None:
    """Raise ParseError if the threads of a process used more CPU time than there was."""
    cpu = log.maybe(_CPU, "CPU time")
    if cpu is None or not isinstance(threads, int):
        return
    if cpu.number_or_zero(1, "the CPU time") > 1.02 * threads * (elapsed.value + 1):
        raise cpu.error(f"more CPU time than {elapsed.value:g} s of {threads} threads")


def _ionic_steps(log: Log) -> tuple[list[Printed], list[str]]:
    """The elapsed time of each ionic step, and what to tell the user: none are given if not all are in the file.

    Raises ParseError if the electronic steps took longer than the ionic step that has them.
    """
    whole: list[Printed] = []
    inside: list[Printed] = []
    damaged = len(log.found(_LOOP_LIKE)) - len(log.found(_LOOP))
    for one in log.found(_LOOP):
        time = one.printed(3, "the elapsed time")
        if not one.match[1]:
            inside.append(time)
            continue
        if sum(part.value - part.error for part in inside) > time.value + time.error:
            raise one.error("the electronic steps before it took longer")
        whole.append(time)
        inside = []
    steps = max((one.whole(1, "the ionic step", least=0) for one in log.found(_STEP)), default=0)
    if damaged or inside or steps != len(whole):
        return [], [f"{len(whole)} times of {steps} ionic steps are in the file, so their sum is left out"]
    return whole, []


def _layout(log: Log) -> dict[str, Value]:
    parameters: dict[str, Value] = {}
    if (running := log.maybe(_RUNNING, "number of ranks")) is not None:
        parameters |= {"ranks": running.whole(1, "the ranks"), "threads": running.whole(2, "the threads")}
        if running.match[3]:
            parameters["nodes"] = running.whole(3, "the nodes")
    elif (cores := log.maybe(_CORES, "number of cores")) is not None:
        parameters["ranks"] = cores.whole(1, "the cores")
    return parameters


READER = log_reader(
    IMPORTED,
    "VASP",
    _measured,
    begin=(
        r"executed on +.{0,60}date +([0-9]{4}\.[0-9]{2}\.[0-9]{2}) +([0-9:]{8})",
        "executed on LinuxIFC date 2023.06.08 14:01:21",
    ),
    begins="",  # it states its release above
    version=(r"vasp\.([0-9]\S{0,40}) .{0,200}", "no line such as `vasp.6.4.1 05Apr23`: its beginning is missing"),
    end=(r"Elapsed time \(sec\): +([0-9]{1,12}\.[0-9]{3})", "there is no `Elapsed time`"),
    states={"atoms": r"number of dos +NEDOS = +[0-9]+ +number of ions +NIONS = +([0-9]{1,12})"},
    remarked=(r"-+ aborting loop EDIFF was not reached.{0,80}", "the electronic steps did not converge"),
)

BENCHMARK = application(
    IMPORTED,
    "How long does VASP take?",
    tool="VASP",
    programs=("vasp_std", "vasp_gam", "vasp_ncl"),
    install="VASP needs a licence (https://www.vasp.at): put vasp_std on PATH",
    output="OUTCAR",
    # potentials (POTCAR) may not be published, so there is no complete input to be had
    has_start=False,
    evidence=FORMAT_SEEN,
)
