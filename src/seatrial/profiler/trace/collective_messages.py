"""The point-to-point messages of a collective, rank by rank: for communicators that a simulator does not support.

Rounds follow each other: a rank may send in one round what it received in the round before.

Sources: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations in MPICH", IJHPCA
19(1), 2005 (binomial trees, recursive doubling with the ranks beyond a power of two folded in, ring, pairwise
exchange); D. Hensgen, R. Finkel, U. Manber, "Two Algorithms for Barrier Synchronization", IJPP 17(1), 1988
(dissemination); W. D. Hillis, G. L. Steele, "Data Parallel Algorithms", CACM 29(12), 1986 (scan).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from seatrial.model.frozen import Frozen


class Part(NamedTuple):
    """A message with another rank of the communicator."""

    peer: int
    size_B: int


class Round(Frozen):
    """The messages that a rank sends and receives at the same time."""

    sends: tuple[Part, ...] = ()
    receives: tuple[Part, ...] = ()


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


def _barrier(shape: Shape) -> list[Round]:
    rounds = []
    distance = 1
    while distance < shape.size:
        ahead, behind = (shape.rank + distance) % shape.size, (shape.rank - distance) % shape.size
        rounds.append(Round((Part(ahead, 0),), (Part(behind, 0),)))
        distance *= 2
    return rounds


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


def _below(shape: Shape) -> int:
    """The number of ranks in this rank's subtree."""
    return 1 + sum(below for _, below in _children(shape)[1])


def _bcast(shape: Shape) -> list[Round]:
    parent, children = _children(shape)
    received = [] if parent is None else [Round(receives=(Part(parent, shape.block_B),))]
    return received + [Round(sends=(Part(child, shape.block_B),)) for child, _ in children]


def _reduce(shape: Shape) -> list[Round]:
    parent, children = _children(shape)
    received = [Round(receives=(Part(child, shape.block_B),)) for child, _ in reversed(children)]
    return received + ([] if parent is None else [Round(sends=(Part(parent, shape.block_B),))])


def _scatter(shape: Shape) -> list[Round]:
    parent, children = _children(shape)
    received = [] if parent is None else [Round(receives=(Part(parent, shape.block_B * _below(shape)),))]
    return received + [Round(sends=(Part(child, shape.block_B * below),)) for child, below in children]


def _gather(shape: Shape) -> list[Round]:
    parent, children = _children(shape)
    received = [Round(receives=(Part(child, shape.block_B * below),)) for child, below in reversed(children)]
    return received + ([] if parent is None else [Round(sends=(Part(parent, shape.block_B * _below(shape)),))])


def _allreduce(shape: Shape) -> list[Round]:
    power = 1 << (shape.size.bit_length() - 1)
    folded = shape.size - power
    part = shape.block_B
    if shape.rank < 2 * folded and shape.rank % 2 == 0:  # its odd neighbour takes part for it
        return [Round(sends=(Part(shape.rank + 1, part),)), Round(receives=(Part(shape.rank + 1, part),))]
    rounds = []
    among = shape.rank // 2 if shape.rank < 2 * folded else shape.rank - folded
    if shape.rank < 2 * folded:
        rounds.append(Round(receives=(Part(shape.rank - 1, part),)))
    mask = 1
    while mask < power:
        other = among ^ mask
        peer = 2 * other + 1 if other < folded else other + folded
        rounds.append(Round((Part(peer, part),), (Part(peer, part),)))
        mask *= 2
    if shape.rank < 2 * folded:
        rounds.append(Round(sends=(Part(shape.rank - 1, part),)))
    return rounds


def _ring(shape: Shape) -> list[Round]:
    """Allgather and Allgatherv: in step k each rank forwards the block of the rank k before it to the next."""
    blocks = list(shape.received_B) or [shape.block_B] * shape.size
    after, before = (shape.rank + 1) % shape.size, (shape.rank - 1) % shape.size
    return [
        Round(
            (Part(after, blocks[(shape.rank - step) % shape.size]),),
            (Part(before, blocks[(shape.rank - step - 1) % shape.size]),),
        )
        for step in range(shape.size - 1)
    ]


def _pairwise(shape: Shape, sent_B: Sequence[int], received_B: Sequence[int]) -> list[Round]:
    rounds = []
    for step in range(1, shape.size):
        ahead, behind = (shape.rank + step) % shape.size, (shape.rank - step) % shape.size
        rounds.append(Round((Part(ahead, sent_B[ahead]),), (Part(behind, received_B[behind]),)))
    return rounds


def _alltoall(shape: Shape) -> list[Round]:
    blocks = [shape.block_B] * shape.size
    return _pairwise(shape, blocks, blocks)


def _alltoallv(shape: Shape) -> list[Round]:
    return _pairwise(shape, shape.sent_B, shape.received_B)


def _reduce_scatter(shape: Shape) -> list[Round]:
    blocks = list(shape.received_B) or [shape.block_B] * shape.size
    return _pairwise(shape, blocks, [blocks[shape.rank]] * shape.size)


def _gatherv(shape: Shape) -> list[Round]:
    if shape.rank != shape.root:
        return [Round(sends=(Part(shape.root, shape.block_B),))]
    return [Round(receives=tuple(_others(shape, shape.received_B)))]


def _scatterv(shape: Shape) -> list[Round]:
    if shape.rank != shape.root:
        return [Round(receives=(Part(shape.root, shape.block_B),))]
    return [Round(sends=tuple(_others(shape, shape.sent_B)))]


def _others(shape: Shape, sizes_B: Sequence[int]) -> list[Part]:
    return [Part(peer, size_B) for peer, size_B in enumerate(sizes_B) if peer != shape.rank]


def _scan(shape: Shape) -> list[Round]:
    rounds = []
    distance = 1
    while distance < shape.size:
        ahead, behind = shape.rank + distance, shape.rank - distance
        sends = (Part(ahead, shape.block_B),) if ahead < shape.size else ()
        receives = (Part(behind, shape.block_B),) if behind >= 0 else ()
        rounds.append(Round(sends, receives))
        distance *= 2
    return rounds


_ROUNDS: dict[str, Callable[[Shape], list[Round]]] = {
    "Barrier": _barrier,
    "Bcast": _bcast,
    "Reduce": _reduce,
    "Allreduce": _allreduce,
    "Gather": _gather,
    "Gatherv": _gatherv,
    "Scatter": _scatter,
    "Scatterv": _scatterv,
    "Allgather": _ring,
    "Allgatherv": _ring,
    "Alltoall": _alltoall,
    "Alltoallv": _alltoallv,
    "Alltoallw": _alltoallv,
    "Reduce_scatter": _reduce_scatter,
    "Reduce_scatter_block": _reduce_scatter,
    "Scan": _scan,
    "Exscan": _scan,
}
