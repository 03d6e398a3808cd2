"""How the measured pairs of ranks cover all pairs and ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from seatrial.benchmarks.mpi.tournament import all_rounds
from seatrial.model.pair_sampling import PairSampling
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


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
