"""Plants a slowdown: how often is it found, and is it ever called faster?

Four kinds of programs take turns. Three run a chain of dependent integer multiplications for 0.5, 1 or 2 s, measured by
the benchmark `command`; the slowed version runs a given percentage more of them. The fourth is mpi.latency: with a
preloaded library, its two ranks make that percentage more round trips than they count. Each try is a study of at most
60 s. The script resumes: it adds to its record until the count is reached.

To find a difference of the size of the margin, the margin must be smaller:

python bench/compare_planted.py [--percent 5] [--tries 50] [-o docs/results/compare_planted_5.json]
python bench/compare_planted.py --percent 2 --margin 0.5 [--tries 50] [-o docs/results/compare_planted_2.json]
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from common import live_machine, provenance, ready
from comparing import counted, keep, recorded, run_comparison

CHAIN = """
#include <cstdint>
#include <cstdlib>
int main(int, char** argv) {
  std::uint64_t x = 1;
  for (std::uint64_t n = std::strtoull(argv[1], nullptr, 10); n != 0; --n)
    x = x * 6364136223846793005u + n;
  return x == 0;
}
"""
MORE_TRIPS = """
#include <cstdlib>
#include <mpi.h>
namespace {
long left = 1;
bool is_due(int of_rank) {
  static const long every = std::atol(std::getenv("PLANTED_EVERY"));
  static const int rank = [] {
    int found = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &found);
    left = every;
    return found;
  }();
  if (rank != of_rank || --left != 0)
    return false;
  left = every;
  return true;
}
char back[4096];
}
extern "C" int MPI_Send(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  if (is_due(0)) {
    PMPI_Send(data, count, type, to, tag, comm);
    PMPI_Recv(back, count, type, to, tag, comm, MPI_STATUS_IGNORE);
  }
  return PMPI_Send(data, count, type, to, tag, comm);
}
extern "C" int MPI_Recv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status* seen) {
  if (is_due(1)) {
    PMPI_Recv(data, count, type, from, tag, comm, MPI_STATUS_IGNORE);
    PMPI_Send(data, count, type, from, tag, comm);
  }
  return PMPI_Recv(data, count, type, from, tag, comm, seen);
}
"""
NEVER = "1000000000000"
SECONDS = {"0.5 s": 0.5, "1 s": 1.0, "2 s": 2.0}
MPI = "mpi.latency"
KINDS = (*SECONDS, MPI)


class Planted:
    """The programs, and how many steps of the chain a time takes."""

    def __init__(self, folder: Path, mpicxx: str) -> None:
        self.chain = built(folder / "chain.cpp", CHAIN, "g++")
        self.more_trips = built(folder / "more_trips.cpp", MORE_TRIPS, mpicxx, "-shared", "-fPIC")
        self.steps_per_s = rate(self.chain)

    def study(self, kind: str, share: float) -> dict[str, Any]:
        """Compares the program with one that is slower by this share."""
        if kind == MPI:
            every = str(round(1.0 / share))
            return {
                "benchmarks": {"mpi.latency": {"size_B": 8}},
                "axes": {
                    "environment.LD_PRELOAD": [str(self.more_trips)],
                    "environment.PLANTED_EVERY": [NEVER, every],
                },
                "compare": {"along": "environment.PLANTED_EVERY", "baseline": NEVER, "figures": ["one_way"]},
            }
        number = self.steps_per_s * SECONDS[kind]
        argv = [[str(self.chain), str(round(n))] for n in (number, number * (1.0 + share))]
        return {
            "benchmarks": {"command": {}},
            "axes": {"argv": argv},
            "compare": {"along": "argv", "baseline": argv[0], "figures": ["wall"]},
        }


def main() -> None:
    """Run the missing tries, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--percent", type=float, default=5.0)
    parser.add_argument("--margin", type=float, default=2.0, help="percent that count as the same")
    parser.add_argument("--tries", type=int, default=50)
    parser.add_argument("--budget", default="56s", help="per study; with start-up below 60 s")
    parser.add_argument("--mpicxx", default="mpicxx", help="of the first MPI that `seatrial list` shows")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()

    machine = live_machine()
    origin = provenance(machine, ready(machine, "cpu.peak", cores="one"))
    trials = recorded(options.output)
    with tempfile.TemporaryDirectory() as where:
        planted = Planted(Path(where), options.mpicxx)
        while True:
            document = {
                "benchmark": "compare_planted",
                "provenance": origin,
                "planted": options.percent / 100.0,
                "margin": options.margin / 100.0,
                "budget": options.budget,
                "tries_wanted": options.tries,
                "tries_made": len(trials),
                "counts": counted(trials),
                "by_kind": {kind: counted([t for t in trials if t["kind"] == kind]) for kind in KINDS},
                "longest_s": max((t["elapsed_s"] for t in trials), default=None),
                "trials": trials,
            }
            keep(options.output, document)
            if len(trials) >= options.tries:
                break
            kind = KINDS[len(trials) % len(KINDS)]
            study = planted.study(kind, options.percent / 100.0)
            study["compare"]["margin"] = options.margin / 100.0
            study |= {
                "study": "planted",
                "question": "Is the second program slower?",
                "repeat": {"budget": options.budget},
            }
            trial = run_comparison(kind, study)
            trials.append(trial.document())
            print(f"{len(trials)}/{options.tries} {kind}: {trial.verdict} {trial.ratio:.4f} {trial.interval} "
                  f"{trial.blocks} blocks, {trial.stopped}, {trial.elapsed_s:.1f} s", flush=True)  # fmt: skip
    print(f"counts of {len(trials)} tries at {options.percent:g} %: {counted(trials)}")


def built(source: Path, text: str, compiler: str, *flags: str) -> Path:
    """Compile a program or a library."""
    source.write_text(text, encoding="utf-8")
    subprocess.run([compiler, "-O2", *flags, "-o", str(source.with_suffix("")), str(source)], check=True)
    return source.with_suffix("")


def rate(program: Path) -> float:
    """Steps per second, best of a few short runs."""
    steps = 100_000_000
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([str(program), str(steps)], check=True)
        times.append(time.perf_counter() - start)
    return steps / min(times)


if __name__ == "__main__":
    main()
