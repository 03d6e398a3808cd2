"""Made-up results of copies on nodes with GPUs, with the notes that tell which device is which."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from seatrial.model.benchmark.benchmark import Better
from seatrial.model.benchmark.parameter import Value
from seatrial.model.results.figure_result import ExperimentResult, FigureResult, RepeatValue
from seatrial.model.results.record import Experiment
from seatrial.model.results.sample import Outcome
from seatrial.model.units import Unit

Seen = dict[tuple[str, int], Mapping[str, Any]]
MiB = 1 << 20


def figure(
    name: str, median: float, *, unit: Unit = "B/s", width: float = 0.01, n: int = 9, **point: Value
) -> FigureResult:
    """A figure whose repeats lie evenly in median x (1 +- width / 2); its interval is all of them, from six on."""
    values = [median * (1 + width * (k - (n - 1) / 2) / max(1, n - 1)) for k in range(n)]
    better = Better.LOWER if unit == "s" else Better.HIGHER
    repeats = tuple(RepeatValue(k, k, float(k), value) for k, value in enumerate(values))
    ci95 = (values[0], values[-1]) if n >= 6 else None
    return FigureResult(name, point, unit, better, "", median, ci95, values[0], values[-1], 40 * n, None, repeats)


def result(figures: Sequence[FigureResult], benchmark: str, **parameters: Value) -> ExperimentResult:
    experiment = Experiment(benchmark, {"backend": "cuda", "device": 0, **parameters}, "e", "p", "m")
    return ExperimentResult(experiment.id, experiment, "?", Outcome.ok(), tuple(figures))


def noted(of: ExperimentResult, addresses: Sequence[str]) -> Seen:
    """What is seen beside an experiment's last repeat: device k is at the k-th address, as CUDA writes it."""
    devices = [{"backend": "cuda", "index": k, "name": "GPU", "pci": text.upper()} for k, text in enumerate(addresses)]
    return {(of.id, 8): {"notes": {"devices": devices}}}


Rate = Callable[[int], float]


def transfer(
    addresses: Sequence[str], alone: Rate, at_once: Rate, *, width: float = 0.01, ways: Sequence[str] = ("h2d", "d2h")
) -> tuple[ExperimentResult, Seen]:
    """gpu.transfer of devices at these addresses: device number -> rate in B/s alone, and while all copy."""
    made: list[FigureResult] = []
    for way in ways:
        for size, share in ((MiB, 0.5), (64 * MiB, 1.0)):
            rates = [share * alone(k) for k in range(len(addresses))]
            both = [share * at_once(k) for k in range(len(addresses))]
            for k in range(len(addresses)):
                made.append(figure(way, rates[k], width=width, size_B=size, device=k))
                made.append(figure(f"{way}_together", both[k], width=width, size_B=size, device=k))
            made.append(figure(f"{way}_all", sum(both), width=width, size_B=size))
    of = result(made, "gpu.transfer", devices=len(addresses), host="pinned")
    return of, noted(of, addresses)


def p2p(
    addresses: Sequence[str], rate: Callable[[int, int], float], *, is_on: bool = True
) -> tuple[ExperimentResult, Seen]:
    """gpu.p2p over all pairs: (source, target) -> B/s."""
    pairs = [(a, b) for a in range(len(addresses)) for b in range(len(addresses))]
    made = [figure("bandwidth", rate(a, b), source=a, target=b) for a, b in pairs]
    made += [figure("latency", 2e-6, unit="s", source=a, target=b) for a, b in pairs]
    of = result(made, "gpu.p2p", devices=len(addresses), p2p="on" if is_on else "off")
    return of, noted(of, addresses)
