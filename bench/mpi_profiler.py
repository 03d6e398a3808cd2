"""What the MPI profiler adds to a call, beside mpiP and IPM: interleaved rounds on each MPI.

A program of its own (`mpi_profiler_calls.c`) takes batches of calls: on MPI_COMM_SELF with one rank, and 8 B to and fro
between two. It runs bare and with each tool preloaded, one after the other; the order turns from round to round. The
figure of a run is the 10th percentile of its batches, what is told the median of the rounds: nanoseconds that are added
to a call, for the ping-pong the ratio to the bare one, and what MPI_Finalize takes longer. Two readings of a timer in a
row, from the same runs, say what cannot be had for less: the goal is 15 ns, or 1.3 times two readings where that is
more.

A tool counts only where it has a function of its own for the call: mpiP and IPM leave some calls to MPI, which adds
nothing and tells nothing. On shared cores whole runs fall into two levels; the best of the rounds stands beside the
median, and the ping-pong of a library that only reads the timer twice in each call and adds up
(`mpi_profiler_timers.c`): "two timers".

    python bench/mpi_profiler.py [--mpi openmpi --mpi mpich] [--mpip openmpi=LIB --mpip mpich=LIB] [--mpip-k0]
                                 [--ipm openmpi=LIB --ipm mpich=LIB] [--rounds 6] [--batches 40] [--calls 1500]
                                 [-o docs/results/mpi_profiler.json]

LIB is a libmpiP.so (--mpip-k0: measured with MPIP="-k 0" too, which walks no stack) or a libipm.so, each built with
that MPI; -g tells its compiler and flags in the result.
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
from seatrial.environments.mpi import choose_mpi
from seatrial.environments.shared_library import c_compiler
from seatrial.model.mpi import Mpi
from seatrial.profiler.capture.library import build_profiler, profiler_variables

_PROGRAM = Path(__file__).with_name("mpi_profiler_calls.c")
_TIMERS = Path(__file__).with_name("mpi_profiler_timers.c")
_OURS, _FLOOR = "seatrial", "two timers"
_LONGEST_S = 300.0
_MEMORY = "/dev/shm"  # noqa: S108  folders that only we can read are made in it
_GOAL_NS, _GOAL_OF_TIMERS, _GOAL_PING_PONG = 15.0, 1.3, 1.08
_MPI_CALLS = {
    "allreduce": ("MPI_Allreduce",),
    "barrier": ("MPI_Barrier",),
    "bcast": ("MPI_Bcast",),
    "comm_rank": ("MPI_Comm_rank",),
    "sendrecv": ("MPI_Sendrecv",),
    "isend_irecv_waitall": ("MPI_Isend", "MPI_Irecv", "MPI_Waitall"),
    "ping_pong": ("MPI_Send", "MPI_Recv"),
}
"""What each kind calls, once in an iteration."""
_ROOT_MAY = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
_UNBOUND = {"OMPI_MCA_hwloc_base_binding_policy": "none"}


@dataclass(frozen=True, slots=True)
class Tool:
    """What is preloaded. `defines`: the functions of MPI that it has of its own; None where it has all."""

    name: str
    variables: Mapping[str, str] = field(default_factory=dict)
    defines: frozenset[str] | None = None

    def records(self, kind: str) -> bool:
        """Whether all that such an iteration calls passes through it."""
        return self.defines is None or self.defines.issuperset(_MPI_CALLS[kind])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpi", action="append", help="of the machine; openmpi and mpich where none is named")
    parser.add_argument("--mpip", action="append", default=[], metavar="MPI=LIB")
    parser.add_argument("--mpip-k0", action="store_true", help="mpiP also without its walk of the stack")
    parser.add_argument("--ipm", action="append", default=[], metavar="MPI=LIB")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--calls", type=int, default=1500)
    parser.add_argument("--only", choices=("self", "ping-pong"))
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()

    machine = live_machine()
    parts = [options.only] if options.only else ["self", "ping-pong"]
    results: dict[str, Any] = {}
    for rival in ("mpip", "ipm"):
        if not getattr(options, rival):
            print(f"{rival}: absent, give its library with --{rival} MPI=LIB")
    with tempfile.TemporaryDirectory() as where, tempfile.TemporaryDirectory(dir=_MEMORY) as node:
        for name in options.mpi or ["openmpi", "mpich"]:
            mpi = choose_mpi(name)
            program = built(mpi, Path(where) / f"calls-{name}")
            folder = Path(where) / name
            folder.mkdir()
            tools = [Tool("bare"), timers(folder), ours(folder, node), *rivals(name, options)]
            rounds = []
            for number in range(options.rounds):
                turn = number % len(tools)
                seen: dict[str, dict[str, float]] = {}
                for tool in [*tools[turn:], *tools[:turn]]:
                    for part in (part for part in parts if tool.name != _FLOOR or part == "ping-pong"):
                        told = run(mpi, program, tool, part, options.batches, options.calls, Path(where))
                        seen.setdefault(tool.name, {}).update(told)
                rounds.append(seen)
            results[name] = {"version": mpi.version, **judged(rounds, tools), "rounds": rounds}
            print(name, table(results[name]), sep="\n", flush=True)
    write(
        "mpi_profiler",
        {
            "provenance": {
                **provenance(machine, ready(machine, "cpu.peak", cores="one")),
                "program_flags": "-O2",
                "rivals": {
                    f"{tool} {name}": told_of(Path(library))
                    for tool, options_of in (("mpip", options.mpip), ("ipm", options.ipm))
                    for name, _, library in (option.partition("=") for option in options_of)
                },
            },
            "batches": options.batches,
            "calls": options.calls,
            "goals": {"added_ns": _GOAL_NS, "of_two_timers": _GOAL_OF_TIMERS, "ping_pong": _GOAL_PING_PONG},
            "mpi": results,
        },
        options.output,
    )


def built(mpi: Mpi, program: Path) -> Path:
    """The program, with this library."""
    flags = ("-std=c11", "-O2", "-Wno-stringop-overflow", *mpi.compile_flags)
    command = [*c_compiler(first_compiler()), *flags, str(_PROGRAM), "-o", str(program), *mpi.link_flags]
    subprocess.run(command, check=True)
    return program


def timers(folder: Path) -> Tool:
    """What two readings of the timer cost by themselves, in the ping-pong."""
    library = folder / "libtimers.so"
    command = [*c_compiler(first_compiler()), "-std=c11", "-O2", "-fPIC", "-shared", str(_TIMERS), "-o", str(library)]
    subprocess.run([*command, "-ldl"], check=True)
    return Tool(_FLOOR, {"LD_PRELOAD": str(library)}, defined_by(library))


def ours(folder: Path, node: str) -> Tool:
    """The profiler, its call sites with it: as `seatrial profile` has it, in memory until MPI_Finalize copies it."""
    return Tool(_OURS, profiler_variables(build_profiler(first_compiler()), folder, {}, node_folder=node))


def rivals(mpi: str, options: argparse.Namespace) -> list[Tool]:
    """Those that were given for this library."""
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
    """The libraries of MPI=LIB options."""
    pairs = [option.partition("=") for option in options]
    return [Path(library).resolve(strict=True) for name, _, library in pairs if name == mpi]


def defined_by(library: Path) -> frozenset[str]:
    """The functions of MPI that a library puts before MPI's own."""
    command = ["nm", "-D", "--defined-only", str(library)]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return frozenset(re.findall(r" [TW] (MPI_\w+)$", listed, re.MULTILINE))


def told_of(library: Path) -> dict[str, str]:
    """Compiler and flags of a rival, as its debugging information tells them."""
    told = subprocess.run(
        ["readelf", "--debug-dump=info", "--dwarf-depth=1", str(library)], capture_output=True, text=True
    ).stdout
    found = re.search(r"DW_AT_producer\s+: (?:\(indirect[^)]*\): )?(.*)", told)
    return {"library": library.name, "compiler": found[1].strip() if found else "not told in the library"}


def run(mpi: Mpi, program: Path, tool: Tool, part: str, batches: int, calls: int, folder: Path) -> dict[str, float]:
    """Nanoseconds by kind of call. What a tool writes goes into a folder that is thrown away."""
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
    told = dict(re.findall(r"^(\w+) ([0-9.]+)$", done.stdout, re.MULTILINE))
    suffix = "_2_ranks" if ranks == 2 else ""
    return {name + (suffix if name == "finalize" else ""): float(value) for name, value in told.items()}


def judged(rounds: Sequence[Mapping[str, Mapping[str, float]]], tools: Sequence[Tool]) -> dict[str, Any]:
    """What each tool adds; whether the goals are met, and whether no rival adds less."""

    def of(tool: str, kind: str, which: Any = median) -> float:
        return float(which([one[tool][kind] for one in rounds]))

    bare = rounds[0]["bare"]
    kinds = [kind for kind in bare if kind in _MPI_CALLS]
    timers = {kind: of("bare", kind, min) for kind in bare if kind.startswith("two_")}
    limit = max(_GOAL_NS, _GOAL_OF_TIMERS * timers.get("two_rdtsc", 0.0))
    found: dict[str, Any] = {"timers_ns": timers, "limit_ns": limit, "calls": {}}
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
        entry["is_ahead"] = all(own < value for name, value in added.items() if name not in (_OURS, _FLOOR))
        entry["meets_goal"] = entry["ratio"][_OURS] <= _GOAL_PING_PONG if kind == "ping_pong" else own <= limit
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
    """For people."""
    tools = sorted({name for entry in result["calls"].values() for name in entry["ratio"]}, key=lambda n: n != _OURS)
    rows = [["added ns per call (of best rounds)", "bare", *tools, "goal", "ahead"]]
    for kind, entry in result["calls"].items():
        told = [
            f"{entry['added_ns_per_call'][tool]:.1f} ({entry['added_ns_of_best'][tool]:.1f})"
            if tool in entry["ratio"]
            else "-"
            for tool in tools
        ]
        if kind == "ping_pong":
            told = [
                f"x {entry['ratio'][tool]:.3f} ({entry['ratio_of_best'][tool]:.3f})" if tool in entry["ratio"] else "-"
                for tool in tools
            ]
        verdicts = ["yes" if entry[key] else "NO" for key in ("meets_goal", "is_ahead")]
        rows.append([kind, f"{entry['bare_ns']:.1f}", *told, *verdicts])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    timers = ", ".join(f"{name} {value:.1f} ns" for name, value in result["timers_ns"].items())
    finalize = ", ".join(f"{name} {value:.2f} ms" for name, value in result["finalize_added_ms"].items())
    return "\n".join([*lines, f"{timers}; limit {result['limit_ns']:.1f} ns", f"MPI_Finalize adds: {finalize}"])


if __name__ == "__main__":
    main()
