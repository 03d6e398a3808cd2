"""Logs of GROMACS' mdrun (md.log), versions 4.5 to 2024; without one, what it printed on the terminal.

`Wall t` is the elapsed time since the counters were last reset, and ns/day and hours/ns follow from it and the steps,
so damage to one of them is detected. The time of a simulated nanosecond is taken from the number with the most digits.
`Core t` sums over cores and is not an elapsed time.

`apps.gromacs`: a box of water in GROMACS, one of the most used codes on HPC machines.

The box is made by GROMACS' own tools from `spc216.gro`, the 216 molecules of liquid water at 300 K that come with it:
`solvate` fills a box of that edge, `genconf` repeats it `edge` times in each direction, and `grompp` gives each atom a
velocity. Repeated whole, the box has no seams, so it needs no minimisation, and the number of atoms is exact. The water
is SPC, rigid by SETTLE (H. J. C. Berendsen et al., in: Intermolecular Forces, Reidel 1981, pp. 331-342); PME with a
cutoff of 0.9 nm and a grid of 0.12 nm, 2 fs a step, held at 300 K by velocity rescaling: what its users run.

Everything that mdrun would tune while it runs is fixed (PME tuning, load balancing, the life of a pair list: options of
the versions from 2020 on), and the counters are reset after 100 steps. seatrial binds the ranks, so mdrun does not.

The check of the energy. The pair list's buffer is chosen by GROMACS so that missed pairs let the conserved energy drift
by no more than `verlet-buffer-tolerance`, 0.005 kJ/mol/ps per atom (its default; GROMACS manual, mdp options). Beside
that it changes once, in the first steps, in which random velocities and the positions become what leap-frog conserves:
that takes a share of (omega dt)^2 / 8 of kT in each mode, 0.02 kJ/mol at most in the fastest ones (librations, some
1.3e14 rad/s). It was 0.0014 kJ/mol per atom, and 0.002 with its noise (GROMACS 2022.5, 3 ps, two seeds); 0.004 is
allowed. A sound run drifts by less than 0.0005 a ps afterwards; with 8 fs a step it drifts by 0.075.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.applications.gromacs_output import by_day, by_hours, is_of_terminal, read_terminal, time_and_rates
from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, Printed, plain_reader
from seatrial.applications.reading.run_output import run_output
from seatrial.applications.reading.text import Pattern, number
from seatrial.applications.running.copies import input_files, problem
from seatrial.benchmarks.figures import between, exactly, rate, time_step, zero
from seatrial.benchmarks.placement import LAYOUT, counted_by, cpus_of, edge_for, openmp_variables, resolved
from seatrial.model.benchmark.benchmark import Check, External
from seatrial.model.benchmark.parameter import Parameter, Params, Value, whole
from seatrial.model.benchmark.program import ProgramRecord
from seatrial.model.frozen import Frozen
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

_TOOL = "GROMACS"
_VERSION = Pattern(r"(?i)GROMACS(?: version:|: +[^,]{1,200}, version) +(?:VERSION )?(\S{1,80})")
_BANNER = Pattern(r"Log file opened on .{1,200}|GROMACS: +(?:gmx )?mdrun\S{0,20}, (?:version|VERSION) .{1,80}")
_OPENED = Pattern(r"Log file opened on .{1,200}")
_STARTED = Pattern(r"GROMACS: +gmx mdrun, version (\S{1,80})")
_FATAL = Pattern(r"(?:Fatal error:|Program .{1,80}, (?:VERSION|version) .{1,80}|.{0,80}Segmentation fault).{0,200}")
_DT = Pattern(r"(?:dt|delta_t) += (\S{1,40})")
_STEPS = Pattern(r"nsteps += (-1|[0-9]{1,15})")
_OVERRIDING_STEPS = Pattern(r"Overriding nsteps with value passed on the command line: (-1|[0-9]{1,15}) steps.{0,80}")
_FIRST = Pattern(r"init[-_]step += ([0-9]{1,15})")
_RESET = Pattern(r"[Ss]tep ([0-9]{1,15}): resetting all time and cycle counters")
_ENDS_EARLY = Pattern(r"(?:Step ([0-9]{1,15}): )?Run time exceeded .{1,200}")
_STATISTICS = Pattern(r"Statistics over ([0-9]{1,15}) steps(?: \[.{1,80}\])? using [0-9]{1,15} frames")
_END = Pattern(r"Finished mdrun on (?:rank|node) 0 .{1,80}")
_AVERAGES = "A V E R A G E S"
_COUNTS = {
    "atoms": Pattern(r"There are: ([0-9]{1,15}) Atoms"),
    "ranks": Pattern(r"Using ([0-9]{1,9}) MPI (?:process(?:es)?|threads?)"),
    "threads": Pattern(r"Using ([0-9]{1,9}) OpenMP threads?(?: per t?MPI (?:process|thread))?"),
    "nodes": Pattern(r"Running on ([0-9]{1,9}) nodes? with total .{1,200}"),
}
_WARNING = Pattern(r".{0,80}(?:LINCS WARNING|[Ww]ater molecule starting at atom).{0,200}")
_ENERGY_COLUMN = 15
"""Width of a column in a table of energies."""
_PS_PER_NS, _A_DAY_S, _FS_PER_PS = 1000.0, 86400.0, 1000.0
_COMPUTED_IN_SINGLE = 2e-4
"""Old versions compute the rates from single precision, and count the step of the start or not."""


class _Counted(Frozen):
    """The steps that were counted, those after the last reset of the counters (which counts as one of them), with the
    lines of their time and rates."""

    time: Found
    rates: Found
    timestep_fs: float
    steps: int

    @property
    def wall(self) -> Printed:
        """Their elapsed time."""
        return self.time.printed(2, "the wall time")

    @property
    def by_day(self) -> Printed:
        """Seconds per simulated nanosecond, from ns/day."""
        return by_day(self.rates)

    @property
    def by_hours(self) -> Printed:
        """Seconds per simulated nanosecond, from hour/ns."""
        return by_hours(self.rates)

    @property
    def by_wall(self) -> Printed:
        """Seconds per simulated nanosecond, from the elapsed time and the steps."""
        return self.wall.scaled(1 / self.steps).ns_time_from_step(self.timestep_fs)

    def check(self, other: Printed, what: str, slack: float) -> None:
        """Raise ParseError if seconds per nanosecond contradict the elapsed time; `slack` is beside the rounding."""
        by_wall = self.by_wall
        if abs(other.value - by_wall.value) > other.error + by_wall.error + slack * by_wall.value:
            took = f"{self.steps} steps of {self.timestep_fs:g} fs in {self.wall.value:g} s"
            raise self.rates.error(f"{what} are not {took}")


def _measured(log: Log) -> Measured:
    """One run of mdrun. Raises ParseError if it did not end, failed or exploded, if the file holds two runs, or if its
    numbers contradict each other."""
    if not log.found(_BANNER) or not log.found(_VERSION):
        raise log.error("no line such as 'GROMACS: gmx mdrun, version 2022.5': from another program, or damaged")
    log.refuse(_FATAL, "mdrun failed: the run has no figure")
    ends, remarks = log.found(_END), []
    if len(ends) > 1 and len(log.found(_OPENED)) == 1:
        remarks.append(f"line {ends[1].line.number}: a second run ended into this log: only the first one is read")
        log = log.until(ends[0].line)
    version = log.found(_VERSION)[0].text(1)
    counts = _counts(log)
    if is_of_terminal(log) and not (ends and log.found(_DT)):
        found = read_terminal(log, version)
        return replace(found, parameters={**found.parameters, **counts})
    log.end(_END, "there is no `Finished mdrun`")
    counted = _counted(log)
    if (mean := _mean_temperature(log)) is not None:
        if number(mean[1]) is None:
            raise mean[0].error("the mean temperature is not a number: the simulation has exploded")
        mean[0].refuse_exploded(mean[1])
    slack = _COMPUTED_IN_SINGLE + 1 / counted.steps
    counted.check(counted.by_day, f"{counted.rates.match[1]} ns/day", slack)
    counted.check(counted.by_hours, f"{counted.rates.match[2]} hour/ns", slack)
    ns = min((counted.by_wall, counted.by_day, counted.by_hours), key=lambda one: one.error / one.value)
    step = ns.step_from_ns_time(counted.timestep_fs)
    parameters = {"timestep": f"{counted.timestep_fs:g} fs", "steps": counted.steps, **counts}
    samples = (ns.sample("ns_time"), step.sample("step"), counted.wall.sample("time"))
    warnings = log.found(_WARNING)
    remarks += [f"line {one.line.number}: {one.text(0)}: may be unstable" for one in warnings[:1]]
    return Measured(samples, parameters, remarks=remarks, version=version)


def _counts(log: Log) -> dict[str, Value]:
    """Atoms, ranks, threads and nodes, as far as the text states one number of each."""
    lines = {name: log.found(pattern) for name, pattern in _COUNTS.items()}
    return {name: one[0].whole(1, name) for name, one in lines.items() if len({line.match[1] for line in one}) == 1}


def _counted(log: Log) -> _Counted:
    time, rates = time_and_rates(log)
    return _Counted(time, rates, log.only(_DT, "`dt`").number(1, "the time step") * _FS_PER_PS, _counted_steps(log))


def _counted_steps(log: Log) -> int:
    overriding = log.found(_OVERRIDING_STEPS)
    asked = overriding[-1] if overriding else log.only(_STEPS, "`nsteps`")
    statistics = log.maybe(_STATISTICS, "number of steps") or log.only(_STATISTICS, "`Statistics over ... steps`")
    ran = statistics.whole(1, "the steps of the statistics")
    is_unlimited = asked.match[1] == "-1"  # with -maxh
    if not is_unlimited and ran != asked.whole(1, "nsteps") + 1 and not log.found(_ENDS_EARLY):
        raise statistics.error(f"line {asked.line.number} has {asked.match[1]} steps: steps are missing, or two runs")
    resets = log.found(_RESET)
    first = log.found(_FIRST)
    begun = first[-1].whole(1, "the first step", least=0) if first else 0
    counted = ran - (max(resets[-1].whole(1, "the step of the reset", least=0) - begun, 0) if resets else 0)
    if counted < 1:
        raise resets[-1].error(f"after the last of {ran} steps")
    return counted


def _mean_temperature(log: Log) -> tuple[Found, str] | None:
    """The line of the mean temperature, and the number on it as it is printed; None if it is not printed."""
    texts = [line.text for line in log.lines]
    starts = [at for at, text in enumerate(texts) if _AVERAGES in text]
    for at in range(starts[-1], min(starts[-1] + 40, len(texts) - 1)) if starts else ():
        names, values = texts[at].rstrip("\r\n"), texts[at + 1].rstrip("\r\n")
        if "Temperature" in names:
            end = names.index("Temperature") + len("Temperature")
            token = values[max(0, end - _ENERGY_COLUMN) : end].strip()
            return log.whole_line(log.lines[at + 1]), token
    return None


IMPORTED = figures.imported(
    "gromacs",
    "GROMACS",
    "How fast did GROMACS simulate?",
    figures.DYNAMICS_PARAMETERS,
    (
        figures.time_per_ns("ns_time", "elapsed time of a simulated nanosecond, since the counters were last reset"),
        figures.time("step", "elapsed time of a step"),
        figures.time("time", "elapsed time since the counters were last reset (Wall t)"),
    ),
)

READER = plain_reader(IMPORTED, _TOOL, _measured)

_LOG, _RUN_INPUT = "md.log", "topol.tpr"
_MOLECULES = 216
_ATOMS_OF_A_BOX = 3 * _MOLECULES
_BOX_NM = "1.86206"
_SMALLEST_EDGE = 2
_ATOMS_PER_CORE = 2592
"""As many atoms as each of two cores has of the smallest box; below some hundred, communication is all there is."""
_SETTLING_STEPS = 100
_DT_PS = 0.002
_LIST_STEPS = 40
_TOLERANCE = 0.005
"""kJ/mol/ps per atom."""
_CHANGE_AT_FIRST = 0.004
"""kJ/mol per atom."""
_TEMPERATURE_K, _SLACK_K = 300.0, 15.0
_OVERRIDING = ("GMX_NO_NONBONDED", "GMX_EMULATE_GPU", "GMX_MAXCONSTRWARN", "GMX_VERLET_BUFFER_RES")
_SENSITIVE_TO = (
    "GMX_DISABLE_SIMD_KERNELS",
    "GMX_NBNXN_SIMD_2XNN",
    "GMX_NBNXN_SIMD_4XN",
    "GMX_NBNXN_EWALD_ANALYTICAL",
    "GMX_NBNXN_EWALD_TABLE",
    "GMX_NO_LJ_COMB_RULE",
    "GMX_DISABLE_DYNAMICPRUNING",
    "GMX_NSTLIST_DYNAMICPRUNING",
    "GMX_DD_ORDER_ZYX",
    "GMX_DD_USE_SENDRECV2",
    "GMX_NO_CART_REORDER",
    "GMX_PMEONEDD",
    *(f"GMX_{part}_NUM_THREADS" for part in ("DOMDEC", "NONBONDED", "PAIRSEARCH", "PME", "SETTLE", "UPDATE")),
)
"""Variables of GROMACS 2022 with which a user chooses kernels and threads; those before would change the problem."""
_SLOW_CORE_RATE = 4e5
"""Atom steps per second; a core of 2024 makes 1.2 million with a build for SSE4.1."""
_START_S = 3.0

_DRIFT = Pattern(r"Conserved energy drift: ([^ ]{1,40}) kJ/mol/ps per atom")
_FACTS = {
    "precision": Pattern(r"Precision: +([a-z]{1,20})"),
    "simd": Pattern(r"SIMD instructions: +([A-Za-z0-9_.-]{1,40})"),
    "simd_possible": Pattern(r"Highest SIMD level supported by all nodes in run: +([A-Za-z0-9_.-]{1,40})"),
    "grid": Pattern(r"Domain decomposition grid ([0-9]{1,6} x [0-9]{1,6} x [0-9]{1,6}), .{1,80}"),
}
"""Fact -> the line of the log that states it; some logs do not have all of them."""
_ACCOUNTS = "R E A L   C Y C L E   A N D   T I M E   A C C O U N T I N G"
_ACCOUNT = Pattern(r"(\S.*?)((?: +[0-9]{1,15}(?:\.[0-9]{1,9})?)+)")
"""The name of a part, and the numbers of its row."""
_COMPUTED_IN_DOUBLE = 1e-6

MEASURED = "run"
"""The series of the steps after the reset of the counters."""


@run_output(_TOOL)
def read_gromacs(log: Log) -> ProgramRecord:
    """The run in a log of mdrun of a version from 2020 on. A record that is not `ended` means that it stopped early.

    Raises ProtocolError where the log is none of mdrun, holds two runs, or contradicts itself.
    """
    version = log.banner(_STARTED, "GROMACS: gmx mdrun, version 2022.5").match[1]
    if not log.found(_END):
        return ProgramRecord(notes={"version": version})
    log.only(_END, "end of a run")
    facts = {name: found[-1].match[1] for name, pattern in _FACTS.items() if (found := log.found(pattern))}
    sample = _sample(log, {"precision": facts.get("precision", "")})
    counts = {name: float(log.only(_COUNTS[name], name).whole(1, name)) for name in ("atoms", "ranks", "threads")}
    if (mean := _mean_temperature(log)) is None:
        raise log.error("mean Temperature not found")
    checks: dict[str, float | None] = {
        **counts,
        "steps": float(log.only(_STATISTICS, "number of steps").whole(1, "the steps of its statistics") - 1),
        "energy_drift": log.only(_DRIFT, "conserved energy drift").result(1, "the energy drift"),
        "temperature_K": mean[0].result_of(mean[1], "the mean Temperature"),
        "constraint_warnings": float(len(log.found(_WARNING))),
    }
    notes = {"version": version, **facts, **_built_for(facts)}
    return ProgramRecord(samples=(sample,), checks=checks, notes=notes, ended=True)


def _built_for(facts: dict[str, str]) -> dict[str, Any]:
    """A note if GROMACS was built for another processor; what that costs is unknown."""
    built, possible = facts.get("simd"), facts.get("simd_possible")
    if built is None or possible is None or built == possible:
        return {}
    return {"build": f"built for {built}; according to GROMACS, this CPU supports {possible}"}


def _sample(log: Log, facts: dict[str, str]) -> Sample:
    counted = _counted(log)
    wall, by_day, steps = counted.wall, counted.by_day, counted.steps
    ns_per_day = counted.rates.number(1, "the performance")
    counted.check(by_day, f"{counted.rates.match[1]} ns/day", _COMPUTED_IN_DOUBLE)
    dt_ps = log.only(_DT, "`dt`").number(1, "the time step")
    is_finer = by_day.resolution < wall.resolution
    return Sample(
        series=MEASURED,
        i=0,
        elapsed_s=steps * dt_ps / _PS_PER_NS * _A_DAY_S / ns_per_day if is_finer else wall.value,
        work={"steps": float(steps)},
        extra={
            "resolution": min(by_day.resolution, wall.resolution),
            **facts,
            "dt_ps": dt_ps,
            "ns_per_day": ns_per_day,
            **_accounts(log, counted.time.match[2]),
        },
    )


def _accounts(log: Log, wall: str) -> dict[str, float]:
    """Part of a step -> seconds of wall time, of the table whose total must be the wall time."""
    if _ACCOUNTS not in log.texts:
        raise log.error("table of the time accounting not found")
    parts: dict[str, float] = {}
    for text in log.texts[log.texts.index(_ACCOUNTS) + 1 :]:
        row = _ACCOUNT.fullmatch(text)
        name, numbers = ("", []) if row is None else (row[1], row[2].split())
        if name == "Total":
            if numbers[:1] != [wall]:
                raise log.error(f"the time accounting has a total of {numbers[:1]} s, but the wall time is {wall} s")
            return parts
        if len(numbers) in (3, 6):
            parts[f"{re.sub(r'[^a-z0-9]+', '_', name.lower()).strip('_')}_s"] = float(numbers[-3])
    raise log.error("the time accounting has no total")


_OPENMP = re.compile(r"^OpenMP support: +(\w+)(?: \(GMX_OPENMP_MAX_THREADS = ([0-9]{1,6})\))?", re.MULTILINE)


def why_not(answer: str, params: Params) -> str:
    """From `gmx --version`: why this build cannot run with so many threads, "" if nothing says so."""
    stated, threads = _OPENMP.search(answer), whole(params["threads"])
    if stated is None or threads == 1:
        return ""
    if stated[1] == "disabled":
        return "this GROMACS was built without OpenMP: only threads=1 is possible"
    if stated[2] is not None and threads > int(stated[2]):
        return f"this GROMACS was built for at most {stated[2]} threads of a rank"
    return ""


def _prepare(machine: Machine, params: Params) -> Params:
    params = resolved(machine, params)
    if params["edge"] != "auto":
        return params
    return {**params, "edge": edge_for(machine, _SMALLEST_EDGE, _ATOMS_OF_A_BOX, _ATOMS_PER_CORE)}


def _atoms(params: Params) -> int:
    return int(_ATOMS_OF_A_BOX * whole(params["edge"]) ** 3)


def _steps(params: Params) -> int:
    return _SETTLING_STEPS + whole(params["steps"])


def _inputs(params: Params) -> dict[str, bytes]:
    return input_files(
        "gromacs_water",
        steps=_steps(params),
        molecules=_atoms(params) // 3,
        dt=_DT_PS,
        list_steps=_LIST_STEPS,
        tolerance=_TOLERANCE,
        temperature=_TEMPERATURE_K,
    )


def _preparation(params: Params) -> list[list[str]]:
    edge = str(whole(params["edge"]))
    common = ["-quiet", "-nobackup"]
    return [
        ["solvate", *common, "-cs", "spc216.gro", "-box", _BOX_NM, _BOX_NM, _BOX_NM, "-o", "cell.gro"],
        ["genconf", *common, "-f", "cell.gro", "-nbox", edge, edge, edge, "-o", "conf.gro"],
        ["grompp", *common, "-f", "md.mdp", "-c", "conf.gro", "-p", "topol.top", "-o", _RUN_INPUT, "-po", "all.mdp"],
    ]


def _arguments(params: Params, directory: Path) -> list[str]:
    return [
        *("mdrun", "-quiet", "-nobackup", "-s", _RUN_INPUT, "-g", _LOG),
        *("-nb", "cpu", "-pme", "cpu", "-bonded", "cpu", "-update", "cpu"),
        *("-notunepme", "-dlb", "no", "-nstlist", str(_LIST_STEPS)),
        *("-pin", "off", "-ntomp", str(whole(params["threads"]))),
        *("-resetstep", str(_SETTLING_STEPS), "-noconfout", "-cpt", "-1"),
    ]


def ns_per_day(params: Params, steps_per_s: float) -> str:
    """A step rate in ns/day, the customary unit."""
    value = steps_per_s * _DT_PS * 86.4
    return f"{value:.0f} ns/day" if value >= 100 else f"{value:.3g} ns/day"


def _drift(machine: Machine, params: Params) -> tuple[float, float]:
    """GROMACS divides the change of the whole run by its time, the change of the first steps with it."""
    bound = _TOLERANCE + _CHANGE_AT_FIRST / (_steps(params) * _DT_PS)
    return (-bound, bound)


BENCHMARK = problem(
    External(
        name="gmx_mpi",
        install="install GROMACS with MPI (Debian: package gromacs; Spack: spack install gromacs +mpi)",
        output=_LOG,
        arguments=_arguments,
        parse=read_gromacs,
        version=("-quiet", "--version"),
        why_not=why_not,
        inputs=_inputs,
        preparation=_preparation,
        variables=lambda params: {**openmp_variables(params), **dict.fromkeys(_OVERRIDING)},
        sensitive_to=_SENSITIVE_TO,
    ),
    name="apps.gromacs",
    question="How fast does GROMACS simulate a box of water?",
    parameters=(
        Parameter.integer(
            "edge",
            "auto",
            "box edge, in cells of 1.862 nm and 216 molecules; auto: 2 (5184 atoms), or more for 2592 atoms per core",
            minimum=_SMALLEST_EDGE,
        ),
        Parameter.integer("steps", 500, "measured time steps, after 100 unmeasured ones", minimum=100),
        *LAYOUT,
    ),
    figures=(
        rate(
            "step_rate",
            "op/s",
            "time steps of 2 fs; 1000 per second are 172.8 ns/day",
            "steps",
            series=MEASURED,
            customary=ns_per_day,
        ),
        time_step(MEASURED, "one time step of 2 fs"),
    ),
    checks=(
        *counted_by("GROMACS"),
        Check("atoms", "atoms, as GROMACS reports", exactly(_atoms)),
        Check("steps", "time steps of the whole run", exactly(_steps)),
        Check(
            "measured_steps",
            "time steps after the counters were reset, including the step of the reset",
            exactly(lambda params: whole(params["steps"]) + 1),
            lambda machine, params, samples: samples[0].work["steps"],
        ),
        Check("constraint_warnings", "molecules that could not be kept rigid", zero),
        Check("energy_drift", "change of the conserved energy, in kJ/mol/ps per atom", _drift),
        Check("temperature_K", "mean temperature", between(_TEMPERATURE_K - _SLACK_K, _TEMPERATURE_K + _SLACK_K)),
        Check(
            "time_step_ps",
            "the time step that ns/day is based on",
            exactly(_DT_PS),
            lambda machine, params, samples: samples[0].extra["dt_ps"],
        ),
    ),
    prepare=_prepare,
    estimate_s=lambda params: _START_S + _atoms(params) * _steps(params) / (_SLOW_CORE_RATE * cpus_of(params)),
)
