"""Plants a slowdown: how often is it found, and is it ever called faster?

The program runs a chain of dependent integer multiplications that takes 0.5, 1 or 2 s; the slowed version runs a
given percentage more of them. Each try is a study of at most 60 s with the benchmark `command`. The script resumes:
it adds to its record until the count is reached.

python bench/compare_planted.py [--percent 5] [--tries 50] [-o docs/results/compare_planted_5.json]
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from pathlib import Path

from common import live_machine, provenance, ready
from comparing import counted, keep, recorded, run_comparison

SOURCE = """
#include <cstdint>
#include <cstdlib>
int main(int, char** argv) {
  std::uint64_t x = 1;
  for (std::uint64_t n = std::strtoull(argv[1], nullptr, 10); n != 0; --n)
    x = x * 6364136223846793005u + n;
  return x == 0;
}
"""
SECONDS = (0.5, 1.0, 2.0)


def main() -> None:
    """Run the missing tries, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--percent", type=float, default=5.0)
    parser.add_argument("--tries", type=int, default=50)
    parser.add_argument("--budget", default="58s", help="per study; with start-up below 60 s")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()

    machine = live_machine()
    origin = provenance(machine, ready(machine, "cpu.peak", cores="one"))
    trials = recorded(options.output)
    with tempfile.TemporaryDirectory() as where:
        program = built(Path(where))
        per_s = rate(program)
        while True:
            document = {
                "benchmark": "compare_planted",
                "provenance": origin,
                "planted": options.percent / 100.0,
                "budget": options.budget,
                "tries_wanted": options.tries,
                "tries_made": len(trials),
                "counts": counted(trials),
                "by_kind": {f"{s:g} s": counted([t for t in trials if t["kind"] == f"{s:g} s"]) for s in SECONDS},
                "longest_s": max((t["elapsed_s"] for t in trials), default=None),
                "trials": trials,
            }
            keep(options.output, document)
            if len(trials) >= options.tries:
                break
            seconds = SECONDS[len(trials) % len(SECONDS)]
            number = int(per_s * seconds)
            argv = [[str(program), str(n)] for n in (number, int(number * (1.0 + options.percent / 100.0)))]
            study = {
                "study": "planted",
                "question": "Is the second program slower?",
                "benchmarks": {"command": {}},
                "axes": {"argv": argv},
                "compare": {"along": "argv", "baseline": argv[0], "figures": ["wall"]},
                "repeat": {"budget": options.budget},
            }
            trial = run_comparison(f"{seconds:g} s", study)
            trials.append(trial.document())
            print(f"{len(trials)}/{options.tries} {trial.kind}: {trial.verdict} {trial.ratio:.4f} {trial.interval} "
                  f"{trial.blocks} blocks, {trial.stopped}, {trial.elapsed_s:.1f} s", flush=True)  # fmt: skip
    print(f"counts of {len(trials)} tries at {options.percent:g} %: {counted(trials)}")


def built(folder: Path) -> Path:
    """Compile the program."""
    source, program = folder / "chain.cpp", folder / "chain"
    source.write_text(SOURCE, encoding="utf-8")
    subprocess.run(["g++", "-O2", "-o", str(program), str(source)], check=True)
    return program


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
