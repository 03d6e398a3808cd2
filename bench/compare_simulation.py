"""How often comparisons are right: simulated measurements with many kinds of noise, judged by the rules of seatrial.

python bench/compare_simulation.py [--trials 2000] [--processes 2] [--tables NAME ...]
    [-o docs/results/compare_simulation.json]

Noise is added to logarithms. Nothing is measured on the machine, so the results depend only on the seed; 2,000 trials
take some minutes on two cores. Each table states what is counted; shares are between 0 and 1.
"""

from __future__ import annotations

import argparse
import math
import platform
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import simulated_noise
from common import _commit, write
from simulated_nodes import measured_again, outliers
from simulated_noise import KINDS, Noise, autoregressive, two_levels, unequal_spread

from seatrial import __version__
from seatrial.model.study.comparison import Verdict
from seatrial.stats.block_test import BlockTest
from seatrial.stats.fits import AMDAHL, law_interval
from seatrial.stats.interval import LEAST_SESSIONS, dependence, median_interval
from seatrial.stats.max_t import adjusted_p
from seatrial.stats.ratio import half_steps, independent_ratio, paired_ratio, verdict
from seatrial.stats.sequential import ALPHA, LOOK_ALPHA, LOOKS, end_alpha, least_blocks, replay_curve

MARGIN = 0.02
DIFFERENT = (Verdict.FASTER, Verdict.SLOWER)
BLOCKS = (6, 12, 24, 40)
RATIOS = (1.0, 1.02, 1.05, 1.1)

Pairs = list[tuple[float, float]]
Interval = tuple[float, float]


def blocks(noise: Noise, source: random.Random, n: int) -> Pairs:
    """N blocks of a program with itself, in random order."""
    logs = noise(source, 2 * n)
    found = []
    for k in range(n):
        first, second = math.exp(logs[2 * k]), math.exp(logs[2 * k + 1])
        found.append((second, first) if noise is not unequal_spread and source.random() < 0.5 else (first, second))
    return found


# --- blocks: the intervals at all looks, once; those of a program that is r times as slow are r times as large


@dataclass(frozen=True)
class Looks:
    """The intervals of the planned looks and of ends at several numbers of blocks, and the plain ones."""

    at: dict[int, Interval]
    ends: dict[int, Interval]
    plain: dict[int, Interval]

    @classmethod
    def of(cls, pairs: Pairs, ratio: Callable[[Pairs, float], Interval]) -> Looks:
        """Of the first blocks of these."""
        return cls(
            {n: ratio(pairs[:n], LOOK_ALPHA) for n in LOOKS},
            {n: ratio(pairs[:n], end_alpha()) for n in BLOCKS},
            {n: ratio(pairs[:n], ALPHA) for n in BLOCKS},
        )

    def verdict(self, blocks: int, ratio: float, margin: float) -> Verdict:
        """That of the first conclusive look, else of the end, of a program that takes `ratio` times as long."""
        for interval in (*(self.at[n] for n in LOOKS if n <= blocks), self.ends[blocks]):
            found = verdict(interval[0] * ratio, interval[1] * ratio, margin, higher_is_better=False)
            if found is not Verdict.AMBIGUOUS:
                return found
        return Verdict.AMBIGUOUS


def chosen(pairs: Pairs, alpha: float) -> Interval:
    """The interval that seatrial uses."""
    found = BlockTest(pairs).ratio(alpha)
    return (0.0, math.inf) if found.low is None or found.high is None else (found.low, found.high)


def signed_ranks(pairs: Pairs, alpha: float) -> Interval:
    """The interval by signed ranks alone."""
    found = paired_ratio(pairs, alpha)
    return (0.0, math.inf) if found.low is None or found.high is None else (found.low, found.high)


def compared(noise: Noise, source: random.Random, trials: int) -> list[dict[str, Any]]:
    """Verdicts on pairs of programs, for each number of blocks and both methods."""
    counts: dict[tuple[str, int], dict[str, float]] = {}
    for _ in range(trials):
        pairs = blocks(noise, source, BLOCKS[-1])
        for name, method in (("chosen", chosen), ("signed ranks", signed_ranks)):
            looks = Looks.of(pairs, method)
            for n in BLOCKS:
                own = counts.setdefault((name, n), {})
                for key, is_true in _outcomes(looks, n).items():
                    own[key] = own.get(key, 0.0) + is_true / trials
    return [
        {"noise": noise.__name__, "method": name, "blocks": n, **{key: round(share, 4) for key, share in own.items()}}
        for (name, n), own in counts.items()
    ]


def _outcomes(looks: Looks, n: int) -> dict[str, bool]:
    same = looks.verdict(n, 1.0, MARGIN)
    low, high = looks.plain[n]
    outcomes = {
        "identical_different_at_margin_0": looks.verdict(n, 1.0, 0.0) in DIFFERENT,
        "identical_different": same in DIFFERENT,
        "identical_same": same is Verdict.SAME,
        "interval_holds": low <= 1.0 <= high,
        "same_at_5_percent": looks.verdict(n, 1.05, MARGIN) is Verdict.SAME,
        "found_5_percent": looks.verdict(n, 1.05, MARGIN) is Verdict.SLOWER,
    }
    for ratio in RATIOS[1:]:
        outcomes[f"found_{ratio - 1:.0%}_at_margin_0"] = looks.verdict(n, ratio, 0.0) is Verdict.SLOWER
    return outcomes


# --- values that were rounded by a timer or to printed digits


def rounded(noise: Noise, source: random.Random, trials: int, n: int, step: float) -> list[dict[str, Any]]:
    """Verdicts on times of 1 to 1 + step that were rounded to this step, at a margin of 2 %; and how often they would
    be `same` if the step were ignored."""
    counts: dict[float, dict[str, float]] = {}
    for _ in range(trials):
        level, pairs = 1.0 + step * source.random(), blocks(noise, source, n)
        for ratio in RATIOS:
            shown = [tuple(step * round(time / step) for time in (level * a, level * ratio * b)) for a, b in pairs]
            steps = [half_steps(step / a, step / b) for a, b in shown]
            (known,) = replay_curve([shown], MARGIN, False, 1, steps=[steps])
            (ignored,) = replay_curve([shown], MARGIN, False, 1)
            outcomes = {
                "same": known.verdict is Verdict.SAME,
                "different": known.verdict in DIFFERENT,
                "interval_holds": (known.plain.low or 0.0) <= ratio <= (known.plain.high or math.inf),
                "same_if_ignored": ignored.verdict is Verdict.SAME,
                "interval_holds_if_ignored": (ignored.plain.low or 0.0) <= ratio <= (ignored.plain.high or math.inf),
            }
            own = counts.setdefault(ratio, {})
            for key, is_true in outcomes.items():
                own[key] = own.get(key, 0.0) + is_true / trials
    return [
        {"noise": noise.__name__, "step": step, "blocks": n, "ratio": ratio, **{k: round(v, 4) for k, v in own.items()}}
        for ratio, own in counts.items()
    ]


# --- curves


SIZES = 14


def curves(noise: Noise, source: random.Random, trials: int, n: int) -> dict[str, Any]:
    """14 sizes measured by the same processes: how often any is wrongly called different at margin 0, by the interval
    or by the maximum statistic, and how often all are found that are 40 to 60 % slower, or 6 of 14 that are."""
    wrong = wrong_p = every = some = 0
    for _ in range(trials):
        processes = blocks(noise, source, n)
        sizes = [
            [(a * math.exp(source.gauss(0.0, 0.01)), b * math.exp(source.gauss(0.0, 0.01))) for a, b in processes]
            for _ in range(SIZES)
        ]
        found = replay_curve(sizes, 0.0, False, SIZES)
        wrong += any(one.verdict in DIFFERENT for one in found)
        logs = [[math.log(b / a) for a, b in pairs] for pairs in sizes]
        wrong_p += min(p for p in adjusted_p(logs) if p is not None) <= end_alpha()
        slower = [[(a, b * (1.4 + 0.2 * k / (SIZES - 1))) for a, b in pairs] for k, pairs in enumerate(sizes)]
        every += all(one.verdict is Verdict.SLOWER for one in replay_curve(slower, MARGIN, False, SIZES))
        mixed = [[log + (math.log(1.4) if k < 6 else 0.0) for log in own] for k, own in enumerate(logs)]
        p_values = adjusted_p(mixed, [math.log1p(MARGIN)] * len(mixed))
        some += all(p is not None and p <= end_alpha() for p in p_values[:6])
    return {
        "noise": noise.__name__,
        "blocks": n,
        "any_wrong_at_margin_0": wrong / trials,
        "any_wrong_at_margin_0_by_maximum_statistic": wrong_p / trials,
        "all_14_slower_by_40_to_60_percent_found": every / trials,
        "6_of_14_slower_by_40_percent_found": some / trials,
    }


def parts(source: random.Random, trials: int, n: int) -> dict[str, Any]:
    """60 parts of a run, none different, whose processes fall on two levels: how often any is called different."""
    wrong = 0
    for _ in range(trials):
        levels = [two_levels(source, 1)[0] - two_levels(source, 1)[0] for _ in range(n)]
        own = [[level + source.gauss(0.0, 0.05) for level in levels] for _ in range(60)]
        wrong += min(p for p in adjusted_p(own) if p is not None) <= ALPHA
    return {"blocks": n, "any_of_60_wrong": wrong / trials}


# --- measured apart, single figures, scaling


def apart(source: random.Random, trials: int, sessions: int) -> dict[str, Any]:
    """A program with itself in alternating sessions, 1 % between them and 0.5 % within, 24 repeats each: how often it
    is called different at margin 0, and how often the interval holds. With one session of each, by all repeats, which
    seatrial reports without a verdict."""
    wrong = holds = 0
    for _ in range(trials):
        made = []
        for _ in range(2):
            levels = [source.gauss(0.0, 0.01) for _ in range(sessions)]
            made.append([[math.exp(source.gauss(level, 0.005)) for _ in range(24)] for level in levels])
        if sessions < LEAST_SESSIONS:
            found = independent_ratio(*([value for own in side for value in own] for side in made), ALPHA)
        else:
            medians = [[median(session) for session in side] for side in made]
            found = BlockTest(list(zip(*medians, strict=True))).ratio(ALPHA)
        low, high = found.low or 0.0, found.high or math.inf
        holds += low <= 1.0 <= high
        wrong += sessions >= LEAST_SESSIONS and not low <= 1.0 <= high
    return {"sessions": sessions, "called_different_at_margin_0": wrong / trials, "interval_holds": holds / trials}


def single(source: random.Random, trials: int, n: int, correlation: float) -> dict[str, Any]:
    """The interval of one figure whose repeats follow AR(1): how often it is printed, and holds if it is."""
    printed = holds = holds_plain = 0
    for _ in range(trials):
        values = [100.0 + value for value in autoregressive(source, n, correlation)]
        found, plain = median_interval(values, correlation=dependence(values)), median_interval(values)
        printed += found is not None
        holds += found is not None and found[0] <= 100.0 <= found[1]
        holds_plain += plain is not None and plain[0] <= 100.0 <= plain[1]
    return {
        "correlation": correlation,
        "repeats": n,
        "printed": printed / trials,
        "holds_if_printed": round(holds / printed, 4) if printed else None,
        "would_hold_as_if_independent": holds_plain / trials,
    }


WORKERS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)


def scaling(noise: Noise, source: random.Random, trials: int, n: int, bend: float) -> dict[str, Any]:
    """Amdahl's law with a serial share of 5 %: how often its interval is printed, and holds if it is; `bend`: the
    largest number of workers is slower than the law by this."""
    printed = holds = 0
    for _ in range(trials):
        rows = []
        for _ in range(n):
            logs = noise(source, len(WORKERS))
            times = [math.exp(log) / AMDAHL.speedup(p, 0.05) for p, log in zip(WORKERS, logs, strict=True)]
            times[-1] *= 1.0 + bend
            rows.append([times[0] / one for one in times])
        speedups = [1.0, *(paired_ratio([(1.0, row[k]) for row in rows], ALPHA).ratio for k in range(1, len(WORKERS)))]
        found = law_interval(AMDAHL, WORKERS, speedups, rows)
        if found is not None and found.ends is not None:
            printed += 1
            holds += found.ends[0] <= 0.05 <= found.ends[1]
    return {
        "noise": noise.__name__,
        "blocks": n,
        "bend": bend,
        "printed": printed / trials,
        "holds_if_printed": round(holds / printed, 4) if printed else None,
    }


# --- alternative methods


def alternatives(noise: Noise, source: random.Random, trials: int) -> list[dict[str, Any]]:
    """Plain 95 % intervals of the same 20 blocks of a program that is 5 % slower: how often each contains the true
    ratio, finds the difference beyond 2 %, and its width."""
    found: dict[str, list[Interval]] = {}
    for _ in range(trials):
        pairs = [(a, 1.05 * b) for a, b in blocks(noise, source, 20)]
        for name, method in METHODS.items():
            found.setdefault(name, []).append(method(pairs))
    return [
        {
            "noise": noise.__name__,
            "method": name,
            "interval_holds": sum(low <= 1.05 <= high for low, high in intervals) / trials,
            "found_5_percent": sum(low > 1.0 + MARGIN for low, _ in intervals) / trials,
            "median_width": round(median(math.log(high / low) for low, high in intervals), 4),
        }
        for name, intervals in found.items()
    ]


def student_t(pairs: Pairs) -> Interval:
    """Mean of the logarithms, assumed to be normal."""
    logs = [math.log(candidate / baseline) for baseline, candidate in pairs]
    n = len(logs)
    mean = sum(logs) / n
    half = _T_20 * math.sqrt(sum((value - mean) ** 2 for value in logs) / (n - 1) / n)
    return math.exp(mean - half), math.exp(mean + half)


_T_20 = 2.093
"""97.5 % quantile of Student's t with 19 degrees of freedom."""


def sign_test(pairs: Pairs) -> Interval:
    """The interval of the median ratio."""
    return median_interval([candidate / baseline for baseline, candidate in pairs]) or (0.0, math.inf)


def unpaired(pairs: Pairs) -> Interval:
    """The same repeats, as if measured apart."""
    found = independent_ratio([pair[0] for pair in pairs], [pair[1] for pair in pairs], ALPHA)
    return found.low or 0.0, found.high or math.inf


METHODS: dict[str, Callable[[Pairs], Interval]] = {
    "chosen (used)": lambda pairs: chosen(pairs, ALPHA),
    "signed ranks": lambda pairs: signed_ranks(pairs, ALPHA),
    "sign test": sign_test,
    "t of logarithms": student_t,
    "unpaired": unpaired,
}


# --- all tables, a cell per task


TABLES: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        compared, rounded, curves, parts, apart, single, scaling, alternatives, outliers, measured_again,
    )
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One part of a table: the function that makes it and its arguments after the source and the number of trials."""

    table: str
    name: str
    noise: str = ""
    arguments: tuple[Any, ...] = ()

    def make(self, seed: int, trials: int) -> list[dict[str, Any]]:
        """The rows."""
        source = random.Random(f"{seed} {self}")
        first = (getattr(simulated_noise, self.noise),) if self.noise else ()
        rows = TABLES[self.name](*first, source, trials, *self.arguments)
        return rows if isinstance(rows, list) else [rows]


def cells() -> list[Cell]:
    """All cells, the slowest first."""
    kinds = [kind.__name__ for kind in KINDS]
    return [
        *(Cell("compared", "compared", kind) for kind in kinds),
        *(Cell("curves", "curves", kind, (n,)) for kind in ("normal", "two_levels", "delays") for n in (6, 10)),
        *(Cell("alternatives", "alternatives", kind) for kind in kinds),
        *(Cell("rounded", "rounded", "normal", (n, step)) for n in (12, 24) for step in (0.1, 0.01)),
        *(Cell("parts", "parts", "", (n,)) for n in (6, 12)),
        *(
            Cell("scaling", "scaling", kind, (n, bend))
            for kind in ("normal", "rough", "heavy_tails", "two_levels")
            for n in (6, 12, 24)
            for bend in (0.0, 0.4)
        ),
        *(
            Cell("outliers", "outliers", kind, (fleet, n))
            for kind in ("normal", "heavy_tails", "two_levels")
            for fleet in ("equal", "normal_spread", "exponential_spread", "two_kinds")
            for n in (1, 6, 12)
        ),
        *(
            Cell("measured_again", "measured_again", kind, (fleet, n))
            for kind in ("normal", "heavy_tails", "two_levels")
            for fleet in ("equal", "normal_spread", "exponential_spread", "two_kinds")
            for n in (1, 6)
        ),
        *(Cell("apart", "apart", "", (n,)) for n in (1, 6, 12)),
        *(Cell("single", "single", "", (n, r)) for r in (0.0, 0.3, 0.5, 0.9) for n in (8, 12, 24, 40, 100)),
    ]


def _make(task: tuple[Cell, int, int]) -> tuple[str, list[dict[str, Any]]]:
    cell, seed, trials = task
    return cell.table, cell.make(seed, trials)


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args(arguments)

    start = time.perf_counter()
    tables: dict[str, list[dict[str, Any]]] = {}
    with ProcessPoolExecutor(options.processes) as pool:
        for table, rows in pool.map(
            _make, [(cell, options.seed, options.trials) for cell in cells() if cell.name in options.tables]
        ):
            tables.setdefault(table, []).extend(rows)
    document = {
        "provenance": {
            "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "seatrial": __version__,
            "commit": _commit(),
            "python": platform.python_version(),
            "seed": options.seed,
            "trials": options.trials,
            "took_s": round(time.perf_counter() - start, 1),
        },
        "rule": {
            "margin": MARGIN,
            "looks": LOOKS,
            "look_alpha": LOOK_ALPHA,
            "end_alpha": [round(end_alpha(1), 6), round(end_alpha(2), 6)],
            "least_blocks": {str(family): least_blocks(family) for family in (1, 2, 3, 5, 10, 30, 100)},
        },
        **tables,
    }
    write("compare_simulation", document, options.output)


if __name__ == "__main__":
    main()
