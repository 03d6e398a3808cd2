"""What a submission costs beyond sbatch, and how often the queue is asked.

python bench/submission_cost.py [--jobs 1,10,100] [--rounds 3] [-o FILE.json]

Needs root and what `seatrial cluster` needs: it brings up its own cluster with a real Slurm, whose partition is
down while jobs are submitted, so that no job takes the CPUs. `run --system --detach` submits so many small jobs; a
wrapper of sbatch on PATH notes how long each sbatch takes (with two calls of date(1), which count as ours). The rest
of the time is a fixed part (Python, reading the machine) and a part for each job: the slope from the fewest to the most
jobs. A job is to cost at most 50 ms beyond sbatch. Then some jobs are waited for, and a wrapper of squeue notes when it
is called and for which jobs: one call for all jobs, at most every `poll` of the site file.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import live_machine, provenance, ready, write
from kills import Cluster, cluster_up

GOAL_S = 0.05
POLL_S = 2.0
SITE = "systems:\n  own:\n    batch: slurm\n    poll: {poll:g}s\n    partitions: {{all: {{time_limit: 1min}}}}\n"
DECLARED = """benchmark:
  name: small{number}
  question: How long does it take?
  argv: [sleep, "0.05"]
"""
SBATCH = """#!/bin/sh
start=$(date +%s%N)
/usr/bin/sbatch "$@"
status=$?
echo $(($(date +%s%N) - start)) >>"{log}"
exit $status
"""
SQUEUE = """#!/bin/sh
echo "$(date +%s%N) $*" >>"{log}"
exec /usr/bin/squeue "$@"
"""


def wrapper(folder: Path, name: str, text: str) -> Path:
    """A program that stands for another one on PATH; its log."""
    log, path = folder / f"{name}.log", folder / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text.format(log=log))
    path.chmod(0o755)
    return log


def command(folder: Path, jobs: int, *more: str) -> list[str]:
    """`run --system` of so many benchmarks, one job each."""
    (folder / "site.yaml").write_text(SITE.format(poll=POLL_S))
    targets = []
    for number in range(jobs):
        target = folder / f"small{number}.yaml"
        target.write_text(DECLARED.format(number=number))
        targets.append(str(target))
    site = ["--site", str(folder / "site.yaml"), "--system", "own", "--results", str(folder / "results")]
    path = f"PATH={folder / 'bin'}:{os.environ['PATH']}"
    return ["env", path, sys.executable, "-m", "seatrial", "run", *targets, *site, *more]


def submitted(cluster: Cluster, jobs: int, above: Path) -> dict[str, Any]:
    """How long it takes to submit so many jobs, and how long sbatch took of that."""
    folder = Path(tempfile.mkdtemp(dir=above))
    log = wrapper(folder, "sbatch", SBATCH)
    started = time.perf_counter()
    done = cluster.on("true")
    entered_s = time.perf_counter() - started
    started = time.perf_counter()
    done = cluster.on(*command(folder, jobs, "--detach"))
    took_s = time.perf_counter() - started
    times = [int(line) / 1e9 for line in log.read_text().split()]
    if done.returncode or len(times) != jobs:
        raise SystemExit(f"{len(times)} of {jobs} jobs submitted: {done.stderr.strip()}")
    cluster.on("scancel", "--user=root")
    return {"jobs": jobs, "wall_s": took_s - entered_s, "sbatch_s": sum(times)}


def polled(cluster: Cluster, jobs: int, above: Path) -> dict[str, Any]:
    """The calls of squeue while jobs are waited for: how many, for how many jobs, and the shortest pause."""
    folder = Path(tempfile.mkdtemp(dir=above))
    log = wrapper(folder, "squeue", SQUEUE)
    started = time.perf_counter()
    done = cluster.on(*command(folder, jobs))
    took_s = time.perf_counter() - started
    if done.returncode:
        raise SystemExit(f"{jobs} jobs were not measured: {done.stderr.strip()[-600:]}")
    calls = [line.split(maxsplit=1) for line in log.read_text().splitlines()]
    times = [int(moment) / 1e9 for moment, _ in calls]
    asked = [words.partition("--jobs=")[2].split()[0].count(",") + 1 for _, words in calls]
    pauses = [after - before for before, after in itertools.pairwise(times)]
    return {
        "jobs": jobs,
        "wall_s": round(took_s, 1),
        "poll_s": POLL_S,
        "calls": len(calls),
        "jobs_asked_for": asked,
        "shortest_pause_s": round(min(pauses), 3) if pauses else None,
    }


def main() -> None:
    """Print and write what a job costs beyond sbatch."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", default="1,10,100")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--polled", type=int, default=4, help="jobs that are waited for")
    parser.add_argument("-o", dest="output", type=Path)
    options = parser.parse_args()
    machine = live_machine()
    origin = provenance(machine, ready(machine, "cpu.peak", cores="one", precision="fp64"))
    numbers = [int(word) for word in options.jobs.split(",")]
    rounds: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="seatrial-submission-") as above, cluster_up(2) as cluster:
        cluster.on("scontrol", "update", "partition=all", "state=down")
        for _ in range(options.rounds):
            for number in numbers:
                rounds.append(submitted(cluster, number, Path(above)))
                print(rounds[-1], file=sys.stderr, flush=True)
        cluster.on("scontrol", "update", "partition=all", "state=up")
        polling = polled(cluster, options.polled, Path(above))
    rests = {n: min(row["wall_s"] - row["sbatch_s"] for row in rounds if row["jobs"] == n) for n in numbers}
    fewest, most = min(numbers), max(numbers)
    each_s = (rests[most] - rests[fewest]) / (most - fewest) if most > fewest else rests[most] / most
    document = {
        **origin,
        "goal_s": GOAL_S,
        "each_s": round(each_s, 4),
        "fixed_s": round(rests[fewest] - fewest * each_s, 3),
        "sbatch_each_s": round(min(row["sbatch_s"] / row["jobs"] for row in rounds), 4),
        "is_met": each_s <= GOAL_S,
        "polling": polling,
        "rounds": rounds,
    }
    write("submission_cost", document, options.output)


if __name__ == "__main__":
    main()
