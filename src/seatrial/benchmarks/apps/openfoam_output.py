"""What OpenFOAM's solvers leave: their log, the profile of where the time went, and velocities at a few places.

The patterns of the log are those by which `seatrial import openfoam=FILE` reads logs of other runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from seatrial.benchmarks.apps.output import Text
from seatrial.model.frozen import Frozen
from seatrial.model.protocol import ProgramRecord
from seatrial.model.sample import Sample

BANNER = re.compile(r"\W{1,24}F ield\s{1,40}\| (?:OpenFOAM|foam-extend)\b.{0,80}")
BUILD = re.compile(r"Build\s{1,6}: (\S.{0,200})")
RANKS = re.compile(r"nProcs\s{1,6}: (\S{1,20})")
TIME = re.compile(r"Time = (\S{1,40}?)s?")
CLOCK = re.compile(r"ExecutionTime = (\S{1,40}) s {1,4}ClockTime = (\S{1,40}) s")
"""`ExecutionTime` is the CPU time of rank 0; `ClockTime` is elapsed time in whole seconds."""
END = re.compile(r"End|Finalising parallel run")
FAILED = re.compile(
    r"--> FOAM FATAL|Foam::sigFpe::|Foam::sigSegv::|Foam::error::printStack|FOAM (?:parallel run )?(?:exiting|aborting)"
    r"|Segmentation fault|MPI_ABORT was invoked|Floating point exception \(core|exited on signal"
)

_RELEASE = re.compile(r"OPENFOAM=([0-9]{4})\b")
"""Releases of openfoam.com; 1712 was the first that can profile itself."""
_FIRST_PROFILING = 1712
_NO_SETTINGS = re.compile(r".{0,40}Could not find mandatory etc entry.{0,80}")
_SOLVED = re.compile(
    r"\w{1,40}: {1,4}Solving for (\w{1,20}), Initial residual = (\S{1,30}), Final residual = (\S{1,30}), "
    r"No Iterations ([0-9]{1,9})"
)
_CONTINUITY = re.compile(r"time step continuity errors : sum local = (\S{1,30}), global = (\S{1,30}), .{1,80}")
_COURANT = re.compile(r"Courant Number mean: (\S{1,30}) max: (\S{1,30})")

_TRIGGER = re.compile(r"\s*trigger[0-9]{1,9}\s*\{([^{}]{0,2000})\}")
_ENTRY = re.compile(r"(\w{1,20})\s{1,40}([^;\n]{1,400});")
_PROBED = re.compile(r"\(([^()]{1,100})\)")

STEPS = "steps"
PROFILE = "*/uniform/profiling"
PROFILE_OF_RANK_0 = "processor0/*/uniform/profiling"
PROBES = "postProcessing/centreline/0/U"


def read_solver(data: bytes) -> ProgramRecord:
    """The log of one run of a transient solver: its checks and notes; the times are in the profile. Not `ended` if it
    crashed or stopped early; skipped where the installation is not complete, or cannot profile. Raises ProtocolError
    for logs of other programs, of two runs, and damaged numbers."""
    text = Text("OpenFOAM", data)
    if any(_NO_SETTINGS.fullmatch(line.strip()) for line in text.lines):
        why = "OpenFOAM finds no etc/controlDict: load its module or source its etc/bashrc, which set WM_PROJECT_DIR"
        return ProgramRecord(skip=why, need="settings", ended=True)
    if not data.strip():
        return ProgramRecord()
    if (count := len(text.found(BANNER))) != 1:
        raise text.error(f"it has {count or 'no'} banners of OpenFOAM, expected one")
    build = text.only(BUILD, "the build")[1]
    release = _RELEASE.search(build)
    notes: dict[str, Any] = {"version": release[1] if release else build[:60]}
    if release is None or int(release[1]) < _FIRST_PROFILING:
        why = f"OpenFOAM {notes['version']} cannot profile itself, and prints elapsed time in whole seconds only"
        return ProgramRecord(notes=notes, skip=f"{why}: use v{_FIRST_PROFILING} of openfoam.com or later", ended=True)
    if failed := [line for line in text.lines if FAILED.search(line)]:
        return ProgramRecord(notes={**notes, "error": failed[0].strip()[:300]})
    if not text.found(END):
        return ProgramRecord(notes=notes)
    clocks = text.found(CLOCK)
    if not clocks:
        raise text.error("it has no lines with the clock")
    notes["cpu_time_of_rank_0_s"] = text.number(clocks[-1][1], "ExecutionTime")
    return ProgramRecord(checks=_checks(text, len(clocks)), notes=notes, ended=True)


def _checks(text: Text, steps: int) -> dict[str, float | None]:
    """Ranks, steps, and how well the equations were solved."""
    times = len(text.found(TIME))
    solved = text.found(_SOLVED)
    pressure = [text.number_or_none(one[3], "a residual") for one in solved if one[1] == "p"]
    last: dict[str, float | None] = {
        one[1]: text.number_or_none(one[2], "a residual") for one in solved if one[1] != "p"
    }
    continuity = text.found(_CONTINUITY)
    courant = [text.number_or_none(one[2], "the Courant number") for one in text.found(_COURANT)]
    return {
        "ranks": float(text.whole(text.only(RANKS, "the number of processes")[1], "the number of processes")),
        "steps": float(steps) if steps == times else None,
        # the last correction of a step solves to the tolerance, those before only in part
        "pressure_residual": _largest(pressure[len(pressure) // steps - 1 :: len(pressure) // steps])
        if pressure and len(pressure) % steps == 0
        else None,
        "velocity_residual": _largest(list(last.values())),
        "continuity": text.number_or_none(continuity[-1][1], "the continuity error") if continuity else None,
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
        raise Text("OpenFOAM", b"").error(f"it left {len(profiles)} profiles of its time, expected two")
    first, last = profiles
    steps = last.steps - first.steps
    loop_s, pressure_s = last.loop_s - first.loop_s, last.pressure_s - first.pressure_s
    if steps < 1 or not 0 < pressure_s < loop_s or not last.loop_s < last.program_s:
        raise Text("OpenFOAM", b"").error(
            f"by its profiles {steps} steps took {loop_s:g} s, of which the pressure {pressure_s:g} s"
        )
    extra = {"pressure_s": pressure_s, "program_s": last.program_s}
    return replace(record, samples=(Sample(STEPS, 0, loop_s, {"steps": float(steps)}, extra=extra),))


def _profile(data: bytes) -> _Profile:
    text = Text("the profile of OpenFOAM", data)
    found: dict[str, dict[str, str]] = {}
    for trigger in _TRIGGER.finditer("\n".join(text.lines)):
        entry = dict(_ENTRY.findall(trigger[1]))
        name = entry.get("description", "").strip('"')
        key = "time.run()" if name.startswith("time.run() ") else name
        if key in found:
            raise text.error(f"it has {key!r} twice")
        found[key] = entry

    def seconds(name: str) -> float:
        if name not in found:
            raise text.error(f"it does not have {name!r}")
        return text.number(found[name].get("totalTime", ""), f"the time of {name}")

    program_s, loop_s, pressure_s = map(seconds, ("application::main", "time.run()", "fvMatrix::solve.p"))
    return _Profile(program_s, loop_s, pressure_s, text.whole(found["time.run()"].get("calls", ""), "the steps"))


def probed_velocities(files: Mapping[str, bytes]) -> list[float]:
    """The velocities along the lid at all places, at the end of the run; [] without them. Raises ProtocolError."""
    text = Text("the probes of OpenFOAM", files.get(PROBES, b""))
    rows = [line for line in text.lines if line.strip() and not line.lstrip().startswith("#")]
    places = [place.split() for place in _PROBED.findall(rows[-1])] if rows else []
    return [text.number(place[0], "a velocity") for place in places if place]
