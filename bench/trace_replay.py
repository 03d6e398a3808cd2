"""Traces LAMMPS on two ranks, and replays it with SimGrid on a platform fitted to this machine's own figures.

The Lennard-Jones melt of `apps.lammps` runs without the profiler, with it, and with it and a trace, alternately. Each
trace is exported, and replayed by `smpirun` on a platform fitted to `mpi.latency` and `mpi.bandwidth` of a results
folder. The goal: the replay time is within 10 % of the traced run's wall time, from the start of the first rank to the
MPI_Finalize of the last. The replay does not include time in which a rank waits for a CPU, inside MPI or outside. Each
round therefore records the share of the wall time in which the ranks had a CPU; the ratio is that of the rounds with
nearly all of it, and that of all rounds is also given. The script also reports the wall times of the three commands
with their launcher, and the time of one call without the profiler, with it, and with a trace (`mpi_profiler_calls.c`,
MPI_Allreduce of 8 B on MPI_COMM_SELF and a ping-pong of 8 B; the 10th percentile of its batches).

    seatrial run mpi.latency mpi.bandwidth --results DIR
    python bench/trace_replay.py DIR [--rounds 5] [--steps 400] [--mpi openmpi] [--smpirun smpirun] [--lmp lmp]
                                 [-o docs/results/trace_replay.json]
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from common import live_machine, provenance, ready, write

from seatrial.analysis.network_fit import NetworkTables, network_tables
from seatrial.analysis.profiles import profiles_of_tables
from seatrial.analysis.results import results_without_limits
from seatrial.applications.lammps import BENCHMARK as LAMMPS
from seatrial.environments.compiler import first_compiler
from seatrial.environments.loader import c_compiler
from seatrial.environments.mpi import choose_mpi
from seatrial.model.benchmark.benchmark import External
from seatrial.model.environment.mpi import Mpi
from seatrial.profiler.capture.run import build_profiler, profiler_variables
from seatrial.report.profile.trace_export import TraceExport, replay_command, write_trace
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder

_CALLS = Path(__file__).with_name("mpi_profiler_calls.c")
_TRACE_B = 64 << 20
_RANKS = 2
_GOAL = 0.10
_UNDISTURBED = 0.9
"""Minimum share of the wall time with a CPU; ranks sleep briefly during start-up."""
_LONGEST_S = 600.0
_MODES = ("bare", "profiled", "traced")
_ROOT_MAY = {f"{system}_ALLOW_RUN_AS_ROOT{confirm}": "1" for system in ("OMPI", "PRTE") for confirm in ("", "_CONFIRM")}


def main() -> None:
    """Run the rounds, and write the result."""
    request = _arguments().parse_args()
    machine = live_machine()
    item = ready(machine, "memory.stream")
    mpi = choose_mpi(request.mpi)
    made = {**provenance(machine, item), "mpi": f"{mpi.name} {mpi.version}"}
    tables = network_tables(results_without_limits(read_contents(ResultsFolder.existing(request.results))))
    library = build_profiler(first_compiler())
    with tempfile.TemporaryDirectory(prefix="seatrial-replay-") as name:
        folder = Path(name)
        (folder / "in.melt").write_bytes(_input(request.cells, request.steps))
        melt = [request.lmp, "-in", "in.melt", "-log", "none", "-nocite"]
        runner = _Runner(mpi, library, folder)
        rounds = [_round(number, runner, melt, tables, request.smpirun) for number in range(request.rounds)]
        calls = _cost_of_calls(runner, request.rounds)
    quiet = [one["replay_over_wall"] for one in rounds if one["on_processor"] >= _UNDISTURBED]
    summary = {
        "undisturbed": _ratios(quiet),
        "all_rounds": _ratios([one["replay_over_wall"] for one in rounds]),
        "goal": _GOAL,
        "traced_over_bare": median(one["command_s"]["traced"] / one["command_s"]["bare"] for one in rounds),
        "calls_ns": calls,
    }
    versions = {
        "smpirun": _first_line(request.smpirun, "-version"),
        "lammps": _first_line(request.lmp, "-h"),
        "network": tables.pair,
    }
    settings = {"cells": request.cells, "steps": request.steps, "ranks": _RANKS, "trace_B": _TRACE_B}
    document = {"provenance": {**made, **versions}, "settings": settings, "summary": summary, "rounds": rounds}
    write("trace_replay", document, request.output)
    for line in _summary_lines(summary):
        print(line)


def _input(cells: int, steps: int) -> bytes:
    if not isinstance(LAMMPS.program, External) or LAMMPS.program.inputs is None:
        raise SystemExit("apps.lammps has no built-in input")
    return LAMMPS.program.inputs({"cells": cells, "steps": steps})["in.melt"]


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cells", type=int, default=20)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--mpi", default="openmpi")
    parser.add_argument("--smpirun", default=shutil.which("smpirun") or "smpirun")
    parser.add_argument("--lmp", default=shutil.which("lmp") or "lmp")
    parser.add_argument("-o", dest="output", type=Path)
    return parser


class _Ran(NamedTuple):
    """Wall time and CPU time of a whole command with its launcher, in seconds, and its output."""

    wall_s: float
    processor_s: float
    text: str


def _processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class _Runner:
    """Runs an MPI program bare, profiled, or traced."""

    def __init__(self, mpi: Mpi, library: Path, folder: Path) -> None:
        self._mpi = mpi
        self._library = library
        self.folder = folder

    def run(self, command: Sequence[str], mode: str, tables: Path, ranks: int = _RANKS) -> _Ran:
        """Run the command in one of the modes; exits if it fails."""
        added: dict[str, str] = {}
        if mode != "bare":
            tables.mkdir()
            trace_B = _TRACE_B if mode == "traced" else 0
            added = profiler_variables(self._library, tables, {}, trace_B=trace_B)
        preload = [f"{name}={value}" for name, value in added.items()]
        whole = [str(self._mpi.launcher), "-n", str(ranks), shutil.which("env") or "env", *preload, *command]
        variables = {**os.environ, **_ROOT_MAY, **dict(self._mpi.variables)}
        begin, used = time.perf_counter(), _processor_s()
        ended = subprocess.run(
            whole, cwd=self.folder, env=variables, capture_output=True, text=True, timeout=_LONGEST_S
        )
        if ended.returncode != 0:
            raise SystemExit(f"{' '.join(whole)} ended with {ended.returncode}:\n{ended.stderr[-2000:]}")
        return _Ran(time.perf_counter() - begin, _processor_s() - used, ended.stdout)

    def compiled(self, source: Path) -> Path:
        program = self.folder / source.stem
        command = [*c_compiler(first_compiler()), "-O2", *self._mpi.compile_flags, str(source), "-o", str(program)]
        subprocess.run([*command, *self._mpi.link_flags], check=True)
        return program


def _round(number: int, runner: _Runner, melt: list[str], network: NetworkTables, smpirun: str) -> dict[str, Any]:
    """The three runs, in an order that rotates from round to round, and the replay of the traced one."""
    order = [_MODES[(number + step) % len(_MODES)] for step in range(len(_MODES))]
    tables = {mode: runner.folder / f"{mode}-{number}" for mode in _MODES}
    load = os.getloadavg()[0]
    ran = {mode: runner.run(melt, mode, tables[mode]) for mode in order}
    profiles, _ = profiles_of_tables(tables["traced"])
    export = write_trace(tables["traced"], runner.folder / f"ti-{number}", network, profiles)
    replay_s = _replayed_s(export, runner.folder / f"ti-{number}", smpirun)
    on_processor = ran["traced"].processor_s / (_RANKS * export.ti.wall_s)
    print(
        f"round {number}: wall {export.ti.wall_s:.3f} s, replay {replay_s:.3f} s, on a CPU {on_processor:.0%}, "
        f"without a CPU at most {export.load.delay_share or 0:.0%}, load {load:.2f}",
        flush=True,
    )
    return {
        "load_before": load,
        "cpu_share": export.load.cpu_share,
        "delay_share": export.load.delay_share,
        "command_s": {mode: ran[mode].wall_s for mode in _MODES},
        "on_processor": on_processor,
        "wall_s": export.ti.wall_s,
        "replay_s": replay_s,
        "replay_over_wall": replay_s / export.ti.wall_s,
        "messages": export.ti.messages,
        "collectives": export.ti.collectives,
        "not_replayed": dict(export.ti.left_out.calls),
        "lost_records": export.ti.lost,
    }


def _replayed_s(export: TraceExport, folder: Path, smpirun: str) -> float:
    command = replay_command(export.ti.ranks, smpirun)
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_LONGEST_S)
    found = re.search(r"Simulation time ([0-9.]+)", ended.stderr + ended.stdout)
    if ended.returncode != 0 or found is None:
        raise SystemExit(f"the replay ended with {ended.returncode}:\n{ended.stderr[-2000:]}")
    return float(found[1])


def _cost_of_calls(runner: _Runner, rounds: int) -> dict[str, dict[str, float]]:
    """Nanoseconds per call in each mode: medians over the rounds."""
    program = runner.compiled(_CALLS)
    kinds: list[tuple[str, int, Callable[[str], float]]] = [
        ("self", 1, lambda text: _named_ns(text, "allreduce")),
        ("ping-pong", 2, lambda text: _named_ns(text, "ping_pong")),
    ]
    found: dict[str, dict[str, float]] = {}
    for kind, ranks, read in kinds:
        seen: dict[str, list[float]] = {mode: [] for mode in _MODES}
        for number in range(rounds):
            for mode in _MODES:
                tables = runner.folder / f"calls-{kind}-{number}-{mode}"
                seen[mode].append(read(runner.run([str(program), kind, "40", "1500"], mode, tables, ranks).text))
                shutil.rmtree(tables, ignore_errors=True)
        found[kind] = {mode: median(values) for mode, values in seen.items()}
    return found


def _named_ns(text: str, name: str) -> float:
    found = re.search(rf"^{name} ([0-9.e+]+)", text.replace("-", "_"), re.MULTILINE)
    if found is None:
        raise SystemExit(f"{_CALLS.name} printed no {name}:\n{text}")
    return float(found[1])


def _first_line(program: str, option: str) -> str:
    done = subprocess.run([program, option], capture_output=True, text=True, env={**os.environ, **_ROOT_MAY})
    return next((line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()), "unknown")


def _ratios(found: Sequence[float]) -> dict[str, float | int]:
    """Statistics of the ratios of replay time to wall time."""
    if not found:
        return {"rounds": 0}
    worst = max(found, key=lambda ratio: abs(ratio - 1))
    within = sum(abs(ratio - 1) <= _GOAL for ratio in found)
    return {"rounds": len(found), "median": median(found), "worst": worst, "within_goal": within}


def _summary_lines(summary: dict[str, Any]) -> list[str]:
    lines = []
    for which in ("undisturbed", "all_rounds"):
        ratios = summary[which]
        if ratios["rounds"]:
            lines.append(
                f"replay over wall, {which.replace('_', ' ')}: median {ratios['median']:.3f}, "
                f"worst {ratios['worst']:.3f}, {ratios['within_goal']} of {ratios['rounds']} within {_GOAL:.0%}"
            )
    lines.append(f"traced over bare, whole command: {summary['traced_over_bare']:.3f}")
    for kind, found in summary["calls_ns"].items():
        lines.append(f"one call, {kind}: " + ", ".join(f"{mode} {ns:.0f} ns" for mode, ns in found.items()))
    return lines


if __name__ == "__main__":
    main()
