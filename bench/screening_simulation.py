"""How often a screen of simulated nodes names one that is not odd, and how often it finds one that is.

python bench/screening_simulation.py [--trials 100] [--nodes 4 8 64 400 1000 10000] [--spreads NAME ...] [-o FILE.json]

A fleet has eight figures, each with a spread of its own kind: equal nodes, normal 1 %, t with 5, 3 and 2 degrees of
freedom, an exponential one of 1 % on one side, a lognormal one, one with a Pareto tail (power 3) on one side, two
models of nodes 20 % apart. Up to 400 nodes have six repeats
with 1 % noise, larger fleets one value per node. Of a clean fleet it counts whether any node is named in any figure,
and whether one is whose true level is within the margin of the median. In a planted fleet one of 500 nodes, at least
one, is slower than it would be. Nothing is measured; the results depend on the seed only.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from common import today, write

from seatrial import __version__
from seatrial.analysis.screening.nodes import Share, screen_figure
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.study.screen import FALSE_ALARM_RATE, MARGIN, Item, ItemFigure, OddKind

FIGURES = 8
REPEATS = 6
NOISE = 0.01
SLOW = (0.9, 0.8, 0.5)

Logs = npt.NDArray[np.float64]
Spread = Callable[[np.random.Generator, int], Logs]

SPREADS: dict[str, Spread] = {
    "equal": lambda source, n: np.zeros(n),
    "normal 1 %": lambda source, n: source.normal(0.0, 0.01, n),
    "t with 3 degrees, 1 %": lambda source, n: 0.01 * source.standard_t(3, n),
    "t with 5 degrees, 1 %": lambda source, n: 0.01 * source.standard_t(5, n),
    "t with 2 degrees, 1 %": lambda source, n: 0.01 * source.standard_t(2, n),
    "exponential 1 %": lambda source, n: 0.01 * source.exponential(1.0, n),
    "lognormal": lambda source, n: np.log1p(0.02 * np.exp(source.normal(0.0, 1.0, n))),
    "Pareto 1 %": lambda source, n: 0.01 * source.pareto(3.0, n),
    "two models, 20 % apart": lambda source, n: source.normal(0.0, 0.01, n) + 0.2 * (source.random(n) < 0.5),
}


def figure(source: np.random.Generator, logs: Logs) -> ItemFigure:
    """Nodes at these levels, measured."""
    n = len(logs)
    repeats = REPEATS if n <= 400 else 1
    noise = NOISE if repeats > 1 else 0.0
    values = np.exp(logs[:, None] + source.normal(0.0, noise, (n, repeats)))
    items = tuple(Item(f"n{k}") for k in range(n))
    return ItemFigure("b", "f", "B/s", Better.HIGHER, items, tuple(values.tolist()))


def named(source: np.random.Generator, logs: Logs) -> set[int]:
    """The nodes that a screen of eight figures names in one of them."""
    share = Share(FALSE_ALARM_RATE / FIGURES, MARGIN)
    odd, _, _ = screen_figure(figure(source, logs), {}, share, lambda item: (OddKind.NODE, item.name, ""))
    return {int(one.what[1:]) for one in odd}


def clean(source: np.random.Generator, spread: Spread, n: int) -> tuple[bool, bool]:
    """Whether any node is named in any figure, and whether one is that is within the margin of the median."""
    is_named = is_wrong = False
    for _ in range(FIGURES):
        logs = spread(source, n)
        away = np.abs(logs - np.median(logs))
        found = named(source, logs)
        is_named |= bool(found)
        is_wrong |= any(away[k] <= math.log1p(MARGIN) for k in found)
    return is_named, is_wrong


def row(name: str, n: int, trials: int, seed: int) -> dict[str, Any]:
    """Numbers of clean fleets in which a node was named, and shares of slow nodes that were found."""
    spread = SPREADS[name]
    source = np.random.default_rng(seed)
    start = time.perf_counter()
    fleets = [clean(source, spread, n) for _ in range(trials)]
    screen_s = (time.perf_counter() - start) / trials
    found = {}
    planted = max(1, n // 500)
    figures = max(1, trials // 5 if n >= 1000 else trials)
    for slow in SLOW:
        hits = 0
        for _ in range(figures):
            logs = spread(source, n)
            logs[:planted] += math.log(slow)
            hits += len(named(source, logs) & set(range(planted)))
        found[f"found_at_{slow:g}"] = round(hits / planted / figures, 3)
    counts = {
        "fleets_with_a_name": sum(is_named for is_named, _ in fleets),
        "fleets_with_a_name_within_the_margin": sum(is_wrong for _, is_wrong in fleets),
    }
    return {"nodes": n, "spread": name, "fleets": trials, **counts, **found, "screen_s": round(screen_s, 3)}


def main() -> None:
    """Print and write one row for each kind of fleet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--nodes", type=int, nargs="+", default=[4, 8, 64, 400, 1000, 10_000])
    parser.add_argument("--spreads", nargs="+", choices=list(SPREADS), default=list(SPREADS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", dest="output", type=Path)
    options = parser.parse_args()
    rows = [row(name, n, options.trials, options.seed) for n in options.nodes for name in options.spreads]
    stated = {"stated_rate": FALSE_ALARM_RATE, "margin": MARGIN, "figures": FIGURES, "seed": options.seed}
    write(
        "screening_simulation",
        {"date": today(), "seatrial": __version__, **stated, "rows": rows},
        options.output,
    )


if __name__ == "__main__":
    main()
