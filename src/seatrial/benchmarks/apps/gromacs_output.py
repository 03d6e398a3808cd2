"""The log of GROMACS' mdrun; a pure function from bytes to a `ProgramRecord`.

The format is that of the versions from 2020 on. The performance in ns/day follows from the wall time and the number of
steps, so damage to one of them is detected. After resetting its counters mdrun also counts the step of the reset.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from seatrial.benchmarks.apps.output import Text, is_near, rounding
from seatrial.model.protocol import ProgramRecord
from seatrial.model.sample import Sample

_BANNER = re.compile(r"GROMACS: +gmx mdrun, version ([^ ]{1,80})")
_DT = re.compile(r"dt += ([^ ]{1,40})")
_NSTEPS = re.compile(r"nsteps += ([0-9]{1,15})")
_ATOMS = re.compile(r"There are: ([0-9]{1,15}) Atoms")
_RANKS = re.compile(r"Using ([0-9]{1,9}) MPI (?:process(?:es)?|threads?)")
_THREADS = re.compile(r"Using ([0-9]{1,9}) OpenMP threads?(?: per t?MPI (?:process|thread))?")
_RESET = re.compile(r"step ([0-9]{1,15}): resetting all time and cycle counters")
_DRIFT = re.compile(r"Conserved energy drift: ([^ ]{1,40}) kJ/mol/ps per atom")
_FRAMES = re.compile(r"Statistics over ([0-9]{1,15}) steps(?: \[.{1,80}\])? using [0-9]{1,15} frames")
_TIME = re.compile(r"Time: +([^ ]{1,40}) +([^ ]{1,40}) +[^ ]{1,40}")
_PERFORMANCE = re.compile(r"Performance: +([^ ]{1,40}) +[^ ]{1,40}")
_WARNING = re.compile(r".{0,80}(?:LINCS WARNING|[Ww]ater molecule starting at atom).{0,200}")
_END = re.compile(r"Finished mdrun on rank 0 .{1,80}")
_FACTS = {
    "precision": re.compile(r"Precision: +([a-z]{1,20})"),
    "simd": re.compile(r"SIMD instructions: +([A-Za-z0-9_.-]{1,40})"),
    "simd_possible": re.compile(r"Highest SIMD level supported by all nodes in run: +([A-Za-z0-9_.-]{1,40})"),
    "grid": re.compile(r"Domain decomposition grid ([0-9]{1,6} x [0-9]{1,6} x [0-9]{1,6}), .{1,80}"),
}
"""Fact -> the line of the log that states it; some logs do not have all of them."""
_ENERGY_COLUMN = 15
"""Width of a column in a table of energies."""
_AVERAGES = "A V E R A G E S"
_ACCOUNTS = "R E A L   C Y C L E   A N D   T I M E   A C C O U N T I N G"
_PS_PER_NS, _S_PER_DAY = 1000.0, 86400.0

MEASURED = "run"
"""The series of the steps after the reset of the counters."""


def read_gromacs(data: bytes) -> ProgramRecord:
    """The run in a log of mdrun. A record that is not `ended` means that it stopped early.

    Raises ProtocolError where the log is none of mdrun, holds two runs, or contradicts itself.
    """
    text = Text("GROMACS", data)
    if not data.strip():
        return ProgramRecord()
    version = text.only(_BANNER, "`GROMACS: gmx mdrun, version ...`")[1]
    ends = text.found(_END)
    if not ends:
        return ProgramRecord(notes={"version": version})
    text.only(_END, "the end of a run")
    facts = {name: found[-1][1] for name, pattern in _FACTS.items() if (found := text.found(pattern))}
    sample = _sample(text, {"precision": facts.get("precision", "")})
    frames = text.whole(text.only(_FRAMES, "the steps of its statistics")[1], "the steps of its statistics")
    drift = text.only(_DRIFT, "the conserved energy drift")[1]
    return ProgramRecord(
        samples=(sample,),
        checks={
            "atoms": float(text.whole(text.only(_ATOMS, "the number of atoms")[1], "the number of atoms")),
            "steps": float(frames - 1),
            "energy_drift": text.number_or_none(drift, "the energy drift"),
            "temperature_K": _average(text, "Temperature"),
            "constraint_warnings": float(len(text.found(_WARNING))),
            "ranks": float(text.whole(text.only(_RANKS, "the number of ranks")[1], "the number of ranks")),
            "threads": float(text.whole(text.only(_THREADS, "the threads")[1], "the number of threads")),
        },
        notes={"version": version, **facts, **_built_for(facts)},
        ended=True,
    )


def _built_for(facts: dict[str, str]) -> dict[str, Any]:
    """A note if GROMACS was built for another processor; what that costs is unknown."""
    built, possible = facts.get("simd"), facts.get("simd_possible")
    if built is None or possible is None or built == possible:
        return {}
    return {"build": f"built for {built}; according to GROMACS, this CPU supports {possible}"}


def _sample(text: Text, facts: dict[str, str]) -> Sample:
    """The measured steps: those after the last reset of the counters, which counts as one of them."""
    dt_ps = text.number(text.only(_DT, "the time step")[1], "the time step")
    nsteps = text.whole(text.only(_NSTEPS, "the number of steps")[1], "the number of steps")
    resets = text.found(_RESET)
    steps = nsteps - (text.whole(resets[-1][1], "the step of the reset") if resets else 0) + 1
    time = text.only(_TIME, "the core and wall time")
    wall_s = text.number(time[2], "the wall time")
    rate = text.only(_PERFORMANCE, "the performance")[1]
    ns_per_day = text.number(rate, "the performance")
    if not (dt_ps > 0 and wall_s > 0 and ns_per_day > 0 and steps > 0):
        raise text.error(f"{steps} steps of {dt_ps:g} ps took {time[2]} s, at {rate} ns/day")
    elapsed_s = steps * dt_ps / _PS_PER_NS * _S_PER_DAY / ns_per_day
    of_wall, of_rate = rounding(time[2]) / wall_s, rounding(rate) / ns_per_day
    if not is_near(elapsed_s, wall_s, (of_wall, of_rate)):
        raise text.error(f"{rate} ns/day are not {steps} steps of {dt_ps:g} ps in {time[2]} s")
    return Sample(
        series=MEASURED,
        i=0,
        elapsed_s=elapsed_s if of_rate < of_wall else wall_s,  # the one that is printed with more digits
        work={"steps": float(steps)},
        extra={
            "resolution": 2.0 * min(of_rate, of_wall),
            **facts,
            "dt_ps": dt_ps,
            "ns_per_day": ns_per_day,
            **_accounts(text, time[2]),
        },
    )


def _average(text: Text, name: str) -> float | None:
    """The mean of an energy term over the run; None where GROMACS says that it is no number."""
    start = next((i for i, line in enumerate(text.lines) if _AVERAGES in line), None)
    if start is not None:
        for names, values in zip(text.lines[start:], text.lines[start + 1 :], strict=False):
            if name in (columns := _columns(names)) and len(cells := _columns(values)) == len(columns):
                return text.number_or_none(cells[columns.index(name)], f"the mean {name}")
    raise text.error(f"mean {name} not found")


def _columns(line: str) -> list[str]:
    return [line[i : i + _ENERGY_COLUMN].strip() for i in range(0, len(line.rstrip()), _ENERGY_COLUMN)]


def _accounts(text: Text, wall: str) -> dict[str, float]:
    """Part of a step -> seconds of wall time, of the table whose total must be the wall time."""
    start = next((i for i, line in enumerate(text.lines) if line.strip() == _ACCOUNTS), None)
    if start is None:
        raise text.error("table of the time accounting not found")
    parts: dict[str, float] = {}
    for line in text.lines[start + 1 :]:
        name, figures = _account(line.split())
        if name == "Total":
            if figures[:1] != [wall]:
                raise text.error(f"the time accounting has a total of {figures[:1]} s, but the wall time is {wall} s")
            return parts
        if name and len(figures) in (3, 6):
            parts[f"{re.sub(r'[^a-z0-9]+', '_', name.lower()).strip('_')}_s"] = text.number(
                figures[-3], f"the time of {name}"
            )
    raise text.error("the time accounting has no total")


def _account(words: Sequence[str]) -> tuple[str, list[str]]:
    """The name and the figures of a row."""
    figures: list[str] = []
    for word in reversed(words):
        if re.fullmatch(r"[0-9]{1,15}(?:\.[0-9]{1,9})?", word) is None:
            break
        figures.insert(0, word)
    return " ".join(words[: len(words) - len(figures)]), figures
