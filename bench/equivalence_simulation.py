"""How often `equivalent` is right: simulated measurements of sides that differ by a known ratio, judged by seatrial.

python bench/equivalence_simulation.py [--trials 1000] [--processes 2] [--noise NAME...]
    [-o docs/results/equivalence_simulation.json]

The verdict on blocks with the noise of bench/compare_simulation.py, through all looks and the end, for a margin of 2 %:
a ratio on the margin or beyond must be called equivalent in at most 5 % (any of a family of five counts), and equal
sides should be. Nothing is measured on the machine, so the results depend only on the seed. Shares are between 0 and 1.
With --noise, the rows of the other kinds of noise in the output file are kept: the table can be made in parts.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import simulated_noise
from common import _commit, write
from compare_simulation import Pairs, blocks
from simulated_noise import KINDS

from seatrial import __version__
from seatrial.model.study.comparison import Verdict
from seatrial.stats.sequential import ALPHA, LOOKS, replay_curve

MARGIN = 0.02
RATIOS = (1.0, 1.005, 1.0 + MARGIN, 1.03)
BLOCKS = (6, 12, 24, 40)
FAMILY = 5
NAMES = [kind.__name__ for kind in KINDS]
OF_FAMILIES = ("normal", "two_levels")
CLEARLY = 3.0
"""Standard errors of a share by which it must exceed 5 % before the script calls the rule wrong."""


def verdicts(kind: str, seed: int, trials: int) -> list[dict[str, Any]]:
    """How often each verdict is given, by ratio and number of blocks. Each trial is one set of blocks."""
    source, noise = random.Random(f"{seed} {kind}"), getattr(simulated_noise, kind)
    counts: dict[tuple[float, int], Counter[Verdict]] = {(ratio, n): Counter() for ratio in RATIOS for n in BLOCKS}
    for _ in range(trials):
        made = blocks(noise, source, BLOCKS[-1])
        for ratio, n in counts:
            counts[ratio, n][_verdict(made[:n], ratio, 1)] += 1
    return [
        {"noise": kind, "ratio": ratio, "blocks": n, **{one.value: counted[one] / trials for one in Verdict}}
        for (ratio, n), counted in counts.items()
    ]


def family(kind: str, seed: int, trials: int) -> list[dict[str, Any]]:
    """Five candidates that all differ by the margin: how often any is called equivalent, with 40 blocks of each."""
    source, noise = random.Random(f"family {seed} {kind}"), getattr(simulated_noise, kind)
    any_wrong = sum(
        any(
            _verdict(blocks(noise, source, BLOCKS[-1]), 1.0 + MARGIN, FAMILY) is Verdict.EQUIVALENT
            for _ in range(FAMILY)
        )
        for _ in range(trials)
    )
    return [{"noise": kind, "family": FAMILY, "any_equivalent_at_the_margin": any_wrong / trials}]


def _verdict(pairs: Pairs, ratio: float, size: int) -> Verdict:
    shown = [(baseline, candidate * ratio) for baseline, candidate in pairs]
    return replay_curve([shown], MARGIN, False, size, equivalence=True)[0].verdict


def _known(
    output: Path | None, seed: int, trials: int, noise: Sequence[str]
) -> tuple[dict[str, list[dict[str, Any]]], float]:
    """The tables of earlier calls with the same seed and trials, without the rows of these kinds of noise, and how long
    these calls took, in seconds."""
    if output is None or not output.exists():
        return {}, 0.0
    document = json.loads(output.read_text(encoding="utf-8"))
    made = document["provenance"]
    if (made["seed"], made["trials"]) != (seed, trials):
        raise SystemExit(f"{output} is of {made['trials']} trials from seed {made['seed']}: give another -o")
    kept = {
        table: [row for row in document.get(table, ()) if row["noise"] not in noise] for table in ("verdicts", "family")
    }
    return kept, float(made["took_s"])


def _make(task: tuple[str, str, int, int]) -> tuple[str, list[dict[str, Any]]]:
    table, kind, seed, trials = task
    return table, {"verdicts": verdicts, "family": family}[table](kind, seed, trials)


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate and print; 1 if the rule is wrong clearly more often than it says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=21)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--noise", nargs="+", choices=NAMES, default=NAMES, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args(arguments)

    start = time.perf_counter()
    few = max(1, options.trials // FAMILY)
    tasks = [("verdicts", kind, options.seed, options.trials) for kind in options.noise]
    tasks += [("family", kind, options.seed, few) for kind in OF_FAMILIES if kind in options.noise]
    tables, took_s = _known(options.output, options.seed, options.trials, options.noise)
    with ProcessPoolExecutor(options.processes) as pool:
        for table, rows in pool.map(_make, tasks):
            tables.setdefault(table, []).extend(rows)
    document = {
        "provenance": {
            "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "seatrial": __version__,
            "commit": _commit(),
            "python": platform.python_version(),
            "seed": options.seed,
            "trials": options.trials,
            "took_s": round(took_s + time.perf_counter() - start, 1),
        },
        "rule": {"margin": MARGIN, "looks": LOOKS, "error_of_each_side": ALPHA},
        **{table: sorted(rows, key=lambda row: NAMES.index(row["noise"])) for table, rows in tables.items()},
    }
    write("equivalence_simulation", document, options.output)
    return _judge(tables, options.trials)


def _judge(tables: dict[str, list[dict[str, Any]]], trials: int) -> int:
    """Print the rows that are wrong clearly more often than in 5 %; 1 if there are any."""
    wrong = 0
    for row in [*tables.get("verdicts", ()), *tables.get("family", ())]:
        share = row.get("any_equivalent_at_the_margin", row.get("equivalent"))
        n = max(1, trials // FAMILY) if "family" in row else trials
        beyond = "family" in row or row["ratio"] >= 1.0 + MARGIN
        if beyond and share > ALPHA + CLEARLY * (ALPHA * (1.0 - ALPHA) / n) ** 0.5:
            print(f"equivalent too often: {row}")
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
