"""How often a screen of simulated nodes names one that is not odd, and how often it finds one that is.

python bench/screening_simulation.py [--trials 100] [--nodes 4 8 40 400 10000] [-o FILE.json]

A clean fleet has eight figures, each with a spread of its own kind: equal nodes, normal 1 %, t with 3 degrees of
freedom, an exponential one of 1 % on one side, a lognormal one, two models of nodes 20 % apart. Up to 400 nodes have
six repeats with 1 % noise, larger fleets one value per node. In a planted fleet one of 500 nodes, at least one, is
slower. Nothing is measured; the results depend on the seed only.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from common import today, write

from seatrial import __version__
from seatrial.analysis.screening.nodes import Share, screen_figure
from seatrial.model.benchmark import Better
from seatrial.model.screen import FALSE_ALARM_RATE, MARGIN, Item, ItemFigure, OddKind

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
    "exponential 1 %": lambda source, n: 0.01 * source.exponential(1.0, n),
    "lognormal": lambda source, n: np.log1p(0.02 * np.exp(source.normal(0.0, 1.0, n))),
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


def named(source: np.random.Generator, logs: Logs) -> set[str]:
    """The nodes that a screen of eight figures names in one of them."""
    share = Share(FALSE_ALARM_RATE / FIGURES, MARGIN)
    odd, _, _ = screen_figure(figure(source, logs), {}, share, lambda item: (OddKind.NODE, item.name, ""))
    return {one.what for one in odd}


def _any_named(source: np.random.Generator, spread: Spread, n: int) -> bool:
    """Whether any node of a clean fleet is named in any figure; all figures are drawn, so trials stay comparable."""
    return bool(set().union(*(named(source, spread(source, n)) for _ in range(FIGURES))))


def row(name: str, n: int, trials: int, seed: int) -> dict[str, Any]:
    """Shares of fleets in which any clean node was named, and of slow nodes that were found."""
    spread = SPREADS[name]
    source = np.random.default_rng(seed)
    start = time.perf_counter()
    alarms = sum(_any_named(source, spread, n) for _ in range(trials))
    screen_s = (time.perf_counter() - start) / trials
    found = {}
    planted = max(1, n // 500)
    for slow in SLOW:
        hits = 0
        for _ in range(max(1, trials // 5)):
            logs = spread(source, n)
            logs[:planted] = np.median(logs) + np.log(slow) + source.normal(0.0, 0.003, planted)
            hits += len(named(source, logs) & {f"n{k}" for k in range(planted)})
        found[f"found_at_{slow:g}"] = hits / planted / max(1, trials // 5)
    result = {"nodes": n, "spread": name, "fleets": trials, "fleets_with_a_false_name": alarms, **found}
    return {**result, "screen_s": round(screen_s, 3)}


def main() -> None:
    """Print and write one row for each kind of fleet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--nodes", type=int, nargs="+", default=[4, 8, 40, 400, 10_000])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", dest="output", type=Path)
    options = parser.parse_args()
    rows = [row(name, n, options.trials, options.seed) for n in options.nodes for name in SPREADS]
    stated = {"stated_rate": FALSE_ALARM_RATE, "margin": MARGIN, "figures": FIGURES, "seed": options.seed}
    write(
        "screening_simulation",
        {"date": today(), "seatrial": __version__, **stated, "rows": rows},
        options.output,
    )


if __name__ == "__main__":
    main()
