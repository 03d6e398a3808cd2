"""What OpenFOAM's solvers leave: their log, the profile of where the time went, and velocities at a few points.

The patterns of the log are those by which `seatrial import openfoam=FILE` reads logs of other runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from seatrial.applications.reading.log import Log
from seatrial.applications.reading.run_output import not_read, output_file, run_output
from seatrial.applications.reading.text import Pattern, number
from seatrial.model.benchmark.program import ProgramRecord
from seatrial.model.frozen import Frozen
from seatrial.model.results.sample import Sample

BANNER = Pattern(r"\W{1,24}F ield\s{1,40}\| (?:OpenFOAM|foam-extend)\b.{0,80}")
LOOKS_LIKE = "F ield         | OpenFOAM: The Open Source CFD Toolbox"
BUILD = Pattern(r"Build\s{1,6}: (\S.{0,200})")
N_PROCS = Pattern(r"nProcs\s{1,6}: (\S{1,20})")
TIME = Pattern(r"Time = (\S{1,40}?)s?")
CLOCK = Pattern(r"ExecutionTime = (\S{1,40}) s {1,4}ClockTime = (\S{1,40}) s")
"""`ExecutionTime` is the CPU time of rank 0; `ClockTime` is elapsed time in whole seconds."""
END = Pattern(r"End|Finalising parallel run")
FAILED = Pattern(
    r"--> FOAM FATAL|Foam::sigFpe::|Foam::sigSegv::|Foam::error::printStack|FOAM (?:parallel run )?(?:exiting|aborting)"
    r"|Segmentation fault|MPI_ABORT was invoked|Floating point exception \(core|exited on signal"
)

_RELEASE = Pattern(r"OPENFOAM=([0-9]{4})\b")
"""Releases of openfoam.com; 1712 was the first that can profile itself."""
_FIRST_PROFILING = 1712
_NO_SETTINGS = Pattern(r".{0,40}Could not find mandatory etc entry.{0,80}")
_SOLVED = Pattern(
    r"\w{1,40}: {1,4}Solving for (\w{1,20}), Initial residual = (\S{1,30}), Final residual = (\S{1,30}), "
    r"No Iterations ([0-9]{1,9})"
)
_CONTINUITY = Pattern(r"time step continuity errors : sum local = (\S{1,30}), global = (\S{1,30}), .{1,80}")
_COURANT = Pattern(r"Courant Number mean: (\S{1,30}) max: (\S{1,30})")

_TRIGGER = Pattern(r"\s*trigger[0-9]{1,9}\s*\{([^{}]{0,2000})\}")
_ENTRY = Pattern(r"(\w{1,20})\s{1,40}([^;\n]{1,400});")
_PROBED = Pattern(r"\(([^()]{1,100})\)")

STEPS = "steps"
PROFILE = "*/uniform/profiling"
PROFILE_OF_RANK_0 = "processor0/*/uniform/profiling"
PROBES = "postProcessing/centreline/0/U"


@run_output("OpenFOAM")
def read_solver(log: Log) -> ProgramRecord:
    """The log of one run of a transient solver: its checks and notes; the times are in the profile. Not `ended` if it
    crashed or stopped early; skipped where the installation is not complete, or cannot profile. Raises ProtocolError
    for logs of other programs, of two runs, and damaged numbers."""
    if log.found(_NO_SETTINGS):
        why = "OpenFOAM finds no etc/controlDict: load its module or source its etc/bashrc, which set WM_PROJECT_DIR"
        return ProgramRecord(skip=why, need="settings", ended=True)
    log.banner(BANNER, LOOKS_LIKE)
    build = log.only(BUILD, "build").match[1]
    release = _RELEASE.search(build)
    notes: dict[str, Any] = {"version": release[1] if release else build[:60]}
    if release is None or int(release[1]) < _FIRST_PROFILING:
        why = f"OpenFOAM {notes['version']} cannot profile itself, and prints elapsed time in whole seconds only"
        return ProgramRecord(notes=notes, skip=f"{why}: use v{_FIRST_PROFILING} of openfoam.com or later", ended=True)
    if failed := [text for text in log.texts if FAILED.search(text)]:
        return ProgramRecord(notes={**notes, "error": failed[0][:300]})
    if not log.found(END):
        return ProgramRecord(notes=notes)
    clocks = log.found(CLOCK)
    if not clocks:
        raise log.error("it has no lines with the clock")
    notes["cpu_time_of_rank_0_s"] = clocks[-1].number_or_zero(1, "ExecutionTime")
    return ProgramRecord(checks=_checks(log, len(clocks)), notes=notes, ended=True)


def _checks(log: Log, steps: int) -> dict[str, float | None]:
    """Ranks, steps, and how well the equations were solved."""
    times = len(log.found(TIME))
    solved = log.found(_SOLVED)
    pressure = [one.result(3, "a residual") for one in solved if one.match[1] == "p"]
    last = {one.match[1]: one.result(2, "a residual") for one in solved if one.match[1] != "p"}
    continuity = log.found(_CONTINUITY)
    courant = [one.result(2, "the Courant number") for one in log.found(_COURANT)]
    return {
        "ranks": float(log.only(N_PROCS, "number of processes").whole(1, "the number of processes", least=0)),
        "steps": float(steps) if steps == times else None,
        # the last correction of a step solves to the tolerance, those before only in part
        "pressure_residual": _largest(pressure[len(pressure) // steps - 1 :: len(pressure) // steps])
        if pressure and len(pressure) % steps == 0
        else None,
        "velocity_residual": _largest(list(last.values())),
        "continuity": continuity[-1].result(1, "the continuity error") if continuity else None,
        "courant": _largest(courant),
    }


def _largest(values: Sequence[float | None]) -> float | None:
    """None if one is not a number, or there is none."""
    known = [value for value in values if value is not None]
    return max(known) if known and len(known) == len(values) else None


class _Profile(Frozen):
    """Elapsed times of rank 0 since its start, in s: of the program, of its time loop, and of the pressure in it."""

    program_s: float
    loop_s: float
    pressure_s: float
    steps: int


def with_times(record: ProgramRecord, files: Mapping[str, bytes]) -> ProgramRecord:
    """The record with the steps between the two profiles that the run wrote.

    Raises ProtocolError for other files than these, and damaged ones.
    """
    profiles = sorted(
        (_profile(data) for path, data in files.items() if path.endswith("/profiling")), key=lambda one: one.steps
    )
    if len(profiles) != 2:
        raise not_read("OpenFOAM", f"it left {len(profiles)} profiles of its time, expected two")
    first, last = profiles
    steps = last.steps - first.steps
    loop_s, pressure_s = last.loop_s - first.loop_s, last.pressure_s - first.pressure_s
    if steps < 1 or not 0 < pressure_s < loop_s or not last.loop_s < last.program_s:
        raise not_read(
            "OpenFOAM", f"by its profiles {steps} steps took {loop_s:g} s, of which the pressure {pressure_s:g} s"
        )
    extra = {"pressure_s": pressure_s, "program_s": last.program_s}
    return replace(record, samples=(Sample(STEPS, 0, loop_s, {"steps": float(steps)}, extra=extra),))


@output_file("the profile of OpenFOAM")
def _profile(log: Log) -> _Profile:
    found: dict[str, dict[str, str]] = {}
    for trigger in _TRIGGER.finditer("\n".join(log.texts)):
        entry = {one[1]: one[2] for one in _ENTRY.finditer(trigger[1])}
        name = entry.get("description", "").strip('"')
        key = "time.run()" if name.startswith("time.run() ") else name
        if key in found:
            raise log.error(f"it has {key!r} twice")
        found[key] = entry

    def stated(name: str, key: str) -> float:
        value = number(found.get(name, {}).get(key, ""))
        if value is None or value < 0:
            raise log.error(f"it does not have {key!r} of {name!r}")
        return value

    calls = stated("time.run()", "calls")
    if not calls.is_integer():
        raise log.error(f"{calls:g} steps are not a whole number")
    names = ("application::main", "time.run()", "fvMatrix::solve.p")
    program_s, loop_s, pressure_s = (stated(name, "totalTime") for name in names)
    return _Profile(program_s, loop_s, pressure_s, int(calls))


@output_file("the probes of OpenFOAM")
def _probed(log: Log) -> list[float]:
    rows = [text for text in log.texts if text and not text.startswith("#")]
    places = [place[1].split() for place in _PROBED.finditer(rows[-1])] if rows else []
    values = [number(place[0]) for place in places if place]
    if None in values:
        raise log.error("a velocity is not a number")
    return [value for value in values if value is not None]


def probed_velocities(files: Mapping[str, bytes]) -> list[float]:
    """The velocities along the lid at all points, at the end of the run; [] without them. Raises ProtocolError."""
    return _probed(files[PROBES]) if files.get(PROBES) else []
