"""Outputs of LAMMPS (log.lammps or its standard output), of the versions from 2016 on, which have a timing breakdown.

`Loop time` is the elapsed time of one `run` command without its set-up. An input may have several; the last counts.
The performance and the breakdown repeat it, so damage is detected. A file may hold several runs of the program: each is
its own experiment.

`apps.lammps`: the Lennard-Jones melt of LAMMPS, a molecular dynamics code used in many acceptance tests.

The problem is that of the benchmark `lj` which comes with LAMMPS (https://www.lammps.org/bench.html): atoms on an fcc
lattice of reduced density 0.8442 melt at a reduced temperature of 1.44, with a cutoff of 2.5 sigma, a skin of 0.3
sigma, neighbour lists that are built every 20 steps, and constant energy. Two things differ. The atoms melt for 100
steps before the measured ones, so these are all alike. And pair energies are shifted to zero at the cutoff, which
changes no force: without it the total energy changes with each pair that crosses the cutoff, which hides whether it
is conserved.

The check of the energy. Lists that live for 20 steps (0.1 tau) miss pairs that come from beyond the skin. At the melt's
temperature of 0.75 the distance of a pair changes by sqrt(2 T) 0.1 = 0.12 sigma meanwhile (one standard deviation,
without collisions). The pairs that get through a skin of 0.3 sigma, times the force of 0.039 epsilon/sigma at the
cutoff that they missed, give an error of 1.7e-5 epsilon per atom for each list. That is the most: collisions hold it at
a sixth of this (LAMMPS of 2022, 5000 steps). Velocity Verlet itself fluctuates by some 1e-5. With twice the time step,
or lists that live for 40 steps, the energy changes by more than five times the bound.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Printed
from seatrial.applications.reading.run_output import run_output
from seatrial.applications.reading.text import LogLine, Pattern, number
from seatrial.applications.running.copies import problem
from seatrial.benchmarks.figures import exactly, rate, time_step
from seatrial.benchmarks.placement import LAYOUT, counted_by, cpus_of, edge_for, openmp_variables, resolved
from seatrial.model.benchmark.benchmark import Check, External, Skip
from seatrial.model.benchmark.parameter import Parameter, Params, Value, whole
from seatrial.model.benchmark.program import ProgramRecord
from seatrial.model.frozen import Frozen
from seatrial.model.machine.machine import Machine
from seatrial.model.results.imported import ImportedExperiment, ImportedFile
from seatrial.model.results.sample import Sample

_TOOL = "LAMMPS"
_BANNER = Pattern(r"LAMMPS \(([^)]{1,80})\).{0,80}")
_ERROR = Pattern(r"ERROR(?: on proc [0-9]{1,9})?: .{0,1000}")
_FATAL = Pattern(r".{0,80}(?:MPI_ABORT was invoked|Segmentation fault|CANCELLED AT).{0,200}")
_UNITS = Pattern(r"Unit style +: ([a-z]{1,20})")
_TIMESTEP = Pattern(r"Time step +: (\S{1,40})")
_PAIR = Pattern(r"\(1\) pair ([^ ,]{1,80}), perpetual.{0,80}")
_LOOP = Pattern(r"Loop time of (\S{1,40}) on ([0-9]{1,9}) procs for ([0-9]{1,15}) steps with ([0-9]{1,15}) atoms")
_LOOP_LIKE = Pattern(r"Loop time of.{0,200}")
_PERFORMANCE = Pattern(
    r"Performance: (?:\S{1,40} ns/day, (?P<hours>\S{1,40}) hours/ns|.{1,80})"
    r", (?P<rate>[^ ,]{1,40}) timesteps/s(?:, .{1,80})?"
)
_TASKS = Pattern(r"(\S{1,20})% CPU use with ([0-9]{1,9}) MPI tasks x ([0-9]{1,9}|no) OpenMP threads")
_SECTION = Pattern(
    r"([A-Z][A-Za-z0-9_/-]{0,19}) *\|([^|]{1,40})\|([^|]{1,40})\|([^|]{1,40})\|([^|]{1,20})\|([^|]{1,20})"
)
_BREAKDOWN = "MPI task timing breakdown:"
_TOTAL = Pattern(r"Total wall time: ([0-9]{1,6}):([0-5][0-9]):([0-5][0-9])")
_FS_OF_UNIT = {"real": 1.0, "metal": 1e3}
"""Style of units -> femtoseconds of its unit of time; their temperatures are in kelvins (LAMMPS' command `units`)."""
_AN_HOUR_S = 3600.0
_SUM_SLACK = 1e-3
"""Each section is printed to five digits."""


class _Run(Frozen):
    """One `run` command: its line, and those from the loop before it and to the loop after it; `sections` are those of
    the timing breakdown, in s."""

    loop: Found
    before: Sequence[LogLine]
    after: Sequence[LogLine]
    took: Printed
    atoms: int
    steps: int
    ranks: int
    threads: int
    sections: dict[str, float]
    performance: Found

    @property
    def step(self) -> Printed:
        """Elapsed time of a step."""
        return self.took.scaled(1 / self.steps)


def read(data: bytes) -> ImportedFile:
    """The runs of LAMMPS in a file. Raises ParseError if one did not end, failed or exploded, or if its numbers
    contradict each other."""
    log = Log(_TOOL, data)
    banners = log.found(_BANNER)
    if not banners:
        raise log.error("no line such as 'LAMMPS (29 Sep 2021)': from another program, or its beginning is missing")
    log.refuse(_ERROR, "LAMMPS stopped with an error: the run has no figure")
    log.refuse(_FATAL, "the run was ended: it has no figure")
    versions = {one.text(1) for one in banners}
    ends = [one.line.number - 1 for one in banners[1:]] + [len(log.lines)]
    experiments = tuple(
        _experiment(log, log.lines[banner.line.number - 1 : end]) for banner, end in zip(banners, ends, strict=True)
    )
    return ImportedFile(_TOOL, versions.pop() if len(versions) == 1 else "", experiments)


def _experiment(log: Log, lines: Sequence[LogLine]) -> ImportedExperiment:
    """One start of the program."""
    runs = _runs(log, lines)
    units, timestep = _last(log, _UNITS, lines), _last(log, _TIMESTEP, lines)
    fs = _FS_OF_UNIT.get(units.match[1]) if units else None
    for run in runs:
        _check_rows(log, run, has_kelvins=fs is not None)
    last = runs[-1]
    parameters: dict[str, Value] = {
        "atoms": last.atoms,
        "steps": last.steps,
        "ranks": last.ranks,
        "threads": last.threads,
    }
    if pairs := log.found(_PAIR, lines):
        parameters["pair"] = pairs[-1].text(1)
    samples = [last.step.sample("step"), last.took.sample("loop")]
    if fs is not None and timestep is not None:
        timestep_fs = timestep.number(1, "the time step") * fs
        parameters["timestep"] = f"{timestep_fs:g} fs"
        samples.append(_time_per_ns(last, timestep_fs).sample("ns_time"))
    return ImportedExperiment("imported.lammps", tuple(samples), parameters, {"runs": len(runs)})


def _time_per_ns(run: _Run, timestep_fs: float) -> Printed:
    """Seconds per simulated nanosecond. Raises ParseError if the performance contradicts the time step."""
    computed = run.step.ns_time_from_step(timestep_fs)
    stated = run.performance
    if stated.match["hours"] is None:
        raise stated.error("no hours/ns, which units real and metal have")
    if not stated.printed("hours", "the hours per ns").scaled(_AN_HOUR_S).agrees(computed):
        raise stated.error(f"{stated.match['hours']} hours/ns are not that of steps of {timestep_fs:g} fs")
    return computed


def _runs(log: Log, lines: Sequence[LogLine]) -> list[_Run]:
    """The `run` commands of one start of the program, in order. Raises ParseError if it has not ended, nothing was run,
    or a line is damaged."""
    total = _only(log, _TOTAL, lines, "the run has not ended, or the file is cut off: there is no `Total wall time`")
    loops = log.each_of_form(_LOOP_LIKE, _LOOP, "a damaged `Loop time`", lines)
    if not loops:
        raise lines[0].error("no `Loop time` follows: nothing was run")
    _check_total(total, loops)
    starts = [lines[0].number, *(loop.line.number for loop in loops), lines[-1].number + 1]
    return [
        _run(log, loop, log.lines[before - 1 : loop.line.number - 1], log.lines[loop.line.number : after - 1])
        for loop, before, after in zip(loops, starts[:-2], starts[2:], strict=True)
    ]


def _run(log: Log, loop: Found, before: Sequence[LogLine], after: Sequence[LogLine]) -> _Run:
    took, steps = loop.printed(1, "the loop time"), loop.whole(3, "the steps")
    tasks = _only(log, _TASKS, after, f"no line of MPI tasks follows line {loop.line.number}")
    ranks, threads = tasks.whole(2, "the ranks"), 1 if tasks.match[3] == "no" else tasks.whole(3, "the threads")
    if ranks * threads != loop.whole(2, "the processes"):
        raise tasks.error(f"not the {loop.match[2]} processes of line {loop.line.number}")
    stated = _only(log, _PERFORMANCE, after, f"no performance follows line {loop.line.number}: a minimisation has none")
    if not took.scaled(1 / steps).inverse().agrees(stated.printed("rate", "the timesteps per second")):
        raise stated.error(f"{stated.match['rate']} timesteps/s are not {steps} steps in {loop.match[1]} s")
    sections = _sections(log, after, loop, took)
    return _Run(loop, before, after, took, loop.whole(4, "the atoms"), steps, ranks, threads, sections, stated)


def _check_total(total: Found, loops: Sequence[Found]) -> None:
    """Raise ParseError if the whole took less than its loops."""
    hours, minutes, seconds = (int(total.match[group]) for group in (1, 2, 3))
    took = sum(loop.number(1, "the loop time") for loop in loops)
    if 3600 * hours + 60 * minutes + seconds + 1 < took:
        raise total.error(f"below the {took:g} s of its loops")


def _sections(log: Log, lines: Sequence[LogLine], loop: Found, took: Printed) -> dict[str, float]:
    """Section -> mean over ranks, in s, of the first timing breakdown (with threads there is another). Raises
    ParseError if they do not add up to the loop time."""
    start = next((at for at, line in enumerate(lines) if log.text(line) == _BREAKDOWN), None)
    if start is None:
        raise loop.error("no `MPI task timing breakdown` follows: from a version before 2016, or cut off")
    found = [
        one
        for line in itertools.takewhile(lambda line: log.text(line), lines[start + 3 :])
        for one in log.found(_SECTION, [line])
    ]
    times = [one.line.number_or_zero(one.match[3].strip(), "a section's time") for one in found]
    if abs(sum(times) - took.value) > _SUM_SLACK * took.value + took.error:
        raise loop.error(f"its breakdown adds up to {sum(times):g} s")
    return {one.match[1].lower(): time for one, time in zip(found, times, strict=True)}


def _table(log: Log, run: _Run) -> tuple[list[str], list[tuple[LogLine, list[str]]]]:
    """The columns of the thermodynamic output of a run, and its rows with their cells. An input may print them in
    another form; then there is none."""
    heads = [at for at, line in enumerate(run.before) if log.text(line).split()[:1] == ["Step"]]
    if not heads:
        return [], []
    columns = log.text(run.before[heads[-1]]).split()
    below = ((line, log.text(line).split()) for line in run.before[heads[-1] + 1 :])
    # A line that is not a row is a warning, or what a `print` of the input writes.
    return columns, [(line, cells) for line, cells in below if len(cells) == len(columns) and cells[0].isdecimal()]


def _check_rows(log: Log, run: _Run, *, has_kelvins: bool) -> None:
    """Raise ParseError for a row with a value that is not a number or a temperature that is none, and for rows of other
    steps."""
    columns, rows = _table(log, run)
    for line, cells in rows:
        if any(number(cell) is None for cell in cells):
            raise line.error("not all of its values are numbers: the simulation has exploded, or it is damaged")
        if has_kelvins and "Temp" in columns:
            log.whole_line(line).refuse_exploded(cells[columns.index("Temp")])
    if columns:
        _check_steps(run, rows)


def _check_steps(run: _Run, rows: Sequence[tuple[LogLine, list[str]]]) -> None:
    if len(rows) < 2 or int(rows[-1][1][0]) - int(rows[0][1][0]) != run.steps:
        raise run.loop.error(f"{run.steps} steps, but the rows above are of other steps")


def _only(log: Log, pattern: Pattern, lines: Sequence[LogLine], why: str) -> Found:
    """The one line of this pattern among these. Raises ParseError with `why` if there is none, or if there are more."""
    found = log.found(pattern, lines)
    if not found:
        raise (lines[-1] if lines else log.lines[-1]).error(why)
    if len(found) > 1:
        raise found[1].error(f"a second line of this kind; the first is on line {found[0].line.number}")
    return found[0]


def _last(log: Log, pattern: Pattern, lines: Sequence[LogLine]) -> Found | None:
    found = log.found(pattern, lines)
    return found[-1] if found else None


IMPORTED = figures.imported(
    "lammps",
    "LAMMPS",
    "How fast did LAMMPS simulate?",
    (figures.text("pair", "pair style, with the suffix of its package"), *figures.DYNAMICS_PARAMETERS),
    (
        figures.time("step", "elapsed time of a step of the last `run` (Loop time over steps)"),
        figures.time("loop", "elapsed time of the last `run` (Loop time)"),
        figures.time_per_ns("ns_time", "elapsed time of a simulated nanosecond, of units real and metal"),
    ),
)

READER = figures.Reader("lammps", read, (_BANNER.text,))

_INPUT = "in.melt"
_SMALLEST_EDGE = 20
"""Cells along an edge of the problem that comes with LAMMPS: 32,000 atoms."""
_ATOMS_PER_CELL = 4
_ATOMS_PER_CORE = 16_000
_SETTLING_STEPS = 100
_STEPS_OF_A_LIST = 20
_ENERGY_PER_LIST = 2e-5
_ENERGY_FLUCTUATION = 1e-4
_SLOW_CORE_RATE = 1.5e6
"""Atom steps per second; a core of 2022 makes 4 million with the plain kernels of a package build."""
_START_S = 1.0

_THREADED = ("omp", "intel")
_MODES = {"fp64": "double", "mixed": "mixed", "fp32": "single"}
"""Precision -> the words of the package INTEL."""

_NO_PACKAGE = Pattern(r"ERROR: .{0,40}(?:suffix|[Pp]ackage) .{0,40}without ([A-Z-]{1,20}) package installed.{0,200}")
_CREATED = Pattern(r"Created ([0-9]{1,15}) atoms")
_PRECISION = Pattern(r"Precision: ([a-z]{1,20})")
_SETUP = Pattern(r"Per MPI rank memory allocation .{1,200}")
_BUILDS = Pattern(r"Neighbor list builds = ([0-9]{1,15})")

MEASURED, SETTLING = "run", "settling"
"""The series of the last `run` of an input, and of those before it."""


@run_output(_TOOL)
def read_lammps(log: Log) -> ProgramRecord:
    """The runs that LAMMPS printed. A record that is not `ended` stopped early; a package that its build
    does not have is a reason to skip. Raises ProtocolError where the output is none of LAMMPS, of two processes, or
    contradicts itself. Energies are per atom if the input has `thermo_modify norm yes`."""
    banners = log.found(_BANNER)
    if not banners:
        raise log.error("no line such as `LAMMPS (29 Sep 2021)` found")
    if len(banners) > 1:
        raise log.error(
            f"it contains {len(banners)} runs; ranks that run separately were started by another MPI library's launcher"
        )
    notes: dict[str, Any] = {"version": banners[0].match[1]}
    if missing := log.found(_NO_PACKAGE):
        why = f"this LAMMPS was built without its package {missing[0].match[1]}"
        return ProgramRecord(notes=notes, skip=why, ended=True)
    if errors := log.found(_ERROR):
        return ProgramRecord(notes={**notes, "error": errors[0].match[0][:300]})
    if not log.found(_TOTAL):
        return ProgramRecord(notes=notes)
    runs = _runs(log, log.lines)
    if len(log.found(_SETUP)) != len(runs):
        raise log.error(f"{len(runs)} loop times, but {len(log.found(_SETUP))} runs were set up")
    pair, precisions = log.only(_PAIR, "pair style"), log.found(_PRECISION)
    # The precision is double, unless the package INTEL reports another.
    used = {"pair": pair.match[1], "precision": precisions[-1].match[1] if precisions else "double"}
    samples = [
        Sample(
            series=MEASURED if run is runs[-1] else SETTLING,
            i=i,
            elapsed_s=run.took.value,
            work={"atom_steps": float(run.atoms * run.steps), "steps": float(run.steps)},
            extra={
                "resolution": run.took.resolution,
                **used,
                **{f"{name}_s": took for name, took in run.sections.items()},
            },
        )
        for i, run in enumerate(runs)
    ]
    return ProgramRecord(samples=tuple(samples), checks=_checks(log, runs), notes={**notes, **used}, ended=True)


def _checks(log: Log, runs: Sequence[_Run]) -> dict[str, float | None]:
    """What must be as it was asked for. `energy_drift` is per atom, from the first row to the last, in units of LJ."""
    last = runs[-1]
    created = log.only(_CREATED, "number of atoms created").whole(1, "the number of atoms", least=0)
    if any(run.atoms != created for run in runs):
        raise log.error("the number of atoms in its runs differs from the number created")
    begin, end = (_energies(log, run)[place] for run, place in ((runs[0], 0), (last, -1)))
    builds = _only(log, _BUILDS, last.after, f"no neighbor list builds follow line {last.loop.line.number}")
    return {
        "atoms": float(last.atoms),
        "steps": float(last.steps),
        "settling_steps": float(sum(run.steps for run in runs[:-1])),
        "list_builds": float(builds.whole(1, "the neighbor list builds", least=0)),
        "energy_drift": None if begin is None or end is None else end - begin,
        "ranks": float(last.ranks),
        "threads": float(last.threads),
    }


def _energies(log: Log, run: _Run) -> list[float | None]:
    """The total energy of each row of a run; None where it is not a number."""
    columns, rows = _table(log, run)
    if "TotEng" not in columns:
        raise run.loop.error("no rows with a total energy above this line")
    _check_steps(run, rows)
    at = columns.index("TotEng")
    return [log.whole_line(line).result_of(cells[at], "an energy") for line, cells in rows]


_PACKAGES = {"opt": ("OPT",), "omp": ("OPENMP", "USER-OMP"), "intel": ("INTEL", "USER-INTEL")}
"""Value of `package` -> the names of the package in builds (some began with USER- until 2021)."""


def why_not(answer: str, params: Params) -> str:
    """From `lmp -help`: why this build cannot run so, "" if nothing says so."""
    _, has_list, rest = answer.partition("Installed packages:")
    names = _PACKAGES.get(str(params["package"]), ())
    if has_list and names and set(names).isdisjoint(rest.partition("List of")[0].split()):
        return f"this LAMMPS was built without its package {names[0]}"
    if whole(params["threads"]) > 1 and "with OpenMP not enabled" in answer:
        return "this LAMMPS was built without OpenMP: only threads=1 is possible"
    return ""


def _prepare(machine: Machine, params: Params) -> Params:
    package = str(params["package"])
    if whole(params["threads"]) > 1 and package not in _THREADED:
        raise Skip(f"package={package} does not support threads; omp and intel do")
    if params["precision"] != "fp64" and package != "intel":
        raise Skip(f"package={package} computes in fp64 only; package=intel offers others")
    params = resolved(machine, params)
    if params["cells"] != "auto":
        return params
    return {**params, "cells": edge_for(machine, _SMALLEST_EDGE, _ATOMS_PER_CELL, _ATOMS_PER_CORE)}


def _atoms(params: Params) -> int:
    return int(_ATOMS_PER_CELL * whole(params["cells"]) ** 3)


def _inputs(params: Params) -> dict[str, bytes]:
    edge = whole(params["cells"])
    lines = (
        *("units lj", "atom_style atomic"),
        *("lattice fcc 0.8442", f"region box block 0 {edge} 0 {edge} 0 {edge}", "create_box 1 box"),
        *("create_atoms 1 box", "mass 1 1.0"),
        "velocity all create 1.44 87287 loop geom",  # the same velocities whatever the number of ranks
        *("pair_style lj/cut 2.5", "pair_coeff 1 1 1.0 1.0 2.5", "pair_modify shift yes"),
        *("neighbor 0.3 bin", f"neigh_modify delay 0 every {_STEPS_OF_A_LIST} check no"),
        *("fix 1 all nve", "timestep 0.005"),
        *("thermo_modify norm yes", "thermo 100"),
        *(f"run {_SETTLING_STEPS}", f"run {whole(params['steps'])}"),
    )
    return {_INPUT: "".join(f"{line}\n" for line in lines).encode()}


def _arguments(params: Params, directory: Path) -> list[str]:
    package, threads, mode = str(params["package"]), str(whole(params["threads"])), _MODES[str(params["precision"])]
    chosen = {
        "none": [],
        "opt": ["-suffix", "opt"],
        "omp": ["-suffix", "omp", "-package", "omp", threads],
        "intel": [*("-suffix", "intel", "-package", "intel", "0"), *("omp", threads, "mode", mode)],
    }[package]
    return ["-in", _INPUT, "-log", "none", "-nocite", *chosen]


def atom_steps(params: Params, rate: float) -> str:
    """The rate as LAMMPS itself prints it."""
    return f"{rate / 1e6:.3f} Matom-step/s"


def _kernels(machine: Machine, params: Params, samples: Sequence[Sample]) -> float:
    """1 if every run used the kernels of the requested package and precision; else 0."""
    suffix = "" if params["package"] == "none" else f"/{params['package']}"
    wanted = (f"lj/cut{suffix}", _MODES[str(params["precision"])])
    return float(all((sample.extra["pair"], sample.extra["precision"]) == wanted for sample in samples))


def _measured_only_once(machine: Machine, params: Params, samples: Sequence[Sample]) -> float:
    return float([sample.series for sample in samples] == [SETTLING, MEASURED])


def _drift(machine: Machine, params: Params) -> tuple[float, float]:
    steps = _SETTLING_STEPS + whole(params["steps"])
    bound = _ENERGY_FLUCTUATION + _ENERGY_PER_LIST * steps / _STEPS_OF_A_LIST
    return (-bound, bound)


def _estimate_s(params: Params) -> float:
    steps = _SETTLING_STEPS + whole(params["steps"])
    return _START_S + _atoms(params) * steps / (_SLOW_CORE_RATE * cpus_of(params))


BENCHMARK = problem(
    External(
        name="lmp",
        install="install LAMMPS (Debian: package lammps; Spack: spack install lammps)",
        output="stdout",
        arguments=_arguments,
        parse=read_lammps,
        version=("-help",),
        why_not=why_not,
        inputs=_inputs,
        variables=openmp_variables,
    ),
    name="apps.lammps",
    question="How fast does LAMMPS simulate a Lennard-Jones liquid?",
    parameters=(
        Parameter.integer(
            "cells",
            "auto",
            "fcc cells of 4 atoms along each edge; auto: 20 (32,000 atoms), or more for 16,000 atoms per core",
            minimum=10,
        ),
        Parameter.integer("steps", 200, "measured time steps, after 100 of melting", minimum=100),
        *LAYOUT,
        Parameter.choice(
            "package", "none", "accelerator package to use; the build must include it", ("none", "opt", *_THREADED)
        ),
        Parameter.choice(
            "precision", "fp64", "precision of the forces; mixed and fp32 with package=intel only", tuple(_MODES)
        ),
    ),
    figures=(
        rate(
            "atom_steps",
            "op/s",
            "atoms x time steps of the Lennard-Jones melt, after melting",
            "atom_steps",
            series=MEASURED,
            customary=atom_steps,
        ),
        time_step(MEASURED, "one time step of all atoms"),
    ),
    checks=(
        *counted_by("LAMMPS"),
        Check("atoms", "atoms, as LAMMPS reports", exactly(_atoms)),
        Check("steps", "measured time steps", exactly("steps")),
        Check("settling_steps", "time steps before the measured ones", exactly(_SETTLING_STEPS)),
        Check("runs", "1 if one measured run followed one of melting", exactly(1), _measured_only_once),
        Check(
            "list_builds",
            "number of neighbour list builds",
            exactly(lambda params: whole(params["steps"]) // _STEPS_OF_A_LIST),
        ),
        Check("kernels", "1 if the kernels are those of the requested package and precision", exactly(1), _kernels),
        Check("energy_drift", "change of the total energy per atom, in epsilon", _drift),
    ),
    prepare=_prepare,
    estimate_s=_estimate_s,
)
