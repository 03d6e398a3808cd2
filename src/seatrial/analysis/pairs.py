"""Slow pairs of ranks, slow ranks and slow nodes among all pairs of one experiment.

Pairs are compared with pairs of the same kind: those within a host at the same distance, and those across hosts. The
value of a pair in a repeat is that of its best visit, because disturbances only add time; if several pairs run at once,
their load is part of the question, so it is the median visit. Effects common to all pairs of a repeat are removed.

Ranks are screened first, each by the median over its pairs, which a single slow pair does not affect. If all ranks of a
node are slow, the node is reported instead. Then the pairs of all other ranks are screened. Both use the screens of
`seatrial.stats.far_values`, share the family-wise error rate evenly, and report only slow ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import median

from seatrial.analysis.experiment_figures import in_time
from seatrial.analysis.grouped import grouped
from seatrial.benchmarks.cpu.linebounce import distance
from seatrial.benchmarks.mpi.tournament import all_rounds
from seatrial.model.benchmark.benchmark import Benchmark, Better, Figure
from seatrial.model.benchmark.parameter import Params, Value
from seatrial.model.frozen import Frozen
from seatrial.model.machine.machine import Machine
from seatrial.model.results.figure_result import FEWEST_PARTNERS, Outlier, PairSampling, Screening
from seatrial.model.results.record import Experiment, RepeatRecord, share_a_cpu
from seatrial.model.results.sample import Sample
from seatrial.stats.far_values import FEW, FEWEST, FarValue, far_values, why_not

Pair = tuple[int, int]
_KindOf = Callable[[Pair], str]
_OF_SHARED_CPUS = "pairs across hosts that share a CPU"
"""Nodes of a cluster of one machine: such pairs show the scheduler, so they are not screened."""
FALSE_ALARM_RATE = 0.01
"""Of all pairs and ranks of an experiment together."""
LEAST_SLOWNESS = 0.1
"""A pair that is slower than its kind by less than this is not reported, even if significant."""


class PairTimes(Frozen):
    """One figure of pairs of one kind. `slowness` is, for each pair and repeat, its time over the median of all pairs
    of the repeat (for a rate, the inverse); `values` are the figure itself."""

    figure: str
    kind: str
    slowness: Mapping[Pair, tuple[float, ...]]
    values: Mapping[Pair, tuple[float, ...]]


def pair_of(point: Mapping[str, object]) -> Pair | None:
    """The two ranks in the coordinates of a sample, or None."""
    a, b = point.get("a"), point.get("b")
    return (a, b) if isinstance(a, int) and isinstance(b, int) else None


def by_sureness(outlier: Outlier) -> tuple[float, float]:
    """The order of outliers: most certain first, then by distance."""
    return -outlier.sureness, -max(outlier.ratio, 1.0 / outlier.ratio)


def screened_pairs(
    benchmark: Benchmark,
    experiment: Experiment,
    machine: Machine,
    records: Sequence[RepeatRecord],
    least_slowness: float = LEAST_SLOWNESS,
) -> Screening | None:
    """The slow pairs, ranks and nodes of one experiment, most certain first; None if it has no figures of pairs."""
    repeats = [record for record in in_time(records) if record.outcome.is_ok]
    if benchmark.ranks != "mpi" or not any(pair_of(s.point) for record in repeats[:1] for s in record.samples):
        return None
    hosts = _hosts(repeats)
    is_alone = experiment.parameters.get("at_once") == 1
    kind_of = _kinds(repeats, machine, hosts)
    families = [
        family for figure in benchmark.figures for family in _families(figure, repeats, kind_of, is_alone=is_alone)
    ]
    measured = {pair for family in families for pair in family.slowness}
    families = [family for family in families if family.kind != _OF_SHARED_CPUS]
    able = [family for family in families if not why_not(list(family.slowness.values()))]
    each = FALSE_ALARM_RATE / max(1, 2 * len(able))
    found: list[Outlier] = []
    for family in able:
        ranks = _slow_ranks(family, each, least_slowness)
        others = [pair for pair in family.slowness if not ranks.keys() & set(pair)]
        pairs = _slow([family.slowness[pair] for pair in others], each, least_slowness)
        of_figure = [
            *_named_ranks(ranks, family, hosts),
            *(_named_pair(others[outlying.index], outlying, hosts) for outlying in pairs),
        ]
        better = benchmark.figure(family.figure).better
        for one in of_figure:
            found.append(
                Outlier(
                    what=one.what,
                    benchmark=benchmark.name,
                    figure=family.figure,
                    parameters={**experiment.parameters, **one.which},
                    value=median(value for pair in one.pairs for value in family.values[pair]),
                    ratio=one.outlying.ratio if better is Better.LOWER else 1.0 / one.outlying.ratio,
                    sureness=1.0 - min(1.0, one.outlying.p * 2 * len(able)),
                    false_alarm_rate=FALSE_ALARM_RATE,
                    n=len(family.slowness),
                )
            )
    found.sort(key=by_sureness)
    too_few = _too_few(families, able)
    sampling = pair_sampling(measured, experiment.parameters)
    return Screening(tuple(found), len(measured), "pairs of ranks", FALSE_ALARM_RATE, too_few, not able, sampling)


def _too_few(families: Sequence[PairTimes], able: Sequence[PairTimes]) -> str:
    few = {family.kind: len(family.slowness) for family in families if family not in able}
    listed = "; ".join(f"{kind}: {count}" for kind, count in few.items())
    needed = f"finding outliers needs at least {FEWEST} pairs of a kind, or {FEW} in a single repeat"
    return f"{needed} ({listed})" if few else ""


def _slow(groups: Sequence[Sequence[float]], rate: float, least: float) -> list[FarValue]:
    """The slow outliers among the groups."""
    return [far for far in far_values(groups, rate, least)[0] if far.ratio > 1.0]


def _slow_ranks(family: PairTimes, rate: float, least: float) -> dict[int, FarValue]:
    """Ranks whose pairs are slow as a whole, by the median over the pairs of a rank in each repeat."""
    own = grouped((rank, slowness) for pair, slowness in family.slowness.items() for rank in pair)
    ranks = [rank for rank, pairs in own.items() if len(pairs) >= FEWEST_PARTNERS]
    groups = [[median(repeat) for repeat in zip(*own[rank], strict=True)] for rank in ranks]
    found = {ranks[outlying.index]: outlying for outlying in _slow(groups, rate, least)}
    # Nearly all pairs of the rank must be slow; otherwise the slow pairs are reported.
    return {rank: outlying for rank, outlying in found.items() if _share_slow(own[rank], least) >= 0.75}


def _share_slow(pairs: Sequence[Sequence[float]], least: float) -> float:
    return sum(median(own) > 1.0 + least for own in pairs) / len(pairs)


class _Named(Frozen):
    """A slow pair, rank or node: `which` are its parameters, `pairs` its pairs."""

    what: str
    which: Mapping[str, Value]
    pairs: Sequence[Pair]
    outlying: FarValue


def _named_ranks(ranks: Mapping[int, FarValue], family: PairTimes, hosts: Sequence[str]) -> list[_Named]:
    """Slow ranks by name; a node if it has several ranks and all are slow."""
    ranks_there = sorted({rank for pair in family.slowness for rank in pair})
    on = grouped((hosts[rank] if rank < len(hosts) else "", rank) for rank in ranks_there)
    named: list[_Named] = []
    for host, there in on.items():
        slow = [rank for rank in there if rank in ranks]
        if host and len(on) > 1 and len(there) > 1 and slow == there:
            least_sure = max((ranks[rank] for rank in slow), key=lambda outlying: outlying.p)
            named.append(_Named(f"node {host}", {"host": host}, _pairs_with(slow, family), least_sure))
            continue
        where = f" on {host}" if host and len(on) > 1 else ""
        named += [_Named(f"rank {r}{where}", {"rank": r}, _pairs_with([r], family), ranks[r]) for r in slow]
    return named


def _pairs_with(ranks: Sequence[int], family: PairTimes) -> list[Pair]:
    return [pair for pair in family.slowness if set(pair) & set(ranks)]


def _named_pair(pair: Pair, outlying: FarValue, hosts: Sequence[str]) -> _Named:
    a, b = pair
    where = f" on {hosts[a]} and {hosts[b]}" if b < len(hosts) and hosts[a] != hosts[b] else ""
    return _Named(f"pair {a}-{b}{where}", {"a": a, "b": b}, [pair], outlying)


def _hosts(repeats: Sequence[RepeatRecord]) -> tuple[str, ...]:
    """The host of each rank; empty where they are not reported, or changed from repeat to repeat."""
    hosts = {tuple(map(str, record.seen.get("hosts", ()))) for record in repeats}
    return hosts.pop() if len(hosts) == 1 else ()


def _kinds(repeats: Sequence[RepeatRecord], machine: Machine, hosts: Sequence[str]) -> _KindOf:
    """The kind of a pair, as text: pairs are compared with others of their kind."""
    masks = {tuple(tuple(mask) for mask in record.seen.get("affinity", ())) for record in repeats}
    bound = masks.pop() if len(masks) == 1 else ()
    cpus = [mask[0] if len(mask) == 1 else None for mask in bound]

    def kind_of(pair: Pair) -> str:
        a, b = pair
        if b < len(hosts) and hosts[a] != hosts[b]:
            is_shared = any(share_a_cpu(record.seen, hosts[a], hosts[b]) for record in repeats)
            return _OF_SHARED_CPUS if is_shared else "pairs across hosts"
        own = [cpus[rank] for rank in pair if rank < len(cpus)]
        if len(own) == 2 and own[0] is not None and own[1] is not None:
            return f"pairs that share a {distance(machine, own[0], own[1])}"
        return "pairs"

    return kind_of


def _families(
    figure: Figure, repeats: Sequence[RepeatRecord], kind_of: Callable[[Pair], str], *, is_alone: bool
) -> list[PairTimes]:
    """The pairs of a figure that are in every repeat, by kind."""
    of_repeats = [pair_values(figure, record.samples, is_alone=is_alone) for record in repeats]
    pairs = sorted(set.intersection(*(set(values) for values in of_repeats))) if of_repeats else []
    kinds = grouped((kind_of(pair), pair) for pair in pairs)
    found: list[PairTimes] = []
    for kind, own in kinds.items():
        values = {pair: tuple(repeat[pair] for repeat in of_repeats) for pair in own}
        if not all(value > 0 for each in values.values() for value in each):
            continue
        middles = [median(repeat) for repeat in zip(*values.values(), strict=True)]
        is_time = figure.better is Better.LOWER
        slowness = {
            pair: tuple(v / m if is_time else m / v for v, m in zip(each, middles, strict=True))
            for pair, each in values.items()
        }
        found.append(PairTimes(figure.name, kind, slowness, values))
    return found


def pair_values(figure: Figure, samples: Sequence[Sample], *, is_alone: bool) -> dict[Pair, float]:
    """The value of each pair in one repeat: of the best burst of its best visit, or of its median visit."""
    visits: dict[Pair, list[float]] = {}
    for sample in samples:
        pair = pair_of(sample.point)
        if pair is not None and sample.series == figure.series:
            visits.setdefault(pair, []).append(figure.value(_best_burst(sample) if is_alone else sample))
    if not is_alone:
        return {pair: median(own) for pair, own in visits.items()}
    best = min if figure.better is Better.LOWER else max
    return {pair: best(own) for pair, own in visits.items()}


def _best_burst(sample: Sample) -> Sample:
    best_s = sample.extra.get("best_s")
    if not isinstance(best_s, int | float) or best_s <= 0:
        return sample
    return Sample(sample.series, sample.i, float(best_s), sample.work, sample.rank, sample.point)


def pair_sampling(pairs: Collection[Pair], params: Params) -> PairSampling | None:
    """The sampling of an experiment with these parameters that measured these pairs, each once; None if its number of
    ranks is unknown."""
    given = (params.get(name) for name in ("ranks", "rounds", "seed"))
    ranks, rounds, seed = (value if type(value) is int else None for value in given)
    if ranks is None or ranks < 2 or any(rank >= ranks for pair in pairs for rank in pair):
        return None
    partners = Counter(rank for pair in pairs for rank in pair)
    each = [partners[rank] for rank in range(ranks)]
    of_rounds = None if rounds is None else all_rounds(ranks)
    return PairSampling(len(pairs), ranks * (ranks - 1) // 2, min(each), max(each), seed, rounds, of_rounds)
