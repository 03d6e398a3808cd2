"""False alarms and power of `seatrial history`: how often a series without a change has one, and one with is found.

python bench/history_simulation.py [--trials 2000] [-o docs/results/history_simulation.json]
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from pathlib import Path

from common import today, write

from seatrial.stats.max_t import ALPHA, change_points

LAWS: dict[str, Callable[[random.Random], float]] = {
    "normal, 1 %": lambda rng: rng.gauss(1.0, 0.01),
    "exponential tail": lambda rng: 1.0 + rng.expovariate(100.0),
    "two levels": lambda rng: rng.choice((1.0, 1.05)) + rng.gauss(0.0, 0.001),
    "rounded to 1 %": lambda rng: round(rng.gauss(1.0, 0.01), 2),
}
SESSIONS = (10, 20, 50, 200)


def main() -> None:
    """Simulate, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    rng = random.Random(5)
    alarms = {
        f"{name}, {n} sessions": share(options.trials, [law] * n, rng) for name, law in LAWS.items() for n in SESSIONS
    }
    power = {
        f"{step:.0%} at 1 % noise, {n} sessions": share(options.trials // 4, halves(n, step), rng)
        for n in SESSIONS
        for step in (0.01, 0.02, 0.05)
    }
    document = {"date": today(), "trials": options.trials, "stated": ALPHA, "false_alarms": alarms, "power": power}
    write("history_simulation", document, options.output)


def halves(n: int, step: float) -> list[Callable[[random.Random], float]]:
    """Values with a step in the middle."""
    return [lambda rng, level=level: rng.gauss(level, 0.01) for level in [1.0] * (n // 2) + [1.0 + step] * (n - n // 2)]


def share(trials: int, laws: list[Callable[[random.Random], float]], rng: random.Random) -> float:
    """The share of trials in which a change is named."""
    return sum(bool(change_points([law(rng) for law in laws])) for _ in range(trials)) / trials


if __name__ == "__main__":
    main()
