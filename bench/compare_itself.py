"""Compares programs with themselves: how often is the verdict a difference, and how often `same`?

The programs take turns. One repeat of memory.stream takes longer than the budget where caches are large, so it is not
among them. The script resumes: it adds to its record until the count is reached.

python bench/compare_itself.py [--trials 200] [-o docs/results/compare_itself.json]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from common import live_machine, provenance, ready
from comparing import counted, keep, recorded, run_comparison

KINDS = {
    "cpu.peak fma": ({"cpu.peak": {"cores": "one", "precision": "fp64"}}, "fma"),
    "mpi.latency one_way": ({"mpi.latency": {"size_B": 8}}, "one_way"),
    "cpu.linebounce one_way": ({"cpu.linebounce": {}}, "one_way"),
}


def main() -> None:
    """Run the missing trials, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--budget", default="9200ms", help="per study; with start-up below 10 s")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()

    machine = live_machine()
    origin = provenance(machine, ready(machine, "cpu.peak", cores="one"))
    trials = recorded(options.output)
    while True:
        document = {
            "benchmark": "compare_itself",
            "provenance": origin,
            "budget": options.budget,
            "trials_wanted": options.trials,
            "trials_made": len(trials),
            "counts": counted(trials),
            "by_kind": {kind: counted([t for t in trials if t["kind"] == kind]) for kind in KINDS},
            "longest_s": max((t["elapsed_s"] for t in trials), default=None),
            "trials": trials,
        }
        keep(options.output, document)
        if len(trials) >= options.trials:
            break
        made = [trial["kind"] for trial in trials]
        kind = min(KINDS, key=made.count)
        benchmarks, figure = KINDS[kind]
        study = {
            "study": "itself",
            "question": "Does this program differ from itself?",
            "benchmarks": benchmarks,
            "axes": {"label": ["a", "b"]},
            "compare": {"along": "label", "baseline": "a", "figures": [figure]},
            "repeat": {"budget": options.budget},
        }
        trial = run_comparison(kind, study)
        trials.append(trial.document())
        print(f"{len(trials)}/{options.trials} {kind}: {trial.verdict} {trial.ratio:.4f} {trial.interval} "
              f"{trial.blocks} blocks, {trial.stopped}, {trial.elapsed_s:.1f} s", flush=True)  # fmt: skip
    print(f"counts of {len(trials)} trials: {counted(trials)}")


if __name__ == "__main__":
    main()
