"""`seatrial run --versus` beside hyperfine, on the same pairs of programs: times, ratios, and the cost of a run.

The second program of a pair takes 3 % longer than the first; in the pair "empty", both do nothing. The programs are
static, to exclude the loader. hyperfine runs without a shell (-N). Rounds alternate between both tools.

python bench/versus.py --hyperfine PATH [--pair NAME] [--rounds N] [-o docs/results/versus.json]

Pairs that were measured before stay in the output.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from common import live_machine, output_of, provenance, ready, today, write

import seatrial
from seatrial.engine.listener import Progress
from seatrial.model.results.sample import Outcome
from seatrial.plan.points import Point
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder

EMPTY = "int main(void) { return 0; }"
SPIN = """
#include <time.h>
int main(void) {
  struct timespec start, now;
  clock_gettime(CLOCK_MONOTONIC, &start);
  do clock_gettime(CLOCK_MONOTONIC, &now);
  while ((now.tv_sec - start.tv_sec) * 1000000000LL + now.tv_nsec - start.tv_nsec < NANOSECONDS);
  return 0;
}"""
SLOWER = 1.03
PAIRS = {"empty": (0.0, 0.0), "10 ms": (0.010, 0.010 * SLOWER), "100 ms": (0.100, 0.100 * SLOWER)}
SIDES = ("baseline", "candidate")


@dataclass(slots=True)
class Found:
    """What one tool found of a pair in one round: the times of all runs of each side in seconds, the time from the
    first start to the last end, and the ratio of the sides with its interval, if the tool gives one. hyperfine prints
    the ratio of means; that of medians is compared, since means follow single slow runs."""

    times_s: Mapping[str, Sequence[float]]
    elapsed_s: float
    ratio: float
    interval: tuple[float, float] | None = None
    verdict: str = ""
    ratio_of_means: float | None = None

    def cost_s(self) -> float:
        """The time that a run takes beside the program."""
        every = [time_s for times_s in self.times_s.values() for time_s in times_s]
        return (self.elapsed_s - sum(every)) / len(every)


@dataclass(slots=True)
class Clock(seatrial.Listener):
    """Takes the time from the first start of a repeat to the last end."""

    starts: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)

    def repeat_starts(self, point: Point, repeat: int, progress: Progress) -> None:
        """Note the time."""
        self.starts.append(time.perf_counter())

    def repeat_done(self, point: Point, outcome: Outcome) -> None:
        """Note the time."""
        self.ends.append(time.perf_counter())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hyperfine", type=Path, required=True)
    parser.add_argument("--pair", choices=PAIRS, action="append")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=30.0, help="seconds of one comparison by seatrial")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()

    machine = live_machine()
    origin = provenance(machine, ready(machine, "command"))
    rival = str(options.hyperfine)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as where:
        for name in options.pair or PAIRS:
            programs = [compiled(Path(where), name, side, PAIRS[name][side]) for side in range(2)]
            rounds = [
                (by_seatrial(programs, options.budget), by_hyperfine(rival, programs, Path(where) / "out.json"))
                for _ in range(options.rounds)
            ]
            found[name] = summary(rounds)
    kept = json.loads(options.output.read_text())["pairs"] if options.output and options.output.exists() else {}
    write(
        "versus",
        {
            "provenance": origin,
            "hyperfine": output_of([rival, "--version"]).strip(),
            "planted_ratio": SLOWER,
            "pairs": {**kept, **found},
        },
        options.output,
    )


def compiled(folder: Path, name: str, side: int, spin_s: float) -> str:
    """Compile a side of a pair."""
    source = SPIN.replace("NANOSECONDS", f"{round(spin_s * 1e9)}LL") if spin_s else EMPTY
    path = folder / f"{name.replace(' ', '-')}-{SIDES[side]}"
    path.with_suffix(".c").write_text(source, encoding="utf-8")
    subprocess.run(["cc", "-O2", "-static", str(path.with_suffix(".c")), "-o", str(path)], check=True)
    return str(path)


def by_seatrial(programs: Sequence[str], budget_s: float) -> Found:
    """One comparison."""
    clock = Clock()
    with tempfile.TemporaryDirectory() as where:
        done = seatrial.versus(*[(program,) for program in programs], results=where, budget_s=budget_s, progress=clock)
        records = read_contents(ResultsFolder.existing(Path(where))).records
        walls = [
            [sample.elapsed_s for record in records[one.id] for sample in record.samples if sample.series == "wall"]
            for one in done.experiments
        ]
    times_s = dict(zip(SIDES, walls, strict=True))
    compared = () if done.study is None else done.study.compared
    (wall,) = [one for each in compared for one in each.comparisons if one.figure == "wall"]
    return Found(times_s, clock.ends[-1] - clock.starts[0], wall.ratio, wall.ci95_family, wall.verdict.value)


def by_hyperfine(rival: str, programs: Sequence[str], output: Path) -> Found:
    """One comparison, with the number of runs that it chooses itself."""
    start = time.perf_counter()
    output_of([rival, "-N", "--style", "none", "--export-json", str(output), *programs])
    elapsed_s = time.perf_counter() - start
    results = json.loads(output.read_bytes())["results"]
    times_s = {side: result["times"] for side, result in zip(SIDES, results, strict=True)}
    of_means, of_medians = (results[1][which] / results[0][which] for which in ("mean", "median"))
    return Found(times_s, elapsed_s, of_medians, ratio_of_means=of_means)


def summary(rounds: Sequence[tuple[Found, Found]]) -> dict[str, Any]:
    """Medians over the rounds, and every round."""
    ours, theirs = [[one[tool] for one in rounds] for tool in range(2)]
    excess_s = [
        median(mine.times_s[side]) - median(its.times_s[side])
        for mine, its in zip(ours, theirs, strict=True)
        for side in SIDES
    ]
    return {
        "rounds": len(rounds),
        "date": today(),
        "load_after": os.getloadavg()[0],
        "excess_over_hyperfine_s": {"median": median(excess_s), "all": excess_s},
        "cost_per_run_s": {
            "seatrial": middle(one.cost_s() for one in ours),
            "hyperfine": middle(one.cost_s() for one in theirs),
        },
        "ratios_of_hyperfine_in_our_interval": sum(
            mine.interval is not None and mine.interval[0] <= its.ratio <= mine.interval[1]
            for mine, its in zip(ours, theirs, strict=True)
        ),
        "seatrial": [described(one) for one in ours],
        "hyperfine": [described(one) for one in theirs],
    }


def middle(values: Iterable[float]) -> float:
    """The median."""
    return median(list(values))


def described(one: Found) -> dict[str, Any]:
    """One round of one tool."""
    return {
        "runs": {side: len(times_s) for side, times_s in one.times_s.items()},
        "median_s": {side: median(times_s) for side, times_s in one.times_s.items()},
        "elapsed_s": one.elapsed_s,
        "ratio": one.ratio,
        "ratio_of_means": one.ratio_of_means,
        "interval": one.interval,
        "verdict": one.verdict,
    }


if __name__ == "__main__":
    main()
