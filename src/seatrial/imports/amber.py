"""Output of AMBER's sander and pmemd: mdout, and mdinfo.

`seconds/ns` has more digits than `ns/day`, which has two decimals, so the figure is taken from it and checked against
the others. The average over all steps and that over the last steps are two figures. An mdinfo of a run that goes on has
the same numbers under `Current Timing Info`: it is refused.
"""

from __future__ import annotations

import re

from seatrial.imports.application_log import Found, Log, Printed, refuse_exploded, step_from_time_per_ns
from seatrial.imports.reader import Reader
from seatrial.imports.text import Line
from seatrial.model.frozen import Frozen
from seatrial.model.imported import ImportedExperiment, ImportedFile
from seatrial.model.parameter import Value

_TOOL = "AMBER"
_BANNER = re.compile(r"Amber ([0-9]{1,3}) (SANDER|PMEMD) +.{0,40}")
_RELEASE = re.compile(r"\| (PMEMD) implementation of SANDER, Release (\S{1,20})")
_CUDA = re.compile(r"\|.{0,40}GPU \(CUDA\) Version of (PMEMD) in use.{0,60}")
_TASKS = re.compile(r"\| Running AMBER/MPI version on +([0-9]{1,9}) +(?:nodes|MPI task\(?s?\)?)")
_ATOMS = re.compile(r"NATOM += +([0-9]{1,12}) NTYPES += .{1,80}")
_STEPS = re.compile(r"nstlim += +([0-9]{1,15}), nscm += .{1,80}")
_TIMESTEP = re.compile(r"t += +\S{1,20}, dt += +(\S{1,20}), vlimit.{0,40}")
_TOPOLOGY = re.compile(r"\| +PARM: +(\S.{0,300})")
_ROW = re.compile(r"NSTEP = +(\S{1,20}) +TIME\(PS\) = +(\S{1,20}) +TEMP\(K\) = *(\S{1,20})(?: .{0,40})?")
_ROW_LIKE = re.compile(r"NSTEP =.{0,200}")
_NOT_FINITE = re.compile(r"(?:Etot|BOND|EELEC|1-4 NB) +=.{0,120}(?:NaN|\*{6}|Infinity).{0,120}", re.IGNORECASE)
_BLOCKS = re.compile(r"(?:A V E R A G E S   O V E R|R M S  F L U C T U A T I O N S).{0,60}")
_FINAL = re.compile(r"\| +Final Performance Info:")
_CURRENT = re.compile(r"\| +Current Timing Info")
_DONE = re.compile(r"\| +Total steps : +([0-9]{1,15}) \| Completed : +([0-9]{1,15}) .{1,60}")
_AVERAGE = re.compile(r"\| +Average timings for (all|last +([0-9]{1,15})) steps:")
_ELAPSED = re.compile(r"\| +Elapsed\(s\) = +(\S{1,20}) Per Step\(ms\) = +(\S{1,20})")
_RATE = re.compile(r"\| +ns/day = +(\S{1,20}) +seconds/ns = +(\S{1,20})")
_WHOLE = re.compile(r"\| +(?:Run +done at .{1,60}|Master Total wall time: .{1,60}|Total wall time: .{1,60})")
_FS_PER_PS = 1000.0
_NATURAL_FS = 0.05
"""Time steps are multiples of this."""


class _Average(Frozen):
    steps: int | None
    elapsed: Printed
    step: Printed
    ns: Printed
    line: Found


def read(data: bytes) -> ImportedFile:
    """One run. Raises ParseError if it did not end or exploded, if the file holds two runs, or if its numbers
    contradict each other."""
    log = Log(_TOOL, data)
    has_banner = bool(log.found(_BANNER))
    rows = log.found(_ROW)
    if not has_banner and not (rows and rows[0].line.number <= 3 and (log.found(_FINAL) or log.found(_CURRENT))):
        raise log.error("no line such as 'Amber 22 SANDER', and no mdinfo: from another program, or cut off")
    log.refuse(_NOT_FINITE, "an energy is not a number: the simulation has exploded, so its rate means nothing")
    _refuse_hot(log)
    if log.found(_CURRENT):
        done = log.found(_DONE)
        how_far = f"{done[0].match[2]} of {done[0].match[1]} steps" if done else "`Current Timing Info`"
        raise log.not_ended(how_far)
    final = log.only(_FINAL, "`Final Performance Info`")
    averages = _averages(log, final)
    whole, last = averages.get("all"), averages.get("last")
    if whole is None:
        raise final.error("no `Average timings for all steps` below this line")
    version, parameters = _parameters(log) if has_banner else ("", {})
    if has_banner and not any(one.line.number > whole.line.line.number for one in log.found(_WHOLE)):
        raise log.not_ended("there is no `Run done` and no `Total wall time` below the averages")
    step = _step(whole, rows, parameters)
    _check_last(whole, last)
    samples = [whole.ns.sample("ns_time")]
    if last is not None:
        samples.append(last.ns.sample("ns_time_last"))
    samples += [step.sample("step"), whole.elapsed.sample("wall")]
    notes = {} if last is None else {"last_steps": last.steps}
    experiment = ImportedExperiment("imported.amber", tuple(samples), parameters, notes)
    return ImportedFile(_TOOL, version, (experiment,))


def _refuse_hot(log: Log) -> None:
    """Every row of the run, before its averages and fluctuations."""
    blocks = log.found(_BLOCKS)
    end = blocks[0].line.number if blocks else len(log.lines) + 1
    for row in log.found(_ROW):
        if row.line.number < end:
            refuse_exploded(row, row.match[3])
    if len(log.found(_ROW)) < len(log.found(_ROW_LIKE)):
        rows = {row.line.number for row in log.found(_ROW)}
        raise next(one for one in log.found(_ROW_LIKE) if one.line.number not in rows).error("a damaged row")


def _averages(log: Log, final: Found) -> dict[str, _Average]:
    below = [line for line in log.lines if line.number > final.line.number]
    found: dict[str, _Average] = {}
    for title in log.found(_AVERAGE, below):
        name = title.match[1].split()[0]
        if name in found:
            raise title.error("a second average of these steps: two runs in one file")
        steps = None if title.match[2] is None else title.whole(2, "the last steps")
        found[name] = _average(log, title, steps, [one for one in below if 0 < one.number - title.line.number <= 2])
    return found


def _average(log: Log, title: Found, steps: int | None, lines: list[Line]) -> _Average:
    elapsed, rate = log.found(_ELAPSED, lines), log.found(_RATE, lines)
    if len(elapsed) != 1 or len(rate) != 1:
        raise title.error("the two lines of times below this line are damaged or missing")
    per_day, ns = (
        Printed.of(rate[0].line.number_or_zero(_TOOL, rate[0].match[1], "ns/day"), rate[0].match[1]),
        rate[0].printed(2, "seconds/ns"),
    )
    if not per_day.agrees(ns.inverse(86400.0)):
        raise rate[0].error(f"{rate[0].match[1]} ns/day are not {rate[0].match[2]} seconds/ns")
    return _Average(
        steps, elapsed[0].printed(1, "the elapsed time"), elapsed[0].printed(2, "Per Step").scaled(1e-3), ns, elapsed[0]
    )


def _step(whole: _Average, rows: list[Found], parameters: dict[str, Value]) -> Printed:
    """The time of a step, from the elapsed time. Raises ParseError if it contradicts `Per Step`, or if the simulated
    time of a step is neither the stated one nor a natural one."""
    steps = parameters.get("steps", rows[-1].whole(1, "NSTEP") if rows else 0)
    if not isinstance(steps, int) or steps < 1:
        raise whole.line.error("the number of steps is not known")
    step = whole.elapsed.scaled(1.0 / steps)
    if not step.agrees(whole.step):
        raise whole.line.error(f"{whole.elapsed.value:g} s are not {steps} steps of {whole.step.value * 1e3:g} ms")
    timestep = parameters.get("timestep")
    stated = float(str(timestep).split()[0]) if timestep is not None else 0.0
    fs = 1e6 * step.value / whole.ns.value
    likely = stated or max(_NATURAL_FS, round(fs / _NATURAL_FS) * _NATURAL_FS)
    if not step_from_time_per_ns(whole.ns, likely).agrees(step):
        raise whole.line.error(f"the seconds/ns below are not {steps} steps of {likely:g} fs in this time")
    return step


def _check_last(whole: _Average, last: _Average | None) -> None:
    """The last steps: their own elapsed time, which is not longer than the whole, at the same time step."""
    if last is None or not last.steps:
        return
    step = last.elapsed.scaled(1.0 / last.steps)
    if not step.agrees(last.step) or last.elapsed.value > whole.elapsed.value * 1.001:
        raise last.line.error(f"not the time of the last {last.steps} steps")
    ratio = whole.elapsed.value / whole.ns.value / last.elapsed.value * last.ns.value * last.steps
    steps = ratio  # as many steps as the whole has, if both have one time step
    if not Printed(steps, steps * (last.elapsed.resolution + whole.elapsed.resolution)).agrees(
        Printed(float(round(whole.elapsed.value / whole.step.value)), whole.step.resolution * steps)
    ):
        raise last.line.error("the last steps have another time step than the whole run")


def _parameters(log: Log) -> tuple[str, dict[str, Value]]:
    banner = log.banner(_BANNER, "Amber 22 SANDER")
    is_pmemd = banner.match[2] == "PMEMD" or log.found(_RELEASE) or log.found(_CUDA)
    parameters: dict[str, Value] = {"program": "pmemd" if is_pmemd else "sander"}
    topology = log.maybe(_TOPOLOGY, "topology file")
    if topology is not None:
        parameters["input"] = topology.text(1)
    for name, pattern in (("atoms", _ATOMS), ("steps", _STEPS), ("ranks", _TASKS)):
        if (found := log.maybe(pattern, f"number of {name}")) is not None:
            parameters[name] = found.whole(1, f"the number of {name}")
    timestep = log.maybe(_TIMESTEP, "time step")
    if timestep is None or "steps" not in parameters:
        raise log.error("no `nstlim` or `dt`: its control data are missing")
    parameters["timestep"] = f"{timestep.number(1, 'dt') * _FS_PER_PS:g} fs"
    return banner.text(1), parameters


READER = Reader("amber", read)
