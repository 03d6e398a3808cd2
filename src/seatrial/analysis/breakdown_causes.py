"""Why two sides of a comparison differ in time, from the MPI profiles of their repeats.

The difference of each block is split: a CPU that was missing, startup, computing, and for the calls of each function
and size with n = count, b = shortest call of any rank, w = mean time beyond it:

    n2 (b2 + w2) - n1 (b1 + w1) = (n2 - n1) mean(b + w) + mean(n) (b2 - b1) + mean(n) (w2 - w1)

as the number of calls, the cost of a call when no rank is late (latency, transfer), and waiting. The split is exact,
and exchanging the sides reverses its signs, so that all parts are tested together (`stats/max_t.py`).

The rules are those of a profile (docs/adr/0024): missing CPUs first, and then nothing about waiting; waiting has a
cause if differences in computing explain half of it, or if partners are late for far longer than a call takes. Changes
that together explain less than half of the difference end in "not known".
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean

from seatrial.analysis.breakdown_rows import Call, Moving, Repeat, Split, is_late, split
from seatrial.diagnosis.cpu import EXPLAINS, LEAST_DELAY, cpu_diagnoses
from seatrial.model.frozen import Frozen
from seatrial.model.study.comparison import Change, ChangeDiagnosis, ChangeEvidence, ChangeSignal
from seatrial.stats.interval import MINIMUM_REPEATS
from seatrial.stats.max_t import adjusted_p

LEAST_SHARE = 0.05
"""Changes of less of the difference are not named."""
_ALPHA = 0.05
_LITTLE = 0.1
_CLEARLY = 2 / 3
_COST = {
    Moving.CALLS: Change.CALLS,
    Moving.SIZES: Change.SIZES,
    Moving.LATENCY: Change.LATENCY,
    Moving.TRANSFER: Change.TRANSFER,
    Moving.STARTUP: Change.STARTUP,
}
_LATE = {
    Moving.WAIT_RECEIVE: Change.LATE_SENDER,
    Moving.WAIT_SEND: Change.LATE_RECEIVER,
    Moving.WAIT_COLLECTIVE: Change.LATE_AT_COLLECTIVE,
}


class _Pairs(Frozen):
    """The blocks of a comparison: the repeats of both sides, and the mean, p-value and calls of each part."""

    sides: tuple[Sequence[Repeat], Sequence[Repeat]]
    mean_s: Mapping[Moving, float]
    p: Mapping[Moving, float | None]
    by_call: Mapping[Moving, Mapping[Call, float]]

    @property
    def whole_s(self) -> float:
        return self.mean_s[Moving.WHOLE]

    @property
    def longer(self) -> Sequence[Repeat]:
        """The side that takes longer."""
        return self.sides[self.whole_s > 0]

    def is_sure(self, part: Moving) -> bool:
        """Whether a part moved beyond noise, and as the whole did."""
        p = self.p[part]
        return p is not None and p < _ALPHA and self.mean_s[part] * self.whole_s > 0

    def share(self, part: Moving) -> float:
        """What a part explains of the difference; negative if it moved against it."""
        return self.mean_s[part] / self.whole_s

    def main_call(self, part: Moving) -> Call:
        """The function and size with most of a part, in the direction of the whole."""
        calls = self.by_call.get(part, {})
        return max(calls, key=lambda call: calls[call] * self.whole_s, default=("", None))


def change_diagnoses(baseline: Sequence[Repeat], candidate: Sequence[Repeat]) -> tuple[ChangeDiagnosis, ...]:
    """Why the times differ, from the repeats of both sides in the same blocks; the largest share first.

    Empty if the whole times do not differ beyond noise, or below six blocks.
    """
    if len(baseline) < MINIMUM_REPEATS:
        return ()
    pairs = _pairs(baseline, candidate)
    if not pairs.is_sure(Moving.WHOLE):
        return ()
    if _has_no_cpu(pairs):
        found = _no_cpu(pairs) or _computing_beside_others(pairs)
        costs = [Moving.CALLS, Moving.SIZES]  # counted, whoever had a CPU
    else:
        found = [*_computing(pairs), *_waiting(pairs)]
        costs = list(_COST)
    found += [_cost(pairs, part, _COST[part]) for part in costs if pairs.is_sure(part)]
    named = sorted((one for one in found if one.share >= LEAST_SHARE), key=lambda one: -one.share)
    explained = sum(one.share for one in named)
    if explained < EXPLAINS:
        named.append(_not_known(pairs, 1.0 - explained))
    return tuple(named)


def _pairs(baseline: Sequence[Repeat], candidate: Sequence[Repeat]) -> _Pairs:
    splits: list[Split] = [split(a, b) for a, b in zip(baseline, candidate, strict=True)]
    values = {part: [one.parts[part] for one in splits] for part in Moving}
    p = adjusted_p([values[part] for part in Moving])
    by_call: dict[Moving, dict[Call, float]] = defaultdict(lambda: defaultdict(float))
    for one in splits:
        for (part, call), seconds in one.by_call.items():
            by_call[part][call] += seconds / len(splits)
    means = {part: fmean(own) for part, own in values.items()}
    return _Pairs((baseline, candidate), means, dict(zip(Moving, p, strict=True)), by_call)


def _has_no_cpu(pairs: _Pairs) -> bool:
    """Whether ranks waited for a CPU on either side, or that explains the difference."""
    shares = [fmean(repeat.delay_share for repeat in side) for side in pairs.sides]
    return max(shares) >= LEAST_DELAY or (pairs.is_sure(Moving.NO_CPU) and pairs.share(Moving.NO_CPU) >= EXPLAINS)


def _no_cpu(pairs: _Pairs) -> list[ChangeDiagnosis]:
    """The CPU that was missing, if that explains half of the difference. Who waits in MPI depends on who had a CPU, so
    nothing is said about that."""
    if not pairs.is_sure(Moving.NO_CPU) or pairs.share(Moving.NO_CPU) < EXPLAINS:
        return []
    causes = Counter(_why_no_cpu(repeat) for repeat in pairs.longer)
    cause, times = causes.most_common(1)[0]
    change = cause if times > len(pairs.longer) / 2 else Change.NO_CPU
    evidence = [
        _evidence(pairs, ChangeSignal.RUN_DELAY, lambda repeat: repeat.delay_share),
        _evidence(pairs, ChangeSignal.CPU_TIME, lambda repeat: repeat.cpu_s),
    ]
    if change is Change.CPU_QUOTA:
        evidence.append(_evidence(pairs, ChangeSignal.QUOTA, _quota))
    if change is Change.OTHER_PROCESSES:
        evidence.append(_evidence(pairs, ChangeSignal.OTHERS_CPUS, _others))
    return [_diagnosis(pairs, change, Moving.NO_CPU, evidence)]


def _why_no_cpu(repeat: Repeat) -> Change:
    found = cpu_diagnoses(repeat.profile) if repeat.profile is not None else []
    cause = max(found, key=lambda one: one.share).cause if found else None
    return next((change for change in Change if change.value == cause), Change.NO_CPU)


def _quota(repeat: Repeat) -> float | None:
    ranks = repeat.profile.per_rank if repeat.profile is not None else ()
    return min((rank.cpu.quota for rank in ranks if rank.cpu is not None and rank.cpu.quota is not None), default=None)


def _others(repeat: Repeat) -> float | None:
    nodes = repeat.profile.nodes if repeat.profile is not None else ()
    return max((node.other_cpus for node in nodes), default=None)


def _computing(pairs: _Pairs) -> list[ChangeDiagnosis]:
    """All ranks are outside MPI for longer: they compute, or are blocked."""
    if not pairs.is_sure(Moving.COMPUTING):
        return []
    is_blocked = pairs.is_sure(Moving.BLOCKED) and pairs.share(Moving.BLOCKED) >= EXPLAINS * pairs.share(
        Moving.COMPUTING
    )
    evidence = [
        _evidence(pairs, ChangeSignal.COMPUTING, lambda repeat: repeat.middle_s),
        _evidence(pairs, ChangeSignal.CPU_TIME, lambda repeat: repeat.cpu_s),
    ]
    if is_blocked:
        evidence.append(_evidence(pairs, ChangeSignal.BLOCKED, lambda repeat: repeat.blocked_s))
    return [_diagnosis(pairs, Change.BLOCKED if is_blocked else Change.COMPUTATION, Moving.COMPUTING, evidence)]


def _computing_beside_others(pairs: _Pairs) -> list[ChangeDiagnosis]:
    """The same where ranks waited for a CPU on both sides: only if their CPU time moved as much."""
    moved = pairs.mean_s[Moving.CPU] / pairs.mean_s[Moving.COMPUTING] if pairs.mean_s[Moving.COMPUTING] else 0.0
    ran = 1.0 - min(fmean(repeat.delay_share for repeat in side) for side in pairs.sides)
    return _computing(pairs) if pairs.is_sure(Moving.CPU) and moved >= EXPLAINS * ran else []


def _waiting(pairs: _Pairs) -> list[ChangeDiagnosis]:
    """Ranks wait longer: for one that is outside MPI for longer, or for partners that are late."""
    if not pairs.is_sure(Moving.WAITING):
        return []
    expected = [fmean(repeat.waiting_for_slowest_s for repeat in side) for side in pairs.sides]
    explained = (expected[1] - expected[0]) / pairs.mean_s[Moving.WAITING]
    if pairs.is_sure(Moving.EXCESS) and explained >= EXPLAINS:
        return [_imbalance(pairs)]
    part = max(_LATE, key=pairs.share)
    call = pairs.main_call(part)
    row = [repeat.calls[call] for repeat in pairs.longer if call in repeat.calls]
    is_far = bool(row) and fmean(is_late(one, call, pairs.longer[0]) for one in row) > EXPLAINS
    if not pairs.is_sure(part) or pairs.share(part) < EXPLAINS * pairs.share(Moving.WAITING):
        return []
    if not (is_far and _is_shortest_the_same(pairs, call)):
        return []
    return [_diagnosis(pairs, _LATE[part], part, (*_of_call(pairs, call), *_of_ranks(pairs)), call)]


def _is_shortest_the_same(pairs: _Pairs, call: Call) -> bool:
    """Whether the shortest call moved by a tenth of what the mean did: else the path may have changed."""
    rows = [[repeat.calls[call] for repeat in side if call in repeat.calls] for side in pairs.sides]
    least = [[row.least_s for row in own if row.least_s is not None] for own in rows]
    if not all(least):
        return False
    moved_s = fmean(row.mean_s for row in rows[1]) - fmean(row.mean_s for row in rows[0])
    return abs(fmean(least[1]) - fmean(least[0])) < _LITTLE * abs(moved_s)


def _imbalance(pairs: _Pairs) -> ChangeDiagnosis:
    excess = [fmean(repeat.excess_s for repeat in side) for side in pairs.sides]
    slow = pairs.sides[excess[1] > excess[0]]
    slowest = Counter(
        max(repeat.profile.per_rank, key=lambda rank: rank.compute_s).rank
        for repeat in slow
        if repeat.profile is not None
    )
    rank, times = slowest.most_common(1)[0]
    slow_rank = rank if times >= _CLEARLY * len(slow) else None
    return _diagnosis(pairs, Change.IMBALANCE, Moving.EXCESS, _of_ranks(pairs), rank=slow_rank)


def _cost(pairs: _Pairs, part: Moving, change: Change) -> ChangeDiagnosis:
    call = pairs.main_call(part)
    return _diagnosis(pairs, change, part, _of_call(pairs, call), call)


def _diagnosis(
    pairs: _Pairs,
    change: Change,
    part: Moving,
    evidence: Iterable[ChangeEvidence],
    call: Call = ("", None),
    rank: int | None = None,
) -> ChangeDiagnosis:
    share, p = min(1.0, pairs.share(part)), pairs.p[part]
    return ChangeDiagnosis(change, share, tuple(evidence), rank=rank, call=call[0], size_B=call[1] or None, p_value=p)


def _not_known(pairs: _Pairs, share: float) -> ChangeDiagnosis:
    """The signals that were looked at."""
    waits = max(_LATE, key=lambda part: abs(pairs.mean_s[part]))
    call = pairs.main_call(waits) if pairs.mean_s[waits] * pairs.whole_s > 0 else ("", None)
    evidence = (
        _evidence(pairs, ChangeSignal.RUN_DELAY, lambda repeat: repeat.delay_share if repeat.profile else None),
        *_of_ranks(pairs),
        *(_of_call(pairs, call) if call[0] else ()),
    )
    return ChangeDiagnosis(Change.NOT_KNOWN, min(1.0, share), evidence, call=call[0], size_B=call[1] or None)


def _of_ranks(pairs: _Pairs) -> tuple[ChangeEvidence, ...]:
    return (
        _evidence(pairs, ChangeSignal.COMPUTING, lambda repeat: repeat.middle_s),
        _evidence(pairs, ChangeSignal.LONGEST_COMPUTING, lambda repeat: repeat.computing_s[-1]),
    )


def _of_call(pairs: _Pairs, call: Call) -> tuple[ChangeEvidence, ...]:
    def of(value: Callable[[Repeat], float | None]) -> Callable[[Repeat], float | None]:
        return lambda repeat: value(repeat) if call in repeat.calls else None

    return (
        _evidence(pairs, ChangeSignal.CALLS, of(lambda repeat: repeat.calls[call].count)),
        _evidence(pairs, ChangeSignal.CALL_SHORTEST, of(lambda repeat: repeat.calls[call].least_s)),
        _evidence(pairs, ChangeSignal.CALL_MEAN, of(lambda repeat: repeat.calls[call].mean_s)),
    )


def _evidence(pairs: _Pairs, signal: ChangeSignal, of: Callable[[Repeat], float | None]) -> ChangeEvidence:
    """The mean of a signal over the repeats of each side where it is known."""
    values = [[value for repeat in side if (value := of(repeat)) is not None] for side in pairs.sides]
    return ChangeEvidence(signal, *(fmean(own) if own else None for own in values))
