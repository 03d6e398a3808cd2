"""The output of LAMMPS; a pure function from bytes to a `ProgramRecord`.

The format is that of the versions from 2016 on, which have the timing breakdown. One line has the loop time of each
`run` with the steps, processes and atoms; the performance, the breakdown and the thermodynamic output repeat these
facts, so damage is detected. Energies are per atom if the input has `thermo_modify norm yes`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from seatrial.benchmarks.apps.output import Text, is_near, rounding
from seatrial.model.frozen import Frozen
from seatrial.model.protocol import ProgramRecord
from seatrial.model.sample import Sample

_BANNER = re.compile(r"LAMMPS \(([^)]{1,80})\).{0,80}")
_NO_PACKAGE = re.compile(r"ERROR: .{0,40}(?:suffix|[Pp]ackage) .{0,40}without ([A-Z-]{1,20}) package installed.{0,200}")
_ERROR = re.compile(r"ERROR(?: on proc [0-9]{1,9})?: .{0,1000}")
_CREATED = re.compile(r"Created ([0-9]{1,15}) atoms")
_PAIR = re.compile(r"\(1\) pair ([^ ,]{1,80}), perpetual.{0,80}")
_PRECISION = re.compile(r"Precision: ([a-z]{1,20})")
_SETUP = re.compile(r"Per MPI rank memory allocation .{1,200}")
_LOOP = re.compile(r"Loop time of ([^ ]{1,40}) on ([0-9]{1,9}) procs for ([0-9]{1,15}) steps with ([0-9]{1,15}) atoms")
_PERFORMANCE = re.compile(r"Performance: .{1,80}, ([^ ,]{1,40}) timesteps/s(?:, .{1,80})?")
_TASKS = re.compile(r"[^ ]{1,20}% CPU use with ([0-9]{1,9}) MPI tasks x ([0-9]{1,9}|no) OpenMP threads")
_BUILDS = re.compile(r"Neighbor list builds = ([0-9]{1,15})")
_END = re.compile(r"Total wall time: [0-9]{1,9}:[0-9]{2}:[0-9]{2}")

MEASURED, SETTLING = "run", "settling"
"""The series of the last `run` of an input, and of those before it."""


class _Run(Frozen):
    """One `run` command: `steps` and total energies per atom, of each row of its output (None: not a number)."""

    loop_s: float
    resolution: float
    steps: int
    atoms: int
    ranks: int
    threads: int
    builds: int
    sections_s: dict[str, float]
    row_steps: tuple[int, ...]
    energies: tuple[float | None, ...]


def read_lammps(data: bytes) -> ProgramRecord:
    """The runs that LAMMPS printed. A record that is not `ended` stopped early; a package that its build
    lacks is a reason to skip. Raises ProtocolError where the output is none of LAMMPS, of two processes, or contradicts
    itself."""
    text = Text("LAMMPS", data)
    if not data.strip():
        return ProgramRecord()
    banners = text.found(_BANNER)
    if not banners:
        raise text.error("no line such as `LAMMPS (29 Sep 2021)` found")
    if len(banners) > 1:
        raise text.error(
            f"it contains {len(banners)} runs; ranks that run separately were started by another MPI library's launcher"
        )
    notes: dict[str, Any] = {"version": banners[0][1]}
    if missing := text.found(_NO_PACKAGE):
        return ProgramRecord(notes=notes, skip=f"this LAMMPS was built without its package {missing[0][1]}", ended=True)
    if errors := text.found(_ERROR):
        return ProgramRecord(notes={**notes, "error": errors[0][0][:300]})
    if not text.found(_END):
        return ProgramRecord(notes=notes)
    runs = [_run(text, lines) for lines in _blocks(text)]
    kernels = _kernels(text)
    samples = [
        Sample(
            series=MEASURED if run is runs[-1] else SETTLING,
            i=i,
            elapsed_s=run.loop_s,
            work={"atom_steps": float(run.atoms * run.steps), "steps": float(run.steps)},
            extra={
                "resolution": run.resolution,
                **kernels,
                **{f"{name}_s": took for name, took in run.sections_s.items()},
            },
        )
        for i, run in enumerate(runs)
    ]
    return ProgramRecord(samples=tuple(samples), checks=_checks(text, runs), notes={**notes, **kernels}, ended=True)


def _kernels(text: Text) -> dict[str, Any]:
    """The pair style with its package's suffix, and the precision: double, unless the package INTEL reports another."""
    pair, precisions = text.only(_PAIR, "the pair style"), text.found(_PRECISION)
    return {"pair": pair[1], "precision": precisions[-1][1] if precisions else "double"}


def _checks(text: Text, runs: Sequence[_Run]) -> dict[str, float | None]:
    """What must be as it was asked for. `energy_drift` is per atom, from the first row to the last, in units of LJ."""
    first, last = runs[0], runs[-1]
    created = text.only(_CREATED, "how many atoms were created")
    if any(run.atoms != text.whole(created[1], "the number of atoms") for run in runs):
        raise text.error("the number of atoms in its runs differs from the number created")
    begin, end = first.energies[0], last.energies[-1]
    return {
        "atoms": float(last.atoms),
        "steps": float(last.steps),
        "settling_steps": float(sum(run.steps for run in runs[:-1])),
        "list_builds": float(last.builds),
        "energy_drift": None if begin is None or end is None else end - begin,
        "ranks": float(last.ranks),
        "threads": float(last.threads),
    }


def _blocks(text: Text) -> list[list[str]]:
    """The lines of each run: from its set-up to the next one's."""
    starts = [i for i, line in enumerate(text.lines) if _SETUP.fullmatch(line.strip())]
    if not starts:
        raise text.error("no run found")
    return [text.lines[start:end] for start, end in zip(starts, [*starts[1:], len(text.lines)], strict=True)]


def _run(text: Text, lines: Sequence[str]) -> _Run:
    loop = text.only(_LOOP, "a loop time", lines)
    tasks = text.only(_TASKS, "the MPI tasks", lines)
    loop_s, ranks = text.number(loop[1], "the loop time"), text.whole(tasks[1], "the number of ranks")
    steps, threads = text.whole(loop[3], "the steps"), 1 if tasks[2] == "no" else text.whole(tasks[2], "the threads")
    if ranks * threads != text.whole(loop[2], "the processes"):
        raise text.error(f"the loop ran on {loop[2]} processes, not {ranks} ranks x {threads} threads")
    if not loop_s > 0 or steps == 0:
        raise text.error(f"{steps} steps took {loop[1]} s")
    rate = text.only(_PERFORMANCE, "the performance", lines)[1]
    printed = text.number(rate, "the performance")
    slacks = (rounding(loop[1]) / loop_s, rounding(rate) / max(printed, rounding(rate)))
    if not is_near(printed, steps / loop_s, slacks):
        raise text.error(f"{rate} timesteps/s are not {steps} steps in {loop[1]} s")
    sections_s = _sections(text, lines)
    # Each mean is printed to five digits.
    if not is_near(sum(sections_s.values()), loop_s, (1e-3,)):
        raise text.error(f"the timing breakdown does not add up to the loop time of {loop[1]} s")
    row_steps, energies = _rows(text, lines)
    if row_steps[-1] - row_steps[0] != steps:
        raise text.error(f"the rows go from step {row_steps[0]} to {row_steps[-1]}, but {steps} steps were run")
    builds = text.whole(text.only(_BUILDS, "the neighbor list builds", lines)[1], "the neighbor list builds")
    atoms = text.whole(loop[4], "the number of atoms")
    return _Run(loop_s, 2.0 * slacks[0], steps, atoms, ranks, threads, builds, sections_s, row_steps, energies)


def _sections(text: Text, lines: Sequence[str]) -> dict[str, float]:
    """Section -> mean over ranks, in seconds, of the first timing breakdown (with threads there is another)."""
    start = next((i for i, line in enumerate(lines) if line.strip() == "MPI task timing breakdown:"), None)
    if start is None:
        raise text.error("no timing breakdown found")
    sections: dict[str, float] = {}
    for line in lines[start + 3 :]:
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) != 6 or not re.fullmatch(r"[A-Za-z0-9_/-]{1,20}", cells[0]):
            break
        sections[cells[0].lower()] = text.number(cells[2], f"the time of {cells[0]}")
    return sections


def _rows(text: Text, lines: Sequence[str]) -> tuple[tuple[int, ...], tuple[float | None, ...]]:
    """The step and total energy of each row of thermodynamic output, between its header and the loop time."""
    header = next(
        (i for i, line in enumerate(lines) if line.split()[:1] == ["Step"] and "TotEng" in line.split()), None
    )
    if header is None:
        raise text.error("no rows with a total energy found")
    columns = lines[header].split()
    steps: list[int] = []
    energies: list[float | None] = []
    for line in lines[header + 1 :]:
        if _LOOP.fullmatch(line.strip()):
            break
        cells = line.split()
        if cells[:1] == ["WARNING:"]:
            continue
        if len(cells) != len(columns):
            raise text.error(f"a row has {len(cells)} columns, its header {len(columns)}")
        steps.append(text.whole(cells[0], "a step"))
        energies.append(text.number_or_none(cells[columns.index("TotEng")], "an energy"))
    if len(steps) < 2 or steps != sorted(set(steps)):
        raise text.error("its rows are not in order of time steps")
    return tuple(steps), tuple(energies)
