"""Rules about collective operations between devices: a rank that arrives late, a pair of devices that limits all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

from seatrial.analysis.device_copies import PeerRates, peer_rates
from seatrial.analysis.roles import figures_with
from seatrial.analysis.rules.finding import ARRIVALS, Case, Names, Subject, finite_numbers, listed, noted, rule, warning
from seatrial.model.benchmark.benchmark import Role
from seatrial.model.frozen import Frozen
from seatrial.model.machine.fact import Finding
from seatrial.model.results.figure_result import FigureResult
from seatrial.model.spelling import count, show

_MOST_OF_SAMPLES = 0.8
"""A rank comes late that was the last in so many samples of a repeat."""
_SHARE = 0.1
_SHORTEST_S = 1e-3
"""It matters if the others wait longer than this, and than this share of a sample."""
_MOST_OF_REPEATS = 0.5
_FEWEST_REPEATS = 2


_SLOW_PAIR = 0.75
"""A pair is slow that copies at less than this share of the median pair."""
_AT_MOST = 1.15
"""A collective operation is as slow as a pair if its bus bandwidth is at most so many times that of the pair."""


class _Late(Frozen):
    rank: int
    host: str
    apart_s: float
    sample_s: float


@rule(Subject.STEADINESS)
def rank_arrives_late(case: Case) -> Iterator[Finding]:
    """Fires if the same rank is the last to start an operation in most samples, by a time that matters."""
    for name, _, repeats in noted(case, ARRIVALS):
        found = [late for repeat in repeats if (late := _late(repeat[ARRIVALS])) is not None]
        ranks = Counter(late.rank for late in found)
        if not ranks:
            continue
        rank, times = ranks.most_common(1)[0]
        if times <= max(_FEWEST_REPEATS - 1, _MOST_OF_REPEATS * len(repeats)):
            continue
        own = [late for late in found if late.rank == rank]
        apart_s, sample_s = median(late.apart_s for late in own), median(late.sample_s for late in own)
        hosts = sorted({late.host for late in own})
        yield warning(
            "rank-arrives-late",
            observation=f"{name}: rank {rank} on {listed(hosts)} starts the operations {show(apart_s, 's')} after the "
            f"first rank; a sample then takes {show(sample_s, 's')}.",
            diagnosis="The others wait for it. The times and bandwidths shown start when it has arrived, so that its "
            "delay is not in them; in a program it is. What delays it was not separated.",
            remedy="Run it with the ranks on other CPUs, devices or nodes: if the delay stays with the rank's host or "
            "device, look there, else at what the program does before the operation",
            evidence=(f"the last one in most samples of {times} of {count(len(repeats), 'repeat')}",),
        )


def _late(noted: object) -> _Late | None:
    """The rank that was last in most samples of a repeat, by a time that matters."""
    if not isinstance(noted, Mapping):
        return None
    values: Mapping[str, Any] = noted
    numbers = finite_numbers(values.get(key) for key in ("samples", "times", "rank", "apart_s", "sample_s"))
    if len(numbers) < 5:
        return None
    samples, times, rank, apart_s, sample_s = numbers
    if times < _MOST_OF_SAMPLES * samples or apart_s < max(_SHORTEST_S, _SHARE * sample_s):
        return None
    return _Late(int(rank), str(values.get("host")), apart_s, sample_s)


@rule(Subject.GPU_LINKS)
def pair_limits_collective(case: Case) -> Iterator[Finding]:
    """Fires if a collective operation of a node's devices is no faster than copies of its slowest pair, which is slower
    than the others."""
    own = [
        (result, figure)
        for result, figure in figures_with(case.results, Role.DEVICE_COLLECTIVE)
        if result.experiment.parameters.get("nodes", 1) == 1 and figure.point.get("in_place") is not True
    ]
    if not own:
        return
    names = Names(case.results)
    copies = [rates for rates in peer_rates(case.machine, case.results, case.seen) if rates.role is Role.PEER_COPY]
    slow = [found for rates in copies if (found := _slow_pair(rates)) is not None]
    largest = {result.id: max(_size(figure) for other, figure in own if other.id == result.id) for result, _ in own}
    for result, figure in own if slow else ():
        pair, rate, others = min(slow, key=lambda found: found[1])
        if _size(figure) < largest[result.id] or not _AT_MOST * rate >= figure.median:
            continue
        yield warning(
            "pair-limits-collective",
            observation=f"{names.experiment(result)} has a bus bandwidth of {show(figure.median, 'B/s')} at its "
            f"largest size. Copies between {pair[0]} and {pair[1]} reach {show(rate, 'B/s')}, those of the other pairs "
            f"{show(others, 'B/s')}.",
            diagnosis="In a ring, all data pass each of its links, so that the slowest one sets the rate. Whether the "
            "library used a ring over this pair was not observed (NCCL_DEBUG=INFO prints its rings).",
            remedy=f"Find out why copies between {pair[0]} and {pair[1]} are slow (see the findings on links), then "
            "measure both again",
            evidence=f"{count(len(copies), 'matrix', 'matrices')} of copies between devices",
            devices=pair,
        )


def _size(figure: FigureResult) -> float:
    size = figure.point.get("size_B")
    return float(size) if isinstance(size, int) else 0.0


def _slow_pair(rates: PeerRates) -> tuple[tuple[str, str], float, float] | None:
    """The slowest pair of different devices, its rate in the slower direction, and the median of the other pairs; None
    if it is not slower than these, or there are too few."""
    pairs: dict[tuple[int, int], list[float]] = {}
    for (a, b), figure in rates.values.items():
        if a != b:
            pairs.setdefault((min(a, b), max(a, b)), []).append(figure.median)
    slower = {pair: min(both) for pair, both in pairs.items()}
    if len(slower) < 3:
        return None
    worst = min(slower, key=slower.__getitem__)
    others = median(rate for pair, rate in slower.items() if pair != worst)
    if slower[worst] > _SLOW_PAIR * others:
        return None
    return (rates.devices[worst[0]].label, rates.devices[worst[1]].label), slower[worst], others
