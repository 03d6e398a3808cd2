"""The messages of collectives: each send has a receive, and all data arrive."""

from __future__ import annotations

from collections import Counter, deque

import pytest

from seatrial.profiler.trace.collective_messages import Shape, is_known, rounds_of

ALIKE = ["Barrier", "Bcast", "Reduce", "Allreduce", "Gather", "Scatter", "Allgather", "Alltoall", "Scan", "Exscan"]
SIZES = [1, 2, 3, 4, 5, 7, 8, 13, 16]


def shapes(name: str, size: int) -> list[Shape]:
    root = size // 2 if name in {"Bcast", "Reduce", "Gather", "Scatter", "Gatherv", "Scatterv"} else -1
    table = [[10 * i + j for j in range(size)] for i in range(size)]
    own = [100 + i for i in range(size)]
    made = []
    for rank in range(size):
        sent = table[rank] if name == "Alltoallv" else own if name == "Scatterv" and rank == root else ()
        received: list[int] | tuple[()] = ()
        if name == "Alltoallv":
            received = [table[other][rank] for other in range(size)]
        elif name in {"Allgatherv", "Reduce_scatter"} or (name == "Gatherv" and rank == root):
            received = own
        block = own[rank] if name.endswith("v") else 7
        made.append(Shape(name, rank, size, block, root, sent, received))
    return made


def replayed(all_shapes: list[Shape]) -> dict[int, set[int]]:
    """Whose data each rank has at the end, with messages that are received in the order in which they were sent. Fails
    where ranks wait for each other for ever, sizes differ, or a message is left."""
    rounds = [deque(rounds_of(shape)) for shape in all_shapes]
    holds = {shape.rank: {shape.rank} for shape in all_shapes}
    wires: dict[tuple[int, int], deque[tuple[int, set[int]]]] = {}
    has_sent = [False] * len(rounds)
    moved = True
    while moved:
        moved = False
        for rank, left in enumerate(rounds):
            if not left:
                continue
            if not has_sent[rank]:
                for part in left[0].sends:
                    wires.setdefault((rank, part.peer), deque()).append((part.size_B, set(holds[rank])))
                has_sent[rank] = moved = True
            if all(wires.get((part.peer, rank)) for part in left[0].receives):
                for part in left[0].receives:
                    size_B, data = wires[part.peer, rank].popleft()
                    assert size_B == part.size_B, (rank, part)
                    holds[rank] |= data
                left.popleft()
                has_sent[rank] = False
                moved = True
    assert not any(rounds) and not any(wires.values())
    return holds


@pytest.mark.parametrize("name", [*ALIKE, "Gatherv", "Scatterv", "Allgatherv", "Alltoallv", "Reduce_scatter"])
@pytest.mark.parametrize("size", SIZES)
def test_every_message_is_received_and_the_data_arrives(name: str, size: int) -> None:
    made = shapes(name, size)
    holds = replayed(made)
    everyone = set(range(size))
    root = made[0].root
    if name in {"Barrier", "Allreduce", "Allgather", "Allgatherv", "Alltoall", "Alltoallv", "Reduce_scatter"}:
        assert all(held == everyone for held in holds.values())
    elif name in {"Reduce", "Gather", "Gatherv"}:
        assert holds[root] == everyone
    elif name in {"Bcast", "Scatter", "Scatterv"}:
        assert all(root in held for held in holds.values())
    else:
        assert all(held == set(range(rank + 1)) for rank, held in holds.items())


def test_bytes_are_those_of_the_algorithms() -> None:
    def sent_B(name: str, size: int) -> Counter[int]:
        return Counter({s.rank: sum(p.size_B for r in rounds_of(s) for p in r.sends) for s in shapes(name, size)})

    assert sent_B("Allreduce", 8) == dict.fromkeys(range(8), 3 * 7), "recursive doubling: log2 of the ranks rounds"
    assert sent_B("Allgather", 5) == dict.fromkeys(range(5), 4 * 7), "a ring: every block but one's own"
    assert sum(sent_B("Gather", 4).values()) == (1 + 2 + 1) * 7, "a subtree of two passes on both blocks"
    assert sum(sent_B("Bcast", 13).values()) == 12 * 7, "a tree: one message for each other rank"
    assert not any(sent_B("Barrier", 8).values())


def test_unknown_collectives() -> None:
    assert is_known("Allreduce") and not is_known("Neighbor_alltoall")
    with pytest.raises(KeyError):
        rounds_of(Shape("Neighbor_alltoall", 0, 2))
