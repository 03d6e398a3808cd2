"""HPL through seatrial compared with hpcc run by hand, and with cpu.gemm: interleaved rounds, best of rounds.

Both run the same program on the same CPUs with the same n, block size and grid, the default kernels of the BLAS, and
as many BLAS threads as a rank has CPUs. "By hand" follows hpcc's README: the input file, the launcher of the MPI that
it is linked with, ranks bound to cores, and all fourteen tests; only its HPL rate is compared. The order rotates from
round to round. The goals are 0.97 x by hand, and 0.75 x the matrix product of the same rounds.

    python bench/hpl_rival.py [--n 12000] [--nb 192] [--grid 1x2] [--rounds 3] [-o docs/results/hpl_rival.json]

A round at n = 12000 takes minutes, mostly in hpcc's other tests.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from common import live_machine, measure, provenance, ready, rival_provenance, write

from seatrial.applications.hpl import blocks, grids
from seatrial.applications.hpl_input import hpl_dat
from seatrial.applications.hpl_output import read_hpcc
from seatrial.engine.ready import Ready
from seatrial.engine.repeat import variables_of
from seatrial.model.benchmark.parameter import whole
from seatrial.model.benchmark.program import ProgramRecord
from seatrial.model.results.record import RepeatRecord
from seatrial.model.results.sample import Sample

_GOALS = {"seatrial_over_by_hand": 0.97, "seatrial_over_gemm": 0.75}
_LONGEST_S = 3600.0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", default="12000", help="order of the matrix")
    parser.add_argument("--nb", default="192", help="block size")
    parser.add_argument("--grid", default="1x2", help="rows x columns of the grid of processes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()

    machine = live_machine()
    rows, _, columns = options.grid.partition("x")
    ranks = str(int(rows) * int(columns))
    hpl = ready(machine, "apps.hpl", n=options.n, nb=options.nb, grid=options.grid, ranks=ranks)
    if hpl.program.path.name != "hpcc" or hpl.mpi is None or hpl.mpi.launcher is None:
        raise SystemExit(f"apps.hpl runs {hpl.program.path} here; this script needs hpcc and an MPI with a launcher")
    gemm = ready(machine, "cpu.gemm")
    runs = {
        "by hand": lambda: by_hand(hpl),
        "seatrial": lambda: _result(measure(hpl, machine)),
        "cpu.gemm": lambda: {"flops": best(measure(gemm, machine).samples, "gemm")},
    }
    names = list(runs)
    rounds: list[dict[str, dict[str, Any]]] = []
    for number in range(options.rounds):
        result: dict[str, dict[str, Any]] = {}
        for name in names[number % len(names) :] + names[: number % len(names)]:
            start = time.perf_counter()
            result[name] = {**runs[name](), "wall_s": time.perf_counter() - start}
        rounds.append({name: result[name] for name in names})
        print("  ".join(f"{name}: {result[name]['flops'] / 1e9:.1f}" for name in names), "GFLOP/s", flush=True)

    best_of = {name: max(one[name]["flops"] for one in rounds) for name in names}
    write(
        "hpl_rival",
        {
            "provenance": {**provenance(machine, gemm), **_setup(hpl), "hpcc": rival_provenance(hpl.program.path)},
            "goals": _GOALS,
            "of_best": {
                "seatrial_over_by_hand": best_of["seatrial"] / best_of["by hand"],
                "seatrial_over_gemm": best_of["seatrial"] / best_of["cpu.gemm"],
            },
            "flops_of_best": best_of,
            "rounds": rounds,
        },
        options.output,
    )


def _setup(hpl: Ready) -> dict[str, Any]:
    mpi = hpl.mpi
    return {"parameters": dict(hpl.point.parameters), "mpi": None if mpi is None else mpi.title, "cpus": hpl.point.cpus}


def by_hand(hpl: Ready) -> dict[str, Any]:
    """Run hpcc once with all of its tests."""
    if hpl.mpi is None or hpl.mpi.launcher is None:
        raise SystemExit("no MPI launcher found")
    params = hpl.point.parameters
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        variables = variables_of(hpl, folder)
        (folder / "hpccinf.txt").write_bytes(hpl_dat(whole(params["n"]), blocks(params), grids(params)))
        binding = ["--bind-to", "core"] if whole(params["threads"]) == 1 else ["--bind-to", "none"]
        command = [str(hpl.mpi.launcher), "-np", str(params["ranks"]), *binding, str(hpl.program.path)]
        subprocess.run(command, check=True, cwd=folder, env=variables, capture_output=True, timeout=_LONGEST_S)
        record = read_hpcc((folder / "hpccoutf.txt").read_bytes())
    return _result(record)


def _result(record: ProgramRecord | RepeatRecord) -> dict[str, Any]:
    return {"flops": best(record.samples, "solution"), "residual": record.checks["residual"]}


def best(samples: tuple[Sample, ...], series: str) -> float:
    """The best rate of a series, in flop/s."""
    return max(sample.work["flops"] / sample.elapsed_s for sample in samples if sample.series == series)


if __name__ == "__main__":
    main()
