"""The point-to-point messages of a collective, rank by rank: for communicators that a simulator does not support.

Rounds follow each other: a rank may send in one round what it received in the round before.

Sources: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations in MPICH", IJHPCA
19(1), 2005 (binomial trees, recursive doubling with the ranks beyond a power of two folded in, ring, pairwise
exchange); D. Hensgen, R. Finkel, U. Manber, "Two Algorithms for Barrier Synchronization", IJPP 17(1), 1988
(dissemination); W. D. Hillis, G. L. Steele, "Data Parallel Algorithms", CACM 29(12), 1986 (scan).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from seatrial.model.frozen import Frozen


class RankMessage(NamedTuple):
    """A message with another rank of the communicator."""

    peer: int
    size_B: int


class Round(Frozen):
    """The messages that a rank sends and receives at the same time."""

    sends: tuple[RankMessage, ...] = ()
    receives: tuple[RankMessage, ...] = ()


class Shape(Frozen):
    """A collective as one rank sees it. `block_B`: the bytes of one rank's block; `root`: -1 for none; `sent_B` and
    `received_B`: the bytes to and from each rank, if they differ."""

    name: str
    rank: int = 0
    size: int = 1
    block_B: int = 0
    root: int = -1
    sent_B: Sequence[int] = ()
    received_B: Sequence[int] = ()


def rounds_of(shape: Shape) -> list[Round]:
    """The rounds of a rank. `shape.name` is the blocking MPI function without its prefix ("Allreduce").

    Raises KeyError for an unknown collective.
    """
    rounds = _ROUNDS[shape.name](shape)
    return [step for step in rounds if step.sends or step.receives]


def is_known(name: str) -> bool:
    """Whether `rounds_of` supports the collective."""
    return name in _ROUNDS


def _powers(size: int) -> list[int]:
    """1, 2, 4, ... below a number of ranks."""
    return [1 << bit for bit in range((size - 1).bit_length())]


def _barrier(shape: Shape) -> list[Round]:
    return [
        Round(
            (RankMessage((shape.rank + distance) % shape.size, 0),),
            (RankMessage((shape.rank - distance) % shape.size, 0),),
        )
        for distance in _powers(shape.size)
    ]


def _children(shape: Shape) -> tuple[int | None, list[tuple[int, int]]]:
    """In a binomial tree from the root: the parent, and the children with the number of ranks in the subtree of each,
    largest first."""
    relative = (shape.rank - shape.root) % shape.size
    mask = 1
    while mask < shape.size and not relative & mask:
        mask *= 2
    parent = None if relative == 0 else (relative - mask + shape.root) % shape.size
    children = []
    while mask > 1:
        mask //= 2
        if relative + mask < shape.size:
            below = min(mask, shape.size - relative - mask)
            children.append(((relative + mask + shape.root) % shape.size, below))
    return parent, children


def _down(shape: Shape, has_own_blocks: bool) -> list[Round]:
    """From the root down the tree: one block, or a block for each rank below."""
    parent, children = _children(shape)
    below = 1 + sum(ranks for _, ranks in children)
    received = [] if parent is None else [Round(receives=(_blocks(shape, parent, below, has_own_blocks),))]
    return received + [Round(sends=(_blocks(shape, child, ranks, has_own_blocks),)) for child, ranks in children]


def _up(shape: Shape, has_own_blocks: bool) -> list[Round]:
    """The same the other way."""
    return [Round(step.receives, step.sends) for step in reversed(_down(shape, has_own_blocks))]


def _blocks(shape: Shape, peer: int, ranks: int, has_own_blocks: bool) -> RankMessage:
    return RankMessage(peer, shape.block_B * (ranks if has_own_blocks else 1))


def _allreduce(shape: Shape) -> list[Round]:
    power = 1 << (shape.size.bit_length() - 1)
    folded = shape.size - power
    part = shape.block_B
    if shape.rank < 2 * folded and shape.rank % 2 == 0:  # its odd neighbour takes part for it
        return [Round(sends=(RankMessage(shape.rank + 1, part),)), Round(receives=(RankMessage(shape.rank + 1, part),))]
    rounds = []
    among = shape.rank // 2 if shape.rank < 2 * folded else shape.rank - folded
    if shape.rank < 2 * folded:
        rounds.append(Round(receives=(RankMessage(shape.rank - 1, part),)))
    for mask in _powers(power):
        other = among ^ mask
        peer = 2 * other + 1 if other < folded else other + folded
        rounds.append(Round((RankMessage(peer, part),), (RankMessage(peer, part),)))
    if shape.rank < 2 * folded:
        rounds.append(Round(sends=(RankMessage(shape.rank - 1, part),)))
    return rounds


def _ring(shape: Shape) -> list[Round]:
    """Allgather and Allgatherv: in step k each rank forwards the block of the rank k before it to the next."""
    blocks = list(shape.received_B) or [shape.block_B] * shape.size
    after, before = (shape.rank + 1) % shape.size, (shape.rank - 1) % shape.size
    return [
        Round(
            (RankMessage(after, blocks[(shape.rank - step) % shape.size]),),
            (RankMessage(before, blocks[(shape.rank - step - 1) % shape.size]),),
        )
        for step in range(shape.size - 1)
    ]


def _pairwise(shape: Shape) -> list[Round]:
    blocks = [shape.block_B] * shape.size
    sent_B, received_B = shape.sent_B or blocks, shape.received_B or blocks
    rounds = []
    for step in range(1, shape.size):
        ahead, behind = (shape.rank + step) % shape.size, (shape.rank - step) % shape.size
        rounds.append(Round((RankMessage(ahead, sent_B[ahead]),), (RankMessage(behind, received_B[behind]),)))
    return rounds


def _reduce_scatter(shape: Shape) -> list[Round]:
    """Each rank sends the blocks that are counted as received."""
    own_B = shape.received_B[shape.rank] if shape.received_B else shape.block_B
    return _pairwise(replace(shape, sent_B=shape.received_B, received_B=[own_B] * shape.size))


def _gatherv(shape: Shape) -> list[Round]:
    if shape.rank != shape.root:
        return [Round(sends=(RankMessage(shape.root, shape.block_B),))]
    return [Round(receives=_others(shape, shape.received_B))]


def _scatterv(shape: Shape) -> list[Round]:
    if shape.rank != shape.root:
        return [Round(receives=(RankMessage(shape.root, shape.block_B),))]
    return [Round(sends=_others(shape, shape.sent_B))]


def _others(shape: Shape, sizes_B: Sequence[int]) -> tuple[RankMessage, ...]:
    return tuple(RankMessage(peer, size_B) for peer, size_B in enumerate(sizes_B) if peer != shape.rank)


def _scan(shape: Shape) -> list[Round]:
    rounds = []
    for distance in _powers(shape.size):
        ahead, behind = shape.rank + distance, shape.rank - distance
        sends = (RankMessage(ahead, shape.block_B),) if ahead < shape.size else ()
        receives = (RankMessage(behind, shape.block_B),) if behind >= 0 else ()
        rounds.append(Round(sends, receives))
    return rounds


_ROUNDS: dict[str, Callable[[Shape], list[Round]]] = {
    "Barrier": _barrier,
    "Bcast": partial(_down, has_own_blocks=False),
    "Reduce": partial(_up, has_own_blocks=False),
    "Allreduce": _allreduce,
    "Gather": partial(_up, has_own_blocks=True),
    "Gatherv": _gatherv,
    "Scatter": partial(_down, has_own_blocks=True),
    "Scatterv": _scatterv,
    **dict.fromkeys(("Allgather", "Allgatherv"), _ring),
    **dict.fromkeys(("Alltoall", "Alltoallv", "Alltoallw"), _pairwise),
    **dict.fromkeys(("Reduce_scatter", "Reduce_scatter_block"), _reduce_scatter),
    **dict.fromkeys(("Scan", "Exscan"), _scan),
}
