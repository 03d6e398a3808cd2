"""Made-up studies for the tests of their pages: fair and unfair, many and one, hostile names, scaling, sweeps."""

from __future__ import annotations

import dataclasses
import math

from report.page_samples import GB, HOSTILE, START, experiment, figure, noise

from seatrial.model.benchmark.benchmark import Better
from seatrial.model.machine.limit import Basis, Limit
from seatrial.model.results.figure_result import ExperimentResult, Outlier, RepeatValue
from seatrial.model.results.sample import Outcome, Stage
from seatrial.model.study.comparison import (
    Comparison,
    ContainerContrast,
    ContainerCost,
    ContainerFact,
    Cost,
    Design,
    Difference,
    Side,
    Stopped,
    Verdict,
)
from seatrial.model.study.result import (
    EFFICIENT,
    BestOfResult,
    Compared,
    Contender,
    Fit,
    ScalingPoint,
    ScalingResult,
    StudyResult,
)
from seatrial.model.study.study import Axis, BestOf, Compare, Scaling, Study, StudyBenchmark

BASE, CANDIDATE = "nontemporal false", "nontemporal true"
LONG = "a name that goes on " * 10


def verdict_of(interval, margin, better) -> Verdict:
    """As CONTRACT has it."""
    low, high = 1 / (1 + margin), 1 + margin
    if interval is None:
        return Verdict.AMBIGUOUS
    if low <= interval[0] and interval[1] <= high:
        return Verdict.SAME
    above, below = (Verdict.FASTER, Verdict.SLOWER) if better is Better.HIGHER else (Verdict.SLOWER, Verdict.FASTER)
    return above if interval[0] > high else below if interval[1] < low else Verdict.AMBIGUOUS


def comparison(
    name: str = "triad",
    ratio: float = 1.16,
    *,
    half: float = 0.02,
    plain: float = 0.6,
    better=Better.HIGHER,
    unit="B/s",
    median: float = 40 * GB,
    n: int = 15,
    interleaved: bool = True,
    drift: float = 0.0,
    bimodal: float = 0.0,
    margin: float = 0.02,
    family: int = 4,
    names=(BASE, CANDIDATE),
    hosts=(("n1",), ("n1",)),
    benchmark: str = "memory.stream",
    parameters=None,
    has_interval: bool = True,
    stopped: Stopped = Stopped.DECIDED,
    note: str = "",
) -> Comparison:
    """`half` is the half width of the logarithm of the family's interval, `plain` the share of it that is plain's."""

    def side(which: int, at: float) -> Side:
        values = []
        for k in range(n):
            place = 2 * k + (which if (k * 7) % 3 else 1 - which) if interleaved else which * n + k
            level = 1 + bimodal * (k % 3 == 1) + drift * place / max(2 * n - 1, 1)
            value = at * level * (1 + half * noise(name, which, k))
            values.append(RepeatValue(k, place, START + 1.4 * place, value))
        values.sort(key=lambda repeat: repeat.t0)
        return Side(names[which], at, tuple(values), (f"{which}" * 16,), hosts[which])

    sides = side(0, median), side(1, median * ratio)
    wide = (ratio * math.exp(-half), ratio * math.exp(half)) if has_interval else None
    thin = (ratio * math.exp(-half * plain), ratio * math.exp(half * plain)) if has_interval else None
    pairs = tuple((a.value, b.value) for a, b in zip(sides[0].values, sides[1].values, strict=True))
    design = Design(n, (10, 15, 22, 32), stopped, 0.01) if interleaved else Design(0, (), Stopped.NOT_PLANNED, 0.05)
    return Comparison(
        benchmark,
        name,
        {"threads": 2, "size_B": 1 << 26} if parameters is None else parameters,
        unit,
        better,
        *sides,
        ratio,
        thin,
        wide,
        verdict_of(wide, margin, better),
        margin,
        n,
        family,
        design,
        p_family=0.0004 if has_interval else None,
        pairs=pairs if interleaved else (),
        note=note,
    )


def with_reference() -> Comparison:
    """Ours against a published value."""
    made = comparison("load", 1.07, better=Better.LOWER, unit="s", median=84e-9, has_interval=False)
    reference = Side("reference:s7.latency", 84e-9, is_reference=True)
    return dataclasses.replace(made, baseline=reference, design=Design(0, (), Stopped.NOT_PLANNED, 0.05), pairs=())


INTENDED = (
    Difference("parameter nontemporal", "false", "true", True),
    Difference("note stores", "plain", "non-temporal", True, "nontemporal"),
)
UNINTENDED = (
    Difference("fact governor", "performance", "powersave", False),
    Difference("library libgomp.so.1", "c3f1", None, False),
)


def compared(*comparisons: Comparison, differences=INTENDED, names=(BASE, CANDIDATE), scope=None) -> Compared:
    text = "The machine n1 as it was on that day, with these builds." if scope is None else scope
    return Compared(*names, comparisons, tuple(differences), text)


def fair() -> Compared:
    """Every verdict once, a figure that is better lower among them."""
    return compared(
        comparison("copy", 1.16),
        comparison("scale", 1.003, half=0.011),
        comparison("add", 0.86, half=0.015, drift=0.06),
        comparison("triad", 1.018, half=0.023, bimodal=0.05, stopped=Stopped.BUDGET),
        comparison("load", 0.86, half=0.02, better=Better.LOWER, unit="s", median=84e-9, benchmark="memory.latency"),
    )


def unfair() -> Compared:
    """Two machines, not interleaved, differences that nobody asked for given after those that were."""
    hosts = (("n1",), ("n2",))
    return compared(
        comparison("copy", 2.31, hosts=hosts, interleaved=False, half=0.03, drift=0.1),
        comparison("triad", 0.97, hosts=hosts, interleaved=False, half=0.05, note="Only two machines: no fleet."),
        differences=(*INTENDED, *UNINTENDED),
        scope="These two machines.",
    )


def one() -> Compared:
    return compared(comparison("wall", 0.95, half=0.01, better=Better.LOWER, unit="s", median=1.9, family=1))


def no_interval() -> Compared:
    return compared(comparison(n=4, has_interval=False), comparison("copy", 1.4, n=1, has_interval=False))


def reference() -> Compared:
    return compared(with_reference(), names=("reference:s7.latency", CANDIDATE), differences=())


def many(number: int = 60) -> Compared:
    made = []
    for k in range(number):
        ratio, half = math.exp(0.09 * noise("ratio", k)), 0.004 + 0.02 * abs(noise("half", k))
        parameters = {"threads": 2, "size_B": 1024 << (k % 20), "record_B": 64 << (k // 20)}
        better = Better.LOWER if k % 2 else Better.HIGHER
        unit = "s" if k % 2 else "B/s"
        median = 3e-6 if k % 2 else GB
        made.append(
            comparison(
                "one_way" if k % 2 else "bandwidth", ratio, half=half, parameters=parameters, better=better, unit=unit,
                median=median, family=number, n=32, benchmark="mpi.latency",
            )
        )  # fmt: skip
    return compared(*made)


def hostile() -> Compared:
    names = (HOSTILE, f"{LONG}{HOSTILE}")
    made = [
        comparison(HOSTILE, 1.2, names=names, parameters={HOSTILE: HOSTILE, "x": k}, hosts=((HOSTILE,), (LONG,)))
        for k in range(3)
    ]
    made.append(comparison(LONG, 0.02, names=names, half=1.4, parameters={"argv": ("sh", "-c", HOSTILE)}, note=HOSTILE))
    made.append(comparison("y" * 200, 900.0, names=names, half=0.5, unit="1"))
    differences = (
        Difference(HOSTILE, HOSTILE, None, False),
        Difference("x" * 200, "y" * 300, LONG, False),
        Difference(LONG, None, HOSTILE, True, HOSTILE),
    )
    return compared(*made, differences=differences, names=names, scope=HOSTILE)


def broken_numbers() -> Compared:
    """Ratios and intervals that no division gives a sound number for."""
    zero = dataclasses.replace(comparison("zero", has_interval=False), ratio=0.0)
    nan = dataclasses.replace(comparison("odd", has_interval=False), ratio=math.nan)
    endless = dataclasses.replace(comparison("endless"), ci95=(0.0, math.inf), ci95_family=(0.0, math.inf),
                                  verdict=Verdict.AMBIGUOUS)  # fmt: skip
    equal = comparison("equal", 1.0, half=0.0)
    return compared(zero, nan, endless, equal)


def speedups(serial: float, numbers) -> dict[float, float]:
    return {p: 1 / (serial + (1 - serial) / p) for p in numbers}


def scaling(
    *,
    serial: float = 0.03,
    numbers=(1, 2, 4, 8, 16, 32),
    failed=(),
    better=Better.LOWER,
    name: str = "wall",
    kind="strong",
    winners: bool = False,
    along: str = "threads",
    reason: str = "run: signal 11",
) -> ScalingResult:
    points, fitted = [], []
    ideal = speedups(serial, numbers)
    for p in numbers:
        if p in failed:
            points.append(ScalingPoint(p, f"{p:016x}", None, reason=reason))
            continue
        speed = ideal[p] * (1 + 0.01 * noise(name, p) * (p > 1))
        efficiency = speed / p
        value = 12.0 / speed if better is Better.LOWER else 3e9 * speed
        if kind == "weak":
            efficiency = (1 + 0.01 * numbers[0]) / (1 + 0.01 * p)
            value = 12.0 / efficiency if better is Better.LOWER else 3e9 * p * efficiency
            speed = efficiency if better is Better.LOWER else p * efficiency
        given = {"batch": 32 * p, "prefetch": 2 + p % 3} if winners else None
        points.append(
            ScalingPoint(
                p, f"{p:016x}", value, (value * 0.98, value * 1.02), 12, speed, (speed * 0.97, speed * 1.03),
                efficiency, (efficiency * 0.97, efficiency * 1.03), parameters=given,
            )
        )  # fmt: skip
        fitted.append((p, speed - ideal[p]))
    good = [p for p in points if p.efficiency is not None]
    above = [p.workers for p in good if p.efficiency >= EFFICIENT]
    below = [p.workers for p in good if p.efficiency < EFFICIENT]
    has_fit = len(good) >= 5 and kind == "strong"
    fit = Fit("amdahl", serial, tuple(fitted), 1 / serial, (serial * 0.9, serial * 1.1))
    note = "" if has_fit else f"No law is fitted: {len(good)} points, at least 5 are needed."
    return ScalingResult(
        "command", name, kind, along, {"size_B": 1 << 20}, "s" if better is Better.LOWER else "flop/s", better,
        good[0].workers if good else 1, tuple(points), (fit,) if has_fit else (),
        max(above) if above else None, math.sqrt(max(above) * min(below)) if above and below else None, note,
        (max(above) if above else None, min(below) if below else None),
    )  # fmt: skip


def best_of(*, clear: bool = True) -> BestOfResult:
    medians = [3.42e9, 3.35e9, 3.30e9, 2.2e9] if clear else [3.42e9, 3.41e9, 3.40e9, 2.2e9]
    contenders = [
        Contender({"record_B": 1 << (20 - k), "direct": k % 2 == 0}, f"{k:016x}", m, (m * 0.99, m * 1.01), 12)
        for k, m in enumerate(medians)
    ]
    contenders.append(Contender({"record_B": 512, "direct": True}, "f" * 16, None, None, 0, "O_DIRECT was refused"))
    gap = comparison("read", medians[1] / medians[0], half=0.008, median=medians[0], family=3)
    return BestOfResult(
        "io.file", "read", ("record_B", "direct"), {"file_B": 1 << 30}, "B/s", Better.HIGHER, tuple(contenders),
        gap, clear, () if clear else (1, 2), 96.4, 48,
    )  # fmt: skip


def outliers() -> tuple[Outlier, ...]:
    return (
        Outlier("n17", "memory.stream", "triad", {"threads": 8}, 30 * GB, 0.93, 0.99997, 0.05, 64),
        Outlier(HOSTILE, "memory.stream", "triad", {"threads": 8}, 42 * GB, 1.04, 0.981, 0.05, 64),
    )


def results() -> tuple[ExperimentResult, ...]:
    limit = Limit(64 * GB, "B/s", "made up", Basis.PHYSICAL)
    made = [
        experiment(
            "memory.stream", "?", {"threads": 2, "nontemporal": k == 1},
            [figure(name, (40 + 6 * k) * GB, limit, seed=k) for name in ("copy", "triad")],
        )
        for k in range(2)
    ]  # fmt: skip
    lost = Outcome.failed(Stage.RUN, "signal 11", "Segmentation fault")
    return (*made, experiment("memory.stream", "?", {"threads": 4, "nontemporal": True}, outcome=lost))


def study(**changes) -> StudyResult:
    axes = (Axis("nontemporal", (False, True)), Axis("threads", (2, 4)))
    declared = Study(
        "stores",
        "Do non-temporal stores pay on this machine?",
        (StudyBenchmark("memory.stream", {}),),
        axes,
        compare=Compare("nontemporal", False),
        scaling=Scaling("strong", "threads"),
        best_of=BestOf(("record_B", "direct"), "read"),
    )
    return dataclasses.replace(StudyResult(declared, results(), spent_s=312.0), **changes)


def whole_study() -> StudyResult:
    """Everything that a study can answer, on one page."""
    strong = scaling(failed=(32,), winners=True, numbers=(1, 2, 4, 8, 16, 24, 32))
    weak = scaling(kind="weak", better=Better.HIGHER, name="rate", numbers=(1, 2, 4), along="nodes")
    return study(compared=(fair(),), scaling=(strong, weak), best_of=(best_of(), best_of(clear=False)))


def several_candidates() -> StudyResult:
    """One baseline, five candidates: a family of five, a fairness list of each."""
    made = []
    for k, ratio in enumerate((1.01, 1.08, 1.3, 0.7, 1.0)):
        names = ("record 4 KiB", f"record {8 << k} KiB")
        differences = [Difference("parameter record_B", "4 KiB", f"{8 << k} KiB", True)]
        differences += [Difference("fact load", "0.1", "1.9", False)] if k == 3 else []
        made.append(
            compared(comparison("read", ratio, names=names, half=0.012, family=5), differences=differences, names=names)
        )
    return study(compared=tuple(made))


def contained(name: str = "container app") -> Compared:
    """A container that loses cross-memory attach: large messages are slower, small ones and memory are not."""
    sides = ("no container", name)
    large = comparison("one_way", 1.43, better=Better.LOWER, unit="s", median=1e-3, names=sides,
                       parameters={"size_B": 4 << 20}, benchmark="mpi.latency")  # fmt: skip
    small = comparison("one_way", 1.002, half=0.008, better=Better.LOWER, unit="s", median=4e-7, names=sides,
                       parameters={"size_B": 8}, benchmark="mpi.latency")  # fmt: skip
    open_ = comparison("triad", 0.985, half=0.03, names=sides)
    twice = comparison("bandwidth", 0.4, names=sides, benchmark="mpi.bandwidth", parameters={"size_B": 4 << 20})
    facts = (
        ContainerFact("runs in", "no container", f"{name}, started by Charliecloud 0.31"),
        ContainerFact("ranks read each other's memory", "yes", "no (Operation not permitted)"),
        ContainerFact("user namespaces", None, "2 user namespaces for all ranks"),
        ContainerFact("libraries", "5 libraries with the same build ids", "5 libraries with the same build ids"),
    )
    cost = ContainerCost(Cost.CROSS_MEMORY, "candidate", "yes (cma)", "no (Operation not permitted)", (large, twice),
                         (small,), 0.9)  # fmt: skip
    made = compared(large, small, open_, twice, names=sides)
    return dataclasses.replace(made, along="environment.container", containers=ContainerContrast(facts, (cost,)))


COMPARED = {
    "fair": fair,
    "unfair": unfair,
    "one": one,
    "no interval": no_interval,
    "reference": reference,
    "many": many,
    "hostile": hostile,
    "broken numbers": broken_numbers,
    "nothing": lambda: compared(),
    "contained": contained,
    "hostile container": lambda: contained(HOSTILE),
}
STUDIES = {
    "whole": whole_study,
    "several candidates": several_candidates,
    "only measured": study,
    "scaling": lambda: study(scaling=(scaling(), scaling(failed=(1, 2, 4, 8, 16, 32)), scaling(serial=0.4))),
    "hostile": lambda: study(
        compared=(hostile(),),
        scaling=(scaling(name=HOSTILE, along=HOSTILE, failed=(4,), reason=HOSTILE * 3),),
        best_of=(best_of(clear=False),),
    ),
    "nothing": lambda: study(results=(), spent_s=0.0),
}
