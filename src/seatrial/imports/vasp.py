"""VASP's OUTCAR: `Elapsed time` of the whole run, and the sum of `LOOP+`, the ionic steps.

Each `LOOP+` is checked against the `LOOP`s in it. The version is printed on standard output too, which scripts append:
only the line `executed on` is there once.
"""

from __future__ import annotations

import re

from seatrial.imports.application_log import Log, Printed
from seatrial.imports.reader import Reader
from seatrial.imports.samples import time_sample
from seatrial.model.imported import ImportedExperiment, ImportedFile
from seatrial.model.parameter import Value

_TOOL = "VASP"
_BANNER = re.compile(r"executed on +.{0,60}date +([0-9]{4}\.[0-9]{2}\.[0-9]{2}) +([0-9:]{8})")
_VERSION = re.compile(r"vasp\.([0-9]\S{0,40}) .{0,200}")
_ELAPSED = re.compile(r"Elapsed time \(sec\): +([0-9]{1,12}\.[0-9]{3})")
_CPU = re.compile(r"Total CPU time used \(sec\): +(\S{1,20})")
_LOOP_LIKE = re.compile(r"LOOP(\+?):.{0,120}")
_STEP = re.compile(r"-+ Iteration +([0-9]{1,6})\( *[0-9*]{1,6}\) +-+")
_LOOP = re.compile(r"LOOP(\+?): +cpu time +(\S{1,20}): real time +([0-9]{1,12}\.[0-9]{4})")
_RUNNING = re.compile(r"running +([0-9]{1,9}) mpi-ranks, with +([0-9]{1,9}) threads/rank(?:, on +([0-9]{1,9}) nodes)?")
_CORES = re.compile(r"running on +([0-9]{1,9}) total cores")
_ATOMS = re.compile(r"number of dos +NEDOS = +[0-9]+ +number of ions +NIONS = +([0-9]{1,12})")
_UNCONVERGED = re.compile(r"-+ aborting loop EDIFF was not reached.{0,80}")


def read(data: bytes) -> ImportedFile:
    """One run of VASP. Raises ParseError if it did not end, or its times contradict each other."""
    log = Log(_TOOL, data)
    log.banner(_BANNER, "executed on LinuxIFC date 2023.06.08 14:01:21")
    version = log.maybe(_VERSION, "version")
    if version is None:
        raise log.error("no line such as `vasp.6.4.1 05Apr23`: its beginning is missing")
    if not log.found(_ELAPSED):
        raise log.not_ended("there is no `Elapsed time`")
    line = log.only(_ELAPSED, "`Elapsed time`")
    elapsed = line.printed(1, "the elapsed time")
    loops, remarks = _ionic_steps(log)
    loop_s = sum(loop.value for loop in loops)
    if loop_s > elapsed.value + elapsed.error + sum(loop.error for loop in loops):
        raise line.error(f"the ionic steps took {loop_s:g} s, longer than the whole run")
    remarks += [f"line {one.line.number}: the electronic steps did not converge" for one in log.found(_UNCONVERGED)[:1]]
    parameters = _parameters(log)
    _check_cpu_time(log, elapsed, parameters.get("threads"))
    samples = [time_sample("wall", elapsed.value, resolution=elapsed.resolution)]
    if loops:
        samples.append(time_sample("loop", loop_s, resolution=2 * sum(loop.error for loop in loops) / loop_s))
    experiment = ImportedExperiment("imported.vasp", tuple(samples), parameters, remarks=tuple(remarks))
    return ImportedFile(_TOOL, version.text(1), (experiment,))


def _check_cpu_time(log: Log, elapsed: Printed, threads: Value | None) -> None:
    """Raise ParseError if the threads of a process used more CPU time than there was."""
    cpu = log.maybe(_CPU, "CPU time")
    if cpu is None or not isinstance(threads, int):
        return
    if cpu.line.number_or_zero(_TOOL, cpu.match[1], "the CPU time") > 1.02 * threads * (elapsed.value + 1):
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


def _parameters(log: Log) -> dict[str, Value]:
    parameters: dict[str, Value] = {}
    if (atoms := log.maybe(_ATOMS, "number of ions")) is not None:
        parameters["atoms"] = atoms.whole(1, "NIONS")
    if (running := log.maybe(_RUNNING, "number of ranks")) is not None:
        parameters |= {"ranks": running.whole(1, "the ranks"), "threads": running.whole(2, "the threads")}
        if running.match[3]:
            parameters["nodes"] = running.whole(3, "the nodes")
    elif (cores := log.maybe(_CORES, "number of cores")) is not None:
        parameters["ranks"] = cores.whole(1, "the cores")
    return parameters


READER = Reader("vasp", read)
