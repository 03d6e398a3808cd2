"""Overhead of the MPI profiler per call, compared with mpiP and IPM: interleaved rounds on each MPI.

The program `mpi_profiler_calls.c` times batches of calls: on MPI_COMM_SELF with one rank, and an 8 B ping-pong between
two. It runs bare and with each tool preloaded, one after the other; the order rotates from round to round. The result
of a run is the 10th percentile of its batches. All figures are medians over the rounds, but those called best: the
nanoseconds added to a call, for the ping-pong the ratio to the bare run, and the time added to MPI_Finalize.

Overhead is given in ns and as a multiple of two timer readings of the same rounds, twice: of two readings in a loop of
their own (the goal: at most 1.15 times), and of what the tool "two timers" adds to the same call. That is a library
that only reads the timer before and after each of these calls and adds up the difference (`mpi_profiler_timers.c`). In
a loop, readings wait for each other; around a call, the processor overlaps them with the call, so that a call may get
longer by less than two readings in a loop. Both timers' cost and the CPU are printed.

A tool is listed for a call only if it wraps that call: mpiP and IPM do not wrap some of them, and so neither slow them
down nor record them. On shared cores whole runs fall into two levels, so the best of the rounds is reported as well.

    python bench/mpi_profiler.py [--mpi openmpi --mpi mpich] [--mpip openmpi=LIB --mpip mpich=LIB] [--mpip-k0]
                                 [--ipm openmpi=LIB --ipm mpich=LIB] [--also NAME=LIB] [--rounds 6]
                                 [--batches 40] [--calls 1500] [-o docs/results/mpi_profiler.json]

LIB is libmpiP.so or libipm.so, built with that MPI; with -g, the result includes its compiler and flags. --mpip-k0 also
measures mpiP with MPIP="-k 0", which does not walk the stack. --also is another build of this profiler, such as that of
an earlier commit, which is measured in the same rounds.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from common import live_machine, provenance, ready, write

from seatrial.environments.compiler import first_compiler
from seatrial.environments.loader import c_compiler
from seatrial.environments.mpi import choose_mpi
from seatrial.model.environment.mpi import Mpi
from seatrial.profiler.capture.run import build_profiler, profiler_variables

_PROGRAM = Path(__file__).with_name("mpi_profiler_calls.c")
_TIMERS = Path(__file__).with_name("mpi_profiler_timers.c")
_OURS, _FLOOR = "seatrial", "two timers"
_LONGEST_S = 300.0
_MEMORY = "/dev/shm"  # noqa: S108  private folders are created in it
_GOAL_OF_TIMERS, _GOAL_PING_PONG = 1.15, 1.08
_MPI_CALLS = {
    "allreduce": ("MPI_Allreduce",),
    "barrier": ("MPI_Barrier",),
    "bcast": ("MPI_Bcast",),
    "comm_rank": ("MPI_Comm_rank",),
    "sendrecv": ("MPI_Sendrecv",),
    "isend_irecv_waitall": ("MPI_Isend", "MPI_Irecv", "MPI_Waitall"),
    "ping_pong": ("MPI_Send", "MPI_Recv"),
}
"""The MPI calls in one iteration of each kind."""
_ROOT_MAY = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
_UNBOUND = {"OMPI_MCA_hwloc_base_binding_policy": "none"}


@dataclass(frozen=True, slots=True)
class Tool:
    """A preloaded tool. `defines`: the MPI functions that it wraps; None if it wraps all."""

    name: str
    variables: Mapping[str, str] = field(default_factory=dict)
    defines: frozenset[str] | None = None
    is_rival: bool = True

    def records(self, kind: str) -> bool:
        """Whether it wraps every call in an iteration of this kind."""
        return self.defines is None or self.defines.issuperset(_MPI_CALLS[kind])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpi", action="append", help="an installed MPI (default: openmpi and mpich)")
    parser.add_argument("--mpip", action="append", default=[], metavar="MPI=LIB")
    parser.add_argument("--mpip-k0", action="store_true", help="also measure mpiP without its stack walk")
    parser.add_argument("--ipm", action="append", default=[], metavar="MPI=LIB")
    parser.add_argument("--also", action="append", default=[], metavar="NAME=LIB")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--calls", type=int, default=1500)
    parser.add_argument("--only", choices=("self", "ping-pong"))
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()

    machine = live_machine()
    made = provenance(machine, ready(machine, "cpu.peak", cores="one"))
    parts = [options.only] if options.only else ["self", "ping-pong"]
    results: dict[str, Any] = {}
    print(f"CPU: {made['cpu']}, kernel {made['kernel']}; load {os.getloadavg()[0]:.2f}")
    for rival in ("mpip", "ipm"):
        if not getattr(options, rival):
            print(f"{rival} skipped: no library given (--{rival} MPI=LIB)")
    with tempfile.TemporaryDirectory() as where, tempfile.TemporaryDirectory(dir=_MEMORY) as node:
        for name in options.mpi or ["openmpi", "mpich"]:
            mpi = choose_mpi(name)
            program = built(mpi, Path(where) / f"calls-{name}")
            folder = Path(where) / name
            folder.mkdir()
            tools = [Tool("bare"), timers(folder), ours(folder, node), *others(options.also, folder, node)]
            tools += rivals(name, options)
            rounds = []
            for number in range(options.rounds):
                turn = number % len(tools)
                seen: dict[str, dict[str, float]] = {}
                for tool in [*tools[turn:], *tools[:turn]]:
                    for part in parts:
                        times = run(mpi, program, tool, part, options.batches, options.calls, Path(where))
                        seen.setdefault(tool.name, {}).update(times)
                rounds.append(seen)
            results[name] = {"version": mpi.version, **judged(rounds, tools), "rounds": rounds}
            print(name, table(results[name]), sep="\n", flush=True)
    write(
        "mpi_profiler",
        {
            "provenance": {
                **made,
                "program_flags": "-O2",
                "rivals": {
                    f"{tool} {name}": compiler_of(Path(library))
                    for tool, options_of in (("mpip", options.mpip), ("ipm", options.ipm))
                    for name, _, library in (option.partition("=") for option in options_of)
                },
            },
            "batches": options.batches,
            "calls": options.calls,
            "goals": {"of_two_timers": _GOAL_OF_TIMERS, "ping_pong": _GOAL_PING_PONG},
            "statistic": "10th percentile of the batches of a run; median over the rounds, but where named best",
            "mpi": results,
        },
        options.output,
    )


def built(mpi: Mpi, program: Path) -> Path:
    """Compile the program with this MPI."""
    flags = ("-std=c11", "-O2", "-Wno-stringop-overflow", *mpi.compile_flags)
    command = [*c_compiler(first_compiler()), *flags, str(_PROGRAM), "-o", str(program), *mpi.link_flags]
    subprocess.run(command, check=True)
    return program


def timers(folder: Path) -> Tool:
    """A tool that only reads the timer twice per call."""
    library = folder / "libtimers.so"
    command = [*c_compiler(first_compiler()), "-std=c11", "-O2", "-fPIC", "-shared", str(_TIMERS), "-o", str(library)]
    subprocess.run([*command, "-ldl"], check=True)
    return Tool(_FLOOR, {"LD_PRELOAD": str(library)}, defined_by(library))


def ours(folder: Path, node: str) -> Tool:
    """The profiler with call sites, as in `seatrial profile`: in memory until MPI_Finalize copies the table."""
    return Tool(_OURS, profiler_variables(build_profiler(first_compiler()), folder, {}, node_folder=node))


def others(builds: Sequence[str], folder: Path, node: str) -> list[Tool]:
    """Other builds of this profiler, NAME=LIB, under the same conditions."""
    named = [option.partition("=") for option in builds]
    return [
        Tool(
            name,
            profiler_variables(Path(library).resolve(strict=True), folder, {}, node_folder=node),
            is_rival=False,
        )
        for name, _, library in named
    ]


def rivals(mpi: str, options: argparse.Namespace) -> list[Tool]:
    """The rivals given for this MPI."""
    tools = []
    for library in given(options.mpip, mpi):
        tools.append(Tool("mpip", {"LD_PRELOAD": str(library)}, defined_by(library)))
        if options.mpip_k0:
            tools.append(Tool("mpip -k 0", {"LD_PRELOAD": str(library), "MPIP": "-k 0"}, defined_by(library)))
    tools += [
        Tool("ipm", {"LD_PRELOAD": str(library), "IPM_REPORT": "none"}, defined_by(library))
        for library in given(options.ipm, mpi)
    ]
    return tools


def given(options: Sequence[str], mpi: str) -> list[Path]:
    """The libraries from the MPI=LIB options."""
    pairs = [option.partition("=") for option in options]
    return [Path(library).resolve(strict=True) for name, _, library in pairs if name == mpi]


def defined_by(library: Path) -> frozenset[str]:
    """The MPI functions that a library wraps."""
    command = ["nm", "-D", "--defined-only", str(library)]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return frozenset(re.findall(r" [TW] (MPI_\w+)$", listed, re.MULTILINE))


def compiler_of(library: Path) -> dict[str, str]:
    """Compiler and flags of a rival, from its debug information."""
    listed = subprocess.run(
        ["readelf", "--debug-dump=info", "--dwarf-depth=1", str(library)], capture_output=True, text=True
    ).stdout
    found = re.search(r"DW_AT_producer\s+: (?:\(indirect[^)]*\): )?(.*)", listed)
    return {"library": library.name, "compiler": found[1].strip() if found else "not recorded in the library"}


def run(mpi: Mpi, program: Path, tool: Tool, part: str, batches: int, calls: int, folder: Path) -> dict[str, float]:
    """Nanoseconds by kind of call. Files that a tool writes go into a temporary folder."""
    ranks = 2 if part == "ping-pong" else 1
    preload = [f"{name}={value}" for name, value in tool.variables.items()]
    command = [str(mpi.launcher), "-n", str(ranks), shutil.which("env") or "env", *preload, str(program), part]
    variables = {**os.environ, **_ROOT_MAY, **_UNBOUND, **dict(mpi.variables)}
    with tempfile.TemporaryDirectory(dir=folder) as own:
        done = subprocess.run(
            [*command, str(batches), str(calls)],
            env=variables,
            cwd=own,
            capture_output=True,
            text=True,
            timeout=_LONGEST_S,
        )
    if done.returncode != 0:
        raise SystemExit(f"{tool.name} on {mpi.name}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
    printed = dict(re.findall(r"^(\w+) ([0-9.]+)$", done.stdout, re.MULTILINE))
    suffix = "_2_ranks" if ranks == 2 else ""
    return {name + (suffix if name == "finalize" else ""): float(value) for name, value in printed.items()}


def judged(rounds: Sequence[Mapping[str, Mapping[str, float]]], tools: Sequence[Tool]) -> dict[str, Any]:
    """The overhead of each tool, whether the goals are met, and whether ours is lowest."""

    def of(tool: str, kind: str, which: Any = median) -> float:
        return float(which([one[tool][kind] for one in rounds]))

    bare = rounds[0]["bare"]
    kinds = [kind for kind in bare if kind in _MPI_CALLS]
    timers = {kind: of("bare", kind) for kind in bare if kind.startswith("two_")}
    timer_ns = timers.get("two_rdtsc")
    found: dict[str, Any] = {"timers_ns": timers, "calls": {}}
    for kind in kinds:
        n = len(_MPI_CALLS[kind])
        entry: dict[str, Any] = {"bare_ns": of("bare", kind), "best_bare_ns": of("bare", kind, min)}
        entry |= {name: {} for name in ("added_ns_per_call", "added_ns_of_best", "ratio", "ratio_of_best")}
        for tool in tools[1:]:
            if not tool.records(kind):
                continue
            entry["added_ns_per_call"][tool.name] = (
                median(one[tool.name][kind] - one["bare"][kind] for one in rounds) / n
            )
            entry["added_ns_of_best"][tool.name] = (of(tool.name, kind, min) - of("bare", kind, min)) / n
            entry["ratio"][tool.name] = of(tool.name, kind) / of("bare", kind)
            entry["ratio_of_best"][tool.name] = of(tool.name, kind, min) / of("bare", kind, min)
        added = entry["added_ns_per_call"]
        own = added[_OURS]
        floor = added[_FLOOR]
        entry["of_two_timers"] = own / timer_ns if timer_ns else None
        entry["of_two_timers_around_it"] = own / floor if floor > 0 else None
        entry["is_ahead"] = all(own < added[tool.name] for tool in tools[3:] if tool.is_rival and tool.name in added)
        entry["meets_goal"] = (
            entry["ratio"][_OURS] <= _GOAL_PING_PONG
            if kind == "ping_pong"
            else own <= _GOAL_OF_TIMERS * (timer_ns or floor)
        )
        found["calls"][kind] = entry
    found["finalize_added_ms"] = {
        f"{tool.name}{kind.removeprefix('finalize').replace('_', ' ')}": median(
            one[tool.name][kind] - one["bare"][kind] for one in rounds
        )
        / 1e6
        for kind in bare
        if kind.startswith("finalize")
        for tool in tools[1:]
        if tool.name != _FLOOR
    }
    return found


def table(result: Mapping[str, Any]) -> str:
    """The results as a text table."""
    tools = sorted({name for entry in result["calls"].values() for name in entry["ratio"]}, key=lambda n: n != _OURS)
    rows = [
        [
            "median added ns per call (of best rounds)",
            "bare",
            *tools,
            "x two readings",
            "x those around it",
            "goal",
            "ahead",
        ]
    ]
    for kind, entry in result["calls"].items():
        cells = [
            f"{entry['added_ns_per_call'][tool]:.1f} ({entry['added_ns_of_best'][tool]:.1f})"
            if tool in entry["ratio"]
            else "-"
            for tool in tools
        ]
        if kind == "ping_pong":
            cells = [
                f"x {entry['ratio'][tool]:.3f} ({entry['ratio_of_best'][tool]:.3f})" if tool in entry["ratio"] else "-"
                for tool in tools
            ]
        multiples = [entry[key] for key in ("of_two_timers", "of_two_timers_around_it")]
        cells += ["-" if value is None or kind == "ping_pong" else f"{value:.2f}" for value in multiples]
        verdicts = ["yes" if entry[key] else "NO" for key in ("meets_goal", "is_ahead")]
        rows.append([kind, f"{entry['bare_ns']:.1f}", *cells, *verdicts])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    timers = ", ".join(f"{name} {value:.1f} ns" for name, value in result["timers_ns"].items())
    finalize = ", ".join(f"{name} {value:.2f} ms" for name, value in result["finalize_added_ms"].items())
    floor = f"two readings in a loop of their own (median): {timers}; goal: {_GOAL_OF_TIMERS} x two of rdtsc"
    return "\n".join([*lines, floor, f"MPI_Finalize adds (median): {finalize}"])


if __name__ == "__main__":
    main()
