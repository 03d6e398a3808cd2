"""How often comparisons are right: simulated blocks with several kinds of noise, judged by the rule that studies use.

python bench/compare_simulation.py [--trials 1000] [-o docs/results/compare_simulation.json]

Noise is added to logarithms; its size is the standard deviation of one repeat (heavy tails: the scale of Student's t
with 2.5 degrees of freedom). Nothing is measured on the machine, so the result depends only on the seed.
"""

from __future__ import annotations

import argparse
import math
import platform
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from common import _commit, write

from seatrial import __version__
from seatrial.model.comparison import Verdict
from seatrial.stats.interval import median_interval
from seatrial.stats.ranks import critical, mann_whitney_tail
from seatrial.stats.ratio import RatioInterval, independent_ratio, paired_ratio
from seatrial.stats.sequential import ALPHA, LOOK_ALPHA, LOOKS, Replay, end_alpha, least_blocks, replay

MARGIN = 0.02
LEVELS = math.log(2.5)  # as far apart as a ping-pong on two pairs of cores

Pairs = list[tuple[float, float]]
Interval = tuple[float, float]


# --- noise: an endless sequence of logarithms in order of time, `period` per block


def normal(source: random.Random, sd: float, period: int) -> Iterator[float]:
    """Independent and normal."""
    while True:
        yield source.gauss(0.0, sd)


def heavy(source: random.Random, sd: float, period: int) -> Iterator[float]:
    """Student's t with 2.5 degrees of freedom: no fourth moment, and occasional outliers of 20 scales."""
    while True:
        yield sd * source.gauss(0.0, 1.0) / math.sqrt(source.gammavariate(1.25, 0.8))


def late(source: random.Random, sd: float, period: int) -> Iterator[float]:
    """Exponential: disturbances can only make a program slower."""
    while True:
        yield sd * source.expovariate(1.0)


def two_levels(source: random.Random, sd: float, period: int) -> Iterator[float]:
    """Each process is on one of two levels at random."""
    while True:
        yield LEVELS * source.randrange(2) + source.gauss(0.0, sd)


def episodes(source: random.Random, sd: float, period: int) -> Iterator[float]:
    """Two levels, each held for 20 repeats on average."""
    level = 0
    while True:
        level ^= source.random() < 0.05
        yield LEVELS * level + source.gauss(0.0, sd)


def drift(source: random.Random, sd: float, period: int) -> Iterator[float]:
    """1 % slower with every block, with occasional steps of up to 20 %."""
    level = 0.0
    while True:
        level += 0.01 / period
        if source.random() < 0.02:
            level += source.uniform(-0.2, 0.2)
        yield level + source.gauss(0.0, sd)


def autocorrelated(source: random.Random, sd: float, period: int) -> Iterator[float]:
    """AR(1): 0.9 of the previous repeat plus 0.44 of new noise."""
    value = source.gauss(0.0, sd)
    while True:
        yield value
        value = 0.9 * value + math.sqrt(1.0 - 0.81) * source.gauss(0.0, sd)


Noise = Callable[[random.Random, float, int], Iterator[float]]
KINDS: tuple[Noise, ...] = (normal, heavy, late, two_levels, episodes, drift, autocorrelated)


def blocks(kind: Noise, source: random.Random, sd: float, n: int, candidates: int, ratio: float) -> list[Pairs]:
    """For each candidate, n blocks in random order; it takes `ratio` times as long as the shared baseline."""
    noise = kind(source, sd, candidates + 1)
    found: list[Pairs] = [[] for _ in range(candidates)]
    for _ in range(n):
        times = [math.exp(next(noise)) for _ in range(candidates + 1)]
        source.shuffle(times)
        for pairs, value in zip(found, times[1:], strict=True):
            pairs.append((times[0], value * ratio))
    return found


# --- the studies


def judged(pairs: Pairs, margin: float = MARGIN, family: int = 1) -> Replay:
    """The verdict on pairs of times."""
    return replay(pairs, margin, higher_is_better=False, family=family)


def false_alarms(trials: int, source: random.Random, margin: float, sd: float = 0.02) -> dict[str, Any]:
    """How often any member of a family of identical programs is called different, with up to 40 blocks."""
    found: dict[str, Any] = {}
    for kind in KINDS:
        for family in (1, 3, 10):
            alarms = 0
            for _ in range(trials):
                members = blocks(kind, source, sd, 40, family, 1.0)
                alarms += any(judged(p, margin, family).verdict in (Verdict.FASTER, Verdict.SLOWER) for p in members)
            found.setdefault(kind.__name__, {})[str(family)] = alarms / trials
    return found


def verdicts(trials: int, source: random.Random, ratio: float) -> list[dict[str, Any]]:
    """Shares of the verdicts and mean number of blocks, by kind of noise and maximum number of blocks."""
    found = []
    for kind in KINDS:
        for sd in (0.01, 0.02, 0.03, 0.04):
            for n in (15, 28, 60):
                answers = [judged(blocks(kind, source, sd, n, 1, ratio)[0]) for _ in range(trials)]
                count = Counter(answer.verdict for answer in answers)
                shares = {verdict.value: count[verdict] / trials for verdict in Verdict}
                mean_blocks = sum(answer.blocks for answer in answers) / trials
                found.append(
                    {"noise": kind.__name__, "sd": sd, "blocks": n, **shares, "mean_blocks": round(mean_blocks, 1)}
                )
    return found


def wrong_way(trials: int, source: random.Random) -> dict[str, Any]:
    """How often a program that is 2 % slower is called faster, at 1, 2 and 4 % noise."""
    found: dict[str, Any] = {}
    for kind in KINDS:
        for n in (15, 28, 60):
            wrong = 0
            for trial in range(trials):
                sd = (0.01, 0.02, 0.04)[trial % 3]
                wrong += judged(blocks(kind, source, sd, n, 1, 1.02)[0]).verdict is Verdict.FASTER
            found.setdefault(kind.__name__, {})[str(n)] = {"tries": trials, "called_faster": wrong}
    return found


def alternatives(trials: int, source: random.Random) -> list[dict[str, Any]]:
    """Plain 95 % intervals of the same 20 blocks: how often each contains the true ratio, and its width."""
    found = []
    for kind in KINDS:
        for name, interval in METHODS.items():
            held = slower = 0
            widths = []
            for _ in range(trials):
                pairs = blocks(kind, source, 0.02, 20, 1, 1.05)[0]
                low, high = interval(pairs)
                held += low <= 1.05 <= high
                slower += low > 1.0 + MARGIN
                widths.append(math.log(high / low))
            found.append(
                {
                    "noise": kind.__name__,
                    "method": name,
                    "coverage": held / trials,
                    "found_5_percent": slower / trials,
                    "median_width": round(median(widths), 4),
                }
            )
    return found


def unlike_spread(trials: int, source: random.Random) -> list[dict[str, Any]]:
    """Identical programs measured separately, with equal noise or four times as much on one side: how often the 95 %
    interval misses the ratio 1, and its width; compared with the plain Mann-Whitney interval."""
    found = []
    for few, many in ((6, 6), (10, 10), (40, 40), (10, 40), (6, 60)):
        for noise in ((0.02, 0.02), (0.04, 0.01), (0.01, 0.04)):
            sides = [
                [[math.exp(source.gauss(0.0, sd)) for _ in range(n)] for n, sd in zip((few, many), noise, strict=True)]
                for _ in range(trials)
            ]
            for name, interval in (("seatrial", apart), ("Mann-Whitney", mann_whitney)):
                bounds = [interval(first, second) for first, second in sides]
                missed = sum(not low <= 1.0 <= high for low, high in bounds)
                found.append(
                    {
                        "n": [few, many],
                        "noise": noise,
                        "method": name,
                        "missed": missed / trials,
                        "median_width": round(median(math.log(high / low) for low, high in bounds), 4),
                    }
                )
    return found


# --- alternative methods on the same blocks


def signed_rank(pairs: Pairs) -> Interval:
    """The method of seatrial."""
    return _bounds(paired_ratio(pairs, ALPHA))


def sign_test(pairs: Pairs) -> Interval:
    """The interval of the median ratio."""
    found = median_interval([candidate / baseline for baseline, candidate in pairs])
    return found if found is not None else (0.0, math.inf)


def student_t(pairs: Pairs) -> Interval:
    """Mean of the logarithms, assumed to be normal."""
    logs = [math.log(candidate / baseline) for baseline, candidate in pairs]
    n = len(logs)
    mean = sum(logs) / n
    error = math.sqrt(sum((value - mean) ** 2 for value in logs) / (n - 1) / n)
    half = _t_quantile(1.0 - ALPHA / 2.0, n - 1) * error
    return math.exp(mean - half), math.exp(mean + half)


def unpaired(pairs: Pairs) -> Interval:
    """The same repeats, as if measured separately."""
    return apart([pair[0] for pair in pairs], [pair[1] for pair in pairs])


def apart(baseline: Sequence[float], candidate: Sequence[float]) -> Interval:
    """The method of seatrial for sides measured separately."""
    return _bounds(independent_ratio(baseline, candidate, ALPHA))


def mann_whitney(baseline: Sequence[float], candidate: Sequence[float]) -> Interval:
    """The plain Mann-Whitney interval."""
    n, m = len(baseline), len(candidate)
    most = critical(lambda u: mann_whitney_tail(n, m, u), n * m // 2, ALPHA)
    ratios = sorted(y / x for x in baseline for y in candidate)
    return (ratios[most], ratios[-1 - most]) if most is not None else (0.0, math.inf)


METHODS: dict[str, Callable[[Pairs], Interval]] = {
    "signed-rank": signed_rank,
    "sign test": sign_test,
    "t of logarithms": student_t,
    "unpaired": unpaired,
}


def _bounds(found: RatioInterval) -> Interval:
    return (0.0, math.inf) if found.low is None or found.high is None else (found.low, found.high)


_QUANTILES: dict[tuple[float, int], float] = {}


def _t_quantile(p: float, degrees: int) -> float:
    """Quantile of Student's t, by Simpson's rule on its density and bisection."""
    if (p, degrees) not in _QUANTILES:
        scale = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(degrees * math.pi)
        low, high = 0.0, 20.0
        for _ in range(40):
            end = (low + high) / 2.0
            x = [end * k / 400 for k in range(401)]
            y = [scale * (1.0 + v * v / degrees) ** (-(degrees + 1) / 2) for v in x]
            area = (y[0] + y[-1] + 4.0 * sum(y[1:-1:2]) + 2.0 * sum(y[2:-1:2])) * end / 1200
            low, high = (end, high) if 0.5 + area < p else (low, end)
        _QUANTILES[p, degrees] = low
    return _QUANTILES[p, degrees]


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args(arguments)

    source = random.Random(options.seed)
    start = time.perf_counter()
    document = {
        "provenance": {
            "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "seatrial": __version__,
            "commit": _commit(),
            "python": platform.python_version(),
            "seed": options.seed,
            "trials": options.trials,
        },
        "rule": {
            "margin": MARGIN,
            "looks": LOOKS,
            "look_alpha": LOOK_ALPHA,
            "end_alpha": [round(end_alpha(1), 6), round(end_alpha(2), 6)],
            "least_blocks": {str(family): least_blocks(family) for family in (1, 2, 3, 5, 10, 30, 100)},
        },
        "false_alarms_at_margin_0": false_alarms(options.trials, source, 0.0),
        "false_alarms_at_margin_2_percent": false_alarms(options.trials, source, MARGIN),
        "identical": verdicts(options.trials, source, 1.0),
        "slower_by_5_percent": verdicts(options.trials, source, 1.05),
        "slower_by_2_percent_called_faster": wrong_way(3 * options.trials, source),
        "alternatives": alternatives(options.trials, source),
        "unlike_spread_apart": unlike_spread(options.trials, source),
    }
    document["provenance"]["took_s"] = round(time.perf_counter() - start, 1)
    write("compare_simulation", document, options.output)


if __name__ == "__main__":
    main()
