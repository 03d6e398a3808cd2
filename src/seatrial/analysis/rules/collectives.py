"""Rules about collective operations between devices: a rank that arrives late."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

from seatrial.analysis.rules.finding import ARRIVALS, Case, Subject, finite_numbers, listed, noted, rule, warning
from seatrial.model.frozen import Frozen
from seatrial.model.machine.fact import Finding
from seatrial.model.spelling import count, show

_MOST_OF_SAMPLES = 0.8
"""A rank comes late that was the last in so many samples of a repeat."""
_SHARE = 0.1
_SHORTEST_S = 1e-3
"""It matters if the others wait longer than this, and than this share of a sample."""
_MOST_OF_REPEATS = 0.5
_FEWEST_REPEATS = 2


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
