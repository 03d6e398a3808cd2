"""The schedule of mpi.pairs: rounds of disjoint pairs, of which a run may sample a few.

A round-robin tournament by the circle method (R. R. Anstice, 1853; see E. Lucas, Récréations mathématiques II, 1883):
the rank in seat i meets the rank in seat j in round i + j modulo the number of rounds. The seats are shuffled by a
seed, because neighbouring ranks are usually on one switch: unshuffled, the nodes of one switch would meet those of only
one or two others in a round. native/mpi/tournament.hpp makes the same schedule; each pair is in exactly one round.
"""

from __future__ import annotations

from functools import cache
from math import gcd

Pair = tuple[int, int]

_WORD = (1 << 64) - 1


def all_rounds(ranks: int) -> int:
    """The rounds in which every two of so many ranks meet once."""
    return ranks - 1 + ranks % 2


@cache
def rounds_by_spread(ranks: int) -> tuple[int, ...]:
    """All rounds, such that any first few are spread evenly over them: steps of about the golden section."""
    count = all_rounds(ranks)
    step = max(1, round(0.618034 * count))
    while gcd(step, count) != 1:
        step += 1
    return tuple(k * step % count for k in range(count))


@cache
def seats(ranks: int, seed: int) -> tuple[int, ...]:
    """The rank in each seat: the ranks in the order of their pattern words, which differ for each rank."""
    return tuple(sorted(range(ranks), key=lambda rank: _pattern_word(seed, rank)))


def pairs_of_round(ranks: int, seed: int, number: int) -> tuple[Pair, ...]:
    """The pairs (a, b), a < b, of a round, ascending; one rank is in none if their number is odd. The player in the
    last seat meets the one who would meet himself."""
    count, seated = all_rounds(ranks), seats(ranks, seed)
    found: list[Pair] = []
    for mine in range(ranks):
        other = (number - mine) % count if mine < count else mine
        other = count if mine == other else other
        if mine < other < ranks:
            a, b = seated[mine], seated[other]
            found.append((min(a, b), max(a, b)))
    return tuple(sorted(found))


def sampled_pairs(ranks: int, seed: int, rounds: int) -> tuple[Pair, ...]:
    """The pairs of the first so many rounds by spread, ascending."""
    chosen = rounds_by_spread(ranks)[:rounds]
    return tuple(sorted(pair for number in chosen for pair in pairs_of_round(ranks, seed, number)))


def _pattern_word(seed: int, place: int) -> int:
    """`mpi::pattern_word` of native/mpi/pattern.hpp (splitmix64's mixer)."""
    z = (seed * 0xD1342543DE82EF95 + place * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) & _WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _WORD
    return z ^ (z >> 31)
