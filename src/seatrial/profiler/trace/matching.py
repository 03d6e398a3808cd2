"""The part of an incomplete trace that can be replayed: actions that have a counterpart on the other ranks.

A truncated trace, or a program that was killed, leaves messages without a receiver and collectives that some ranks did
not reach; a replay would wait for them forever. Among messages with the same source, destination and tag, and among
collectives, the first ones match each other: the rest is dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from seatrial.model.frozen import Frozen
from seatrial.profiler.trace.actions import Action, LeftOut, RankActions, Receive, Send, Tags, Wait, WorldCollective
from seatrial.profiler.trace.world import TraceWorld

_Message = tuple[int, int, int]


class Matching(Struct):
    """Messages by (source, destination, tag) and collectives by rank, counted over all ranks."""

    sent: Counter[_Message] = field(default_factory=Counter)
    received: Counter[_Message] = field(default_factory=Counter)
    collectives: Counter[int] = field(default_factory=Counter)
    dropped: int = 0

    def count(self, rank: int, actions: Iterable[Action]) -> None:
        """Count a rank's actions; call it for each rank before `kept`."""
        self.collectives[rank] += 0
        for action in actions:
            if isinstance(action, Send):
                self.sent[rank, action.dest, action.tag] += 1
            elif isinstance(action, Receive):
                self.received[action.source, rank, action.tag] += 1
            elif isinstance(action, WorldCollective):
                self.collectives[rank] += 1

    def kept(self, rank: int, actions: Iterable[Action]) -> Iterator[Action]:
        """The actions of a rank, without unmatched ones and the waits for them."""
        sent: Counter[_Message] = Counter()
        received: Counter[_Message] = Counter()
        posted: Counter[_Message] = Counter()
        collectives = min(self.collectives.values(), default=0)
        for action in actions:
            if isinstance(action, Send):
                message = (rank, action.dest, action.tag)
                is_kept = _next_is_within(message, sent, self.received)
                posted[message] += is_kept and action.is_posted
            elif isinstance(action, Receive):
                message = (action.source, rank, action.tag)
                is_kept = _next_is_within(message, received, self.sent)
                posted[message] += is_kept and action.is_posted
            elif isinstance(action, Wait):
                if posted[action] > 0:
                    posted[action] -= 1
                    yield action
                continue
            elif isinstance(action, WorldCollective):
                is_kept = collectives > 0
                collectives -= 1
            else:
                is_kept = True
            if is_kept:
                yield action
            else:
                self.dropped += 1


class Program(Frozen):
    """The actions of each rank. Iterate over them once and in this order: this also counts what is left out."""

    ranks: tuple[Iterable[Action], ...]
    left_out: LeftOut
    matching: Matching | None


def program_of(world: TraceWorld, has_collectives: bool = True) -> Program:
    """The actions of all ranks; of incomplete traces, those that have a counterpart."""
    tags, left_out = Tags(), LeftOut()
    matching = None if world.is_whole else Matching()
    if matching is not None:
        for rank in range(world.size):
            matching.count(rank, RankActions(world, rank, tags, LeftOut(), has_collectives))
    ranks: list[Iterable[Action]] = []
    for rank in range(world.size):
        actions = RankActions(world, rank, tags, left_out, has_collectives)
        ranks.append(actions if matching is None else matching.kept(rank, actions))
    return Program(tuple(ranks), left_out, matching)


def _next_is_within(message: _Message, so_far: Counter[_Message], others: Counter[_Message]) -> bool:
    so_far[message] += 1
    return so_far[message] <= others[message]
