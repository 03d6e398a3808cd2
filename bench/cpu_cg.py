"""cpu.cg compared with the reference code of HPCG, given by its path: interleaved rounds, best of rounds.

Both solve the same local grid on the same CPUs, with as many ranks and threads; the reference is started as its
README says, ranks bound to cores where each has one thread, and by its short path (--rt=0), which times one set. Their
rates count the same operations over the time of a set. The order alternates from round to round. The goal is 1.5 x the
reference in each layout.

    python bench/cpu_cg.py XHPCG [--n 104] [--layouts 2x1,1x2] [--rounds 3] [-o docs/results/cpu_cg.json]

A round at n = 104 takes minutes.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from common import live_machine, measure, provenance, ready, rival_provenance, write

from seatrial.benchmarks.placement import openmp_variables
from seatrial.engine.ready import Ready
from seatrial.engine.repeat import variables_of
from seatrial.model.benchmark.parameter import whole
from seatrial.model.machine.machine import Machine

_GOALS = {"seatrial_over_reference": 1.5}
_LONGEST_S = 3600.0
_FLOPS = "Floating Point Operations Summary::Total with convergence overhead"
_RATE = "GFLOP/s Summary::Total with convergence overhead"
_VALID = "Final Summary::HPCG result is VALID with a GFLOP/s rating of"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("xhpcg", type=Path, help="the reference program")
    parser.add_argument("--n", default="104", help="points along each edge of the grid of a rank")
    parser.add_argument("--layouts", default="2x1,1x2", help="ranks x threads")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()

    machine = live_machine()
    items = {}
    for layout in options.layouts.split(","):
        ranks, _, threads = layout.partition("x")
        items[layout] = ready(machine, "cpu.cg", nx=options.n, ranks=ranks, threads=threads)
    rounds: list[dict[str, dict[str, Any]]] = []
    for number in range(options.rounds):
        result: dict[str, dict[str, Any]] = {}
        for layout, item in items.items():
            runs = [("seatrial", lambda item=item: ours(item, machine)),
                    ("reference", lambda item=item: reference(options.xhpcg.resolve(), item))]  # fmt: skip
            found = {name: run() for name, run in (runs if number % 2 == 0 else runs[::-1])}
            result[layout] = {name: found[name] for name, _ in runs}
            print(layout, *(f"{name}: {found[name]['rate'] / 1e9:.2f} GFLOP/s " for name in found), flush=True)
        rounds.append(result)

    best = {
        layout: {name: max(one[layout][name]["rate"] for one in rounds) for name in ("seatrial", "reference")}
        for layout in items
    }
    first = next(iter(items.values()))
    write(
        "cpu_cg",
        {
            "provenance": {
                **provenance(machine, first),
                "parameters": {layout: dict(item.point.parameters) for layout, item in items.items()},
                "mpi": None if first.mpi is None else first.mpi.title,
                "xhpcg": rival_provenance(options.xhpcg),
            },
            "goals": _GOALS,
            "seatrial_over_reference": {
                layout: rates["seatrial"] / rates["reference"] for layout, rates in best.items()
            },
            "rate_of_best": best,
            "rounds": rounds,
        },
        options.output,
    )


def ours(item: Ready, machine: Machine) -> dict[str, float]:
    """The best set of a repeat, in flop/s, with its limit."""
    sample = min(measure(item, machine).samples, key=lambda sample: sample.elapsed_s)
    flops, time_s = sample.work["flops"], sample.elapsed_s
    return {
        "rate": flops / time_s,
        "flops_of_a_set": flops,
        "iterations": sample.work["iterations"],
        "setup_s": float(sample.extra["setup_s"]),
        "memory_Bps": float(sample.extra["memory_Bps"]),
        "limit": float(sample.extra["memory_Bps"]) * flops / sample.work["bytes"],
    }


def reference(program: Path, item: Ready) -> dict[str, float]:
    """Run HPCG once. Ends the script where its own tests fail."""
    params = item.point.parameters
    if item.mpi is None or item.mpi.launcher is None:
        raise SystemExit("no MPI launcher found")
    binding = ["--bind-to", "core"] if whole(params["threads"]) == 1 else ["--bind-to", "none"]
    sizes = [f"--n{axis}={params[f'n{axis}']}" for axis in "xyz"]
    command = [str(item.mpi.launcher), "-np", str(params["ranks"]), *binding, str(program), *sizes, "--rt=0"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wanted = {name: value for name, value in openmp_variables(params).items() if value is not None}
        environment = {**variables_of(item, folder), **wanted}
        subprocess.run(command, check=True, cwd=folder, env=environment, capture_output=True, timeout=_LONGEST_S)
        (report,) = folder.glob("HPCG-Benchmark_*.txt")
        text = report.read_text()
    if _VALID not in text:
        raise SystemExit(f"the reference says that its result is not valid:\n{text[-500:]}")
    return {"rate": _number(text, _RATE) * 1e9, "flops_of_a_set": _number(text, _FLOPS)}


def _number(text: str, key: str) -> float:
    found = re.search(rf"^{re.escape(key)}=(.+)$", text, re.MULTILINE)
    if found is None:
        raise SystemExit(f"the report of the reference has no {key!r}")
    return float(found[1])


if __name__ == "__main__":
    main()
