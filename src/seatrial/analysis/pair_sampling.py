"""How the measured pairs of ranks cover all pairs, the ranks, and the switches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from seatrial.benchmarks.mpi.tournament import all_rounds
from seatrial.model.pair_sampling import PairSampling, SwitchCoverage
from seatrial.model.parameter import Params

Pair = tuple[int, int]


def pair_sampling(pairs: Collection[Pair], params: Params) -> PairSampling | None:
    """The sampling of an experiment with these parameters that measured these pairs, each once; None if its number of
    ranks is not known."""
    ranks, rounds, seed = (_whole(params.get(name)) for name in ("ranks", "rounds", "seed"))
    if ranks is None or ranks < 2 or any(rank >= ranks for pair in pairs for rank in pair):
        return None
    partners = Counter(rank for pair in pairs for rank in pair)
    each = [partners[rank] for rank in range(ranks)]
    of_rounds = None if rounds is None else all_rounds(ranks)
    return PairSampling(len(pairs), ranks * (ranks - 1) // 2, min(each), max(each), seed, rounds, of_rounds)


def switch_coverage(
    pairs: Collection[Pair], hosts: Sequence[str], switch_of: Mapping[str, str]
) -> tuple[SwitchCoverage, ...]:
    """How the pairs cover each switch, by its name. `hosts` are the nodes of the ranks, `switch_of` the switch of each
    node; pairs on one node, and nodes whose switch is not known, do not count."""
    inside: Counter[str] = Counter()
    across: Counter[str] = Counter()
    switches = sorted({switch_of[host] for host in hosts if host in switch_of})
    met: dict[str, set[str]] = {switch: set() for switch in switches}
    for a, b in pairs:
        one, other = (switch_of.get(hosts[rank]) for rank in (a, b))
        if one is None or other is None or hosts[a] == hosts[b]:
            continue
        if one == other:
            inside[one] += 1
            continue
        across.update((one, other))
        met[one].add(other)
        met[other].add(one)
    others = len(switches) - 1
    return tuple(SwitchCoverage(each, inside[each], across[each], len(met[each]), others) for each in switches)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
