"""Quantum ESPRESSO's pw.x: its logs, and the electrons of silicon.

`PWSCF : ... CPU ... WALL` is the whole run. From one hour on it is printed in whole minutes. CPU time is not elapsed
time: threads add up. `JOB DONE.` alone is not an end: pw.x prints it after it ran out of its own time as well. The
time is checked against the whole seconds at which the run began and ended, and against those of its stages.

pw.x is a plane-wave code of density-functional theory. The problem of `apps.qe` is made here: a supercell of the
diamond lattice (a = 10.2 bohr, 8 atoms in a cubic cell), at Gamma, with the local-density pseudopotential
Si.pz-vbc.UPF that comes with Quantum ESPRESSO, a cutoff of 18 Ry, and the electrons brought to self-consistency. Most
of the time goes into three-dimensional transforms and dense linear algebra, and into the all-to-all between ranks that
the transforms need.

The total energy judges the result: it is a property of the problem, and must not depend on ranks, threads or libraries.
The expected energies were computed with pw.x 6.7: at Gamma, n^3 cells have the energy of one cell with n^3 k-points on
a grid that holds Gamma, which is cheap to compute (for n = 2 both were: they agree to 1e-7 Ry).
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, Printed, log_reader
from seatrial.applications.reading.run_output import run_output
from seatrial.applications.reading.text import Pattern
from seatrial.applications.running.copies import problem
from seatrial.benchmarks.figures import between, duration, exactly
from seatrial.benchmarks.placement import LAYOUT, counted_by, cpus_of, openmp_variables, resolved
from seatrial.model.benchmark.benchmark import Check, External, Skip
from seatrial.model.benchmark.parameter import Parameter, Params, Value, whole
from seatrial.model.benchmark.program import ProgramRecord
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample
from seatrial.model.spelling import half_unit

_CLOCK = r"([0-9]{1,2}): *([0-9]{1,2}): *([0-9]{1,2})"
_DATE = r"([0-9]{1,2}) ?([A-Z][a-z]{2}) ?([0-9]{4})"
_BANNER = rf"Program PWSCF v\.?([0-9]\S{{0,20}}) .{{0,40}}?starts on +{_DATE} +at +{_CLOCK}"
_BANNER_LIKE = Pattern(r"Program PWSCF.{0,80}")
_LOOKS_LIKE = "Program PWSCF v.7.2 starts on 1Jan2024 at 10:00:00"
_ENDED = Pattern(rf"This run was terminated on: +{_CLOCK} +{_DATE}")
_TIME = r"((?:[0-9]{1,4}d)? *(?:[0-9]{1,2}h)? *(?:[0-9]{1,2}m)? *(?:[0-9]{1,5}(?:\.[0-9]{1,3})?s)?)"
_TOTAL = Pattern(rf"(?i)PWSCF +: *{_TIME} +CPU(?: time,)? *{_TIME} +(?:WALL|wall time)")
_JOB_DONE = r"JOB DONE\."
_STAGE = Pattern(r"(init_run|electrons|update_pot|forces|stress) +: +\S{1,20}s CPU +(\S{1,20})s WALL \(.{1,20}\)")
_ERROR = r"from \S+ : error # +.{1,40}|Error in routine .{1,120}"
_PROCESSORS = Pattern(r"(Parallel|Serial) (.{1,60}), running on +([0-9]{1,9}) processor(?:s| cores?)")
_STATES = {
    "ranks": r"Number of MPI processes: +([0-9]{1,9})",
    "threads": r"Threads/MPI process: +([0-9]{1,9})",
    "nodes": r"MPI processes distributed on +([0-9]{1,9}) nodes",
    "atoms": r"number of atoms/cell += +([0-9]{1,12})",
}
_NUMBERS = {name: Pattern(line) for name, line in _STATES.items()}
_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_LEFT_OUT_S = 3.0
"""pw.x prints its time before it ends, and the moments are whole seconds."""

IMPORTED = figures.imported(
    "qe",
    "Quantum ESPRESSO",
    "How long did Quantum ESPRESSO take?",
    figures.RUN_PARAMETERS,
    (figures.time("wall", "elapsed time of the whole run (PWSCF, WALL)"),),
)


def _measured(log: Log, begin: Found, end: Found) -> Measured:
    log.banner(_BANNER_LIKE, _LOOKS_LIKE)
    total = log.only(_TOTAL, "line `PWSCF : ... CPU ... WALL`")
    wall = _seconds(total, 2)
    ended = log.only(_ENDED, "line `This run was terminated on`")
    _check_span(total, wall, (_moment(ended, date=4, clock=1) - _moment(begin, date=2, clock=5)).total_seconds())
    _check_stages(log, total, wall)
    return Measured([wall.sample("wall")], _layout(log))


def _check_span(total: Found, wall: Printed, span_s: float) -> None:
    """Raise ParseError if the time is not that from the begin to the end, which are whole seconds."""
    error_s = 1.5 + 2 * wall.error  # minutes are cut off, not rounded
    if not wall.value - error_s <= span_s <= wall.value + error_s + _LEFT_OUT_S + 0.01 * wall.value:
        raise total.error(f"{wall.value:g} s, but the run took {span_s:g} s from its begin to its end")


def _check_stages(log: Log, total: Found, wall: Printed) -> None:
    """Raise ParseError if the stages of a run, which do not overlap, took longer than the run."""
    stages = [one.number_or_zero(2, f"the time of {one.match[1]}") for one in log.found(_STAGE)]
    if 0.99 * sum(stages) - 0.005 * len(stages) > wall.value + 2 * wall.error:
        raise total.error(f"{wall.value:g} s, but the stages of the run took {sum(stages):g} s")


def _seconds(found: Found, group: int) -> Printed:
    """A time such as `1m 2.33s`. Raises ParseError for an empty one, or 0 s."""
    parts = re.findall(r"([0-9.]+)([dhms])", found.match[group])
    value = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if not value:
        raise found.error("the elapsed time is 0 s, or missing: the run was too short for a figure")
    number, unit = parts[-1]
    return Printed(value, half_unit(number) * _UNITS[unit])


def _moment(found: Found, *, date: int, clock: int) -> datetime:
    """The moment that a line states. Raises ParseError."""
    day, month, year = found.match[date], found.match[date + 1], found.match[date + 2]
    hour, minute, second = (int(found.match[clock + place]) for place in range(3))
    try:
        return datetime(int(year), _MONTHS.index(month) + 1, int(day), hour, minute, second)
    except ValueError as error:
        raise found.error("not a valid date and time") from error


def _layout(log: Log) -> dict[str, Value]:
    """Ranks and threads, as the line of the version states them."""
    running = log.maybe(_PROCESSORS, "number of processors")
    if running is None or log.found(_NUMBERS["ranks"]):
        return {}
    processors = running.whole(3, "the processors")
    return {"ranks": 1, "threads": processors} if running.match[1] == "Serial" else {"ranks": processors}


READER = log_reader(
    IMPORTED,
    "Quantum ESPRESSO",
    _measured,
    begin=(_BANNER, _LOOKS_LIKE),
    refused=(
        (
            r"(?:Maximum CPU time exceeded|Calculation stopped in .{1,80}|Signal Received, stopping .{0,40}"
            r"|Program stopped by user request.{0,80})",
            "pw.x stopped before it was done: `JOB DONE.` below means only that it ended without an error",
        ),
        (rf"(?:task # +[0-9]+|{_ERROR})", "pw.x failed: the run has no figure"),
        (
            "convergence NOT achieved.{0,40}stopping.{0,40}",
            "pw.x stopped because the electrons did not converge: the run has no figure",
        ),
    ),
    end=(_JOB_DONE, "there is no `JOB DONE.`"),
    states=_STATES,
    remarked=(
        r"(?:.{0,30}convergence NOT achieved.{0,80}|The maximum number of steps has been reached\."
        r"|bfgs failed after.{0,80}|.{0,20}history already reset.{0,80})",
        "{text}",
    ),
)


_INPUT = "silicon.in"
_PSEUDOPOTENTIAL = "Si.pz-vbc.UPF"
_ATOMS_OF_RUN = 8
_BASIS = (
    *((0.0, 0.0, 0.0), (0.0, 0.5, 0.5), (0.5, 0.0, 0.5), (0.5, 0.5, 0.0)),
    *((0.25, 0.25, 0.25), (0.25, 0.75, 0.75), (0.75, 0.25, 0.75), (0.75, 0.75, 0.25)),
)
_ENERGY_RY = {1: -7.8249048, 2: -7.9143054, 3: -7.9212708, 4: -7.9221874, 5: -7.9223153, 6: -7.9223690}
"""Per atom, by the cells along an edge."""
_TOLERANCE_RY = 2e-5
_ACCURACY_RY = 1e-8
_S_PER_ATOM_CUBED = 1.2e-4
_START_S = 2.0

_MISSING = Pattern(r"file .{0,300}\.UPF not found")
_FAILED = Pattern(rf"{_ERROR}|convergence NOT achieved.{{0,80}}")
_CONVERGED = Pattern(r"convergence has been achieved in +([0-9]{1,4}) iterations")
_ENERGY = Pattern(r"! +total energy +=\s+(\S{1,30}) Ry")
_ACCURACY = Pattern(r"estimated scf accuracy +< +(\S{1,30}) Ry")
_ELECTRONS = Pattern(rf"electrons +: +\S{{1,20}} CPU +{_TIME} WALL \( +1 calls\)")
_DONE, _STARTED = Pattern(_JOB_DONE), Pattern(_BANNER)

SCF = "scf"


def _inputs(params: Params) -> dict[str, bytes]:
    cells = whole(params["cells"])
    edge = range(cells)
    atoms = [
        " Si " + " ".join(f"{(corner + offset) / cells:.10f}" for corner, offset in zip((i, j, k), place, strict=True))
        for i in edge
        for j in edge
        for k in edge
        for place in _BASIS
    ]
    lines = (
        *("&control", " calculation='scf', prefix='si', outdir='.', disk_io='none'"),
        *(f" pseudo_dir='{params['pseudo_dir']}'", "/"),
        f"&system ibrav=1, celldm(1)={10.2 * cells:.1f}, nat={len(atoms)}, ntyp=1, ecutwfc=18.0 /",
        f"&electrons conv_thr={_ACCURACY_RY:.1e}, mixing_beta=0.7, startingwfc='atomic' /".replace("e-", "d-"),
        *("ATOMIC_SPECIES", f" Si 28.0855 {_PSEUDOPOTENTIAL}", "ATOMIC_POSITIONS crystal", *atoms, "K_POINTS gamma"),
    )
    return {_INPUT: "".join(f"{line}\n" for line in lines).encode()}


@run_output("pw.x")
def read_pw(log: Log) -> ProgramRecord:
    """One self-consistent calculation of pw.x: its iterations. Not `ended` if it stopped early; skipped where the
    pseudopotential is missing. Raises ProtocolError for output of other programs, of two runs, and damaged numbers."""
    notes: dict[str, Any] = {"version": log.banner(_STARTED, _LOOKS_LIKE).match[1]}
    if log.found(_MISSING):
        why = f"pw.x finds no {_PSEUDOPOTENTIAL}: set pseudo_dir to the folder that has it"
        return ProgramRecord(notes=notes, skip=why, ended=True)
    if failed := log.found(_FAILED):
        return ProgramRecord(notes={**notes, "error": failed[0].match[0][:300]})
    if not log.found(_DONE):
        return ProgramRecord(notes=notes)
    iterations = log.only(_CONVERGED, "number of iterations").whole(1, "the number of iterations")
    electrons = log.only(_ELECTRONS, "time of the electrons")
    time, total_s = _seconds(electrons, 1), _seconds(log.only(_TOTAL, "time of the run"), 2).value
    electrons_s = time.value
    if electrons_s > total_s + 0.01 or time.error > 0.01:
        raise electrons.error(f"{iterations} iterations took {electrons_s:g} s of {total_s:g} s")
    extra = {"resolution": 0.01, "run_s": total_s}
    sample = Sample(SCF, 0, electrons_s, {"iterations": float(iterations)}, extra=extra)
    return ProgramRecord(samples=(sample,), checks=_checks(log), notes=notes, ended=True)


def _checks(log: Log) -> dict[str, float | None]:
    """What must be as it was asked for, and what pw.x found."""
    stated = {name: float(value) for name, value in log.stated(_NUMBERS).items()}
    running = log.maybe(_PROCESSORS, "number of processors")
    ranks, threads, atoms = stated.get("ranks"), stated.get("threads", 1.0), stated.get("atoms")
    if running is not None:
        ranks = running.whole(3, "the processors") / (threads if "OpenMP" in running.match[2] else 1.0)
    if ranks is None or atoms is None:
        raise log.error("it does not state the number of processes and of atoms")
    energy = log.only(_ENERGY, "total energy").result(1, "the total energy")
    accuracy = log.found(_ACCURACY)
    return {
        "atoms": atoms,
        "energy": None if energy is None else energy / atoms,
        "accuracy": accuracy[-1].number(1, "the accuracy") if accuracy else None,
        "ranks": ranks,
        "threads": threads,
    }


def _energy(machine: Machine, params: Params) -> tuple[float, float]:
    known = _ENERGY_RY[whole(params["cells"])]
    return (known - _TOLERANCE_RY, known + _TOLERANCE_RY)


def _prepare(machine: Machine, params: Params) -> Params:
    if params["cells"] not in _ENERGY_RY:
        raise Skip(f"the energy of {params['cells']} cells along an edge is unknown: choose 1 to {max(_ENERGY_RY)}")
    return resolved(machine, params)


def _atoms(params: Params) -> int:
    return int(_ATOMS_OF_RUN * whole(params["cells"]) ** 3)


BENCHMARK = problem(
    External(
        name="pw.x",
        install="install Quantum ESPRESSO (Debian: packages quantum-espresso and quantum-espresso-data; Spack: "
        "spack install quantum-espresso)",
        output="stdout",
        arguments=lambda params, directory: ["-in", _INPUT],
        parse=read_pw,
        version=(),
        inputs=_inputs,
        variables=openmp_variables,
    ),
    name="apps.qe",
    question="How fast does Quantum ESPRESSO bring the electrons of silicon to self-consistency?",
    parameters=(
        Parameter.integer("cells", 1, f"cubic cells of 8 atoms along an edge, {max(_ENERGY_RY)} at most", minimum=1),
        *LAYOUT,
        Parameter.text(
            "pseudo_dir", "/usr/share/espresso/pseudo", f"the folder of the pseudopotential {_PSEUDOPOTENTIAL}"
        ),
    ),
    figures=(
        duration("step", "one iteration of all electrons to self-consistency", "iterations", series=SCF),
        duration("electrons", "all iterations to self-consistency", series=SCF),
    ),
    checks=(
        *counted_by("pw.x"),
        Check("atoms", "atoms, as pw.x reports", exactly(_atoms)),
        Check("energy", "total energy per atom, in Ry", _energy),
        Check("accuracy", "estimated accuracy of the energy, in Ry", between(0.0, _ACCURACY_RY)),
    ),
    prepare=_prepare,
    estimate_s=lambda params: _START_S + _S_PER_ATOM_CUBED * _atoms(params) ** 3 / cpus_of(params),
)
