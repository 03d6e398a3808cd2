"""What each rank of a traced program does, as a simulator replays it: computes, sends, receives, waits, collectives.

Time outside of MPI is computation; so is that of calls a replay has no action for (one-sided, files, neighbourhood
collectives), which `LeftOut` counts. Time inside of all others is what the replay finds out. A receive has the source
and tag of the message that it got, so that a replay matches it as the run did: of messages with one source, tag and
communicator MPI keeps the order. Collectives of all ranks stay collectives; those of fewer, and nonblocking ones,
become messages (`collective_messages`), the latter all at once when they are posted, as they are in SMPI.

A replay has one sequence for each rank, also where threads were in calls at the same time. Then what a call sends and
receives is posted where it began, and waited for where it ended: in the run, all that it waited for had begun by then,
so that the replay cannot wait for what stands behind it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import islice, tee, zip_longest
from typing import NamedTuple

from seatrial.profiler.capture.functions import function_names
from seatrial.profiler.trace.collective_messages import Round, Shape, is_known, rounds_of
from seatrial.profiler.trace.trace_file import Flag, Kind, Record
from seatrial.profiler.trace.world import TraceWorld

CREATION_B = 4
"""A communicator's creation is an agreement of its ranks on a number: an Allreduce of so many bytes."""
_AT_ONCE_B = 4096
"""A send that was complete at once and is no larger is a blocking one: it waits for its receiver nowhere."""


class Compute(NamedTuple):
    """Time of the rank alone."""

    seconds: float


class Send(NamedTuple):
    """To a rank of the world; `is_posted`: without waiting for it."""

    dest: int
    tag: int
    size_B: int
    is_posted: bool


class Receive(NamedTuple):
    """From a rank of the world; `is_posted`: without waiting for it."""

    source: int
    tag: int
    size_B: int
    is_posted: bool


class Wait(NamedTuple):
    """For the oldest posted message of that kind."""

    source: int
    dest: int
    tag: int


class Together(NamedTuple):
    """A blocking collective of all ranks of the world. `root` is a rank of the world, -1 where there is none."""

    name: str
    block_B: int
    root: int


Action = Compute | Send | Receive | Wait | Together


@dataclass(slots=True)
class LeftOut:
    """What a replay does not have: calls by name, whose time is computation."""

    calls: Counter[str] = field(default_factory=Counter)
    messages_outside: int = 0


class Tags:
    """One number for each tag of each communicator: a replay has but one communicator."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, int | None], int] = {}

    def number(self, communicator_id: int, tag: int | None) -> int:
        """From 1, in the order in which they are asked for; None is the tag of what collectives are made of."""
        return self._numbers.setdefault((communicator_id, tag), len(self._numbers) + 1)


class RankActions:
    """The actions of one rank. `has_collectives`: a simulator that has none gets messages in their place."""

    def __init__(
        self, world: TraceWorld, rank: int, tags: Tags, left_out: LeftOut, has_collectives: bool = True
    ) -> None:
        self._world = world
        self._trace = world.traces[rank]
        self._rank = rank
        self._tags = tags
        self._left_out = left_out
        self._of_all = COLLECTIVES_OF_ALL if has_collectives else frozenset()
        self._posted: dict[int, list[Wait]] = {}
        self._known = world.communicators[rank]

    def __iter__(self) -> Iterator[Action]:
        """In their order. What is left to be waited for is waited for at the end."""
        trace = self._trace
        since = trace.loaded
        waited = 0
        going_on: list[tuple[int, int, list[Action]]] = []  # calls of other threads: their end, and what is left then
        yield Compute(trace.loaded_at_s - self._world.began_s)
        calls, later = tee(heads_of(trace.records()))
        for (head, parts), following in zip_longest(calls, islice(later, 1, None)):
            while going_on and going_on[0][0] <= head.begin:
                yield from heappop(going_on)[-1]
            waited += head.waited
            actions = list(self._of(head, parts))
            if not actions and head.kind in _ONLY_TIME:
                continue
            yield Compute(max(0, head.begin - since - waited) / trace.ticks_per_s)
            since, waited = max(since, head.end), 0
            others = [going_on[0][0]] if going_on else []
            others += [following[0].begin] if following is not None else []
            if head.end <= min(others, default=head.end):
                yield from actions
                continue
            posts, rest = self._apart(actions)
            yield from posts
            if rest:
                heappush(going_on, (head.end, head.place, rest))
        for _, _, rest in sorted(going_on):
            yield from rest
        end = trace.ended or since
        yield Compute(max(0, end - since - waited) / trace.ticks_per_s)
        for waits in self._posted.values():
            yield from waits

    def _apart(self, actions: list[Action]) -> tuple[list[Action], list[Action]]:
        """What a call posts, and what it waits for; of a collective in rounds all but the first is waited for."""
        posts: list[Action] = []
        waits: list[Action] = []
        for i, action in enumerate(actions):
            match action:
                case Send(dest=dest, tag=tag):
                    peers = self._rank, dest
                case Receive(source=source, tag=tag):
                    peers = source, self._rank
                case _:
                    return posts, waits + actions[i:]
            posts.append(action._replace(is_posted=True))
            if not action.is_posted:
                waits.append(Wait(*peers, tag))
        return posts, waits

    def _of(self, head: Record, parts: list[Record]) -> Iterator[Action]:
        match head.kind:
            case Kind.CALL:
                self._leave_out(head)
            case Kind.MESSAGES:
                yield from self._messages(head)
            case Kind.POST | Kind.POSTED_COLLECTIVE:
                for record in (head, *parts):
                    if record.kind == Kind.POST:
                        yield from self._post(record)
                    elif record.kind == Kind.POSTED_COLLECTIVE:
                        yield from self._post_collective(record, parts if record is head else [])
            case Kind.DONE:
                for record in (head, *(part for part in parts if part.kind == Kind.DONE)):
                    for place in record.numbers():
                        yield from self._posted.pop(place, [])
            case Kind.CREATION:
                shape = None if head.flags & Flag.INTER else Shape("Allreduce", block_B=CREATION_B)
                yield from self._collective(head, shape)
            case Kind.COLLECTIVE:
                yield from self._collective(head, self._shape(head, parts, _plain_name(head)))

    def _messages(self, head: Record) -> Iterator[Action]:
        told = head.messages()
        sends = bool(head.flags & Flag.SENDS) and not self._is_outside(told.dest)
        receives = self._is_told(head) and not self._is_outside(told.source)
        is_buffered = "bsend" in _name(head).lower()
        waits = []
        if sends:
            send = Send(told.dest, self._tag(head, told.send_tag), told.sent_B, receives or is_buffered)
            yield send
            if send.is_posted:
                waits.append(Wait(self._rank, told.dest, send.tag))
        if receives:
            receive = Receive(told.source, self._tag(head, told.receive_tag), told.received_B, sends)
            yield receive
            if receive.is_posted:
                waits.append(Wait(told.source, self._rank, receive.tag))
        if is_buffered:
            self._posted[head.place] = waits
        else:
            yield from waits

    def _post(self, record: Record) -> Iterator[Action]:
        told = record.messages()
        waits = []
        if record.flags & Flag.SENDS and not self._is_outside(told.dest):
            is_posted = not record.flags & Flag.AT_ONCE or told.sent_B > _AT_ONCE_B
            send = Send(told.dest, self._tag(record, told.send_tag), told.sent_B, is_posted)
            yield send
            if is_posted:
                waits.append(Wait(self._rank, told.dest, send.tag))
        if self._is_told(record) and not self._is_outside(told.source):
            receive = Receive(told.source, self._tag(record, told.receive_tag), told.received_B, is_posted=True)
            yield receive
            waits.append(Wait(told.source, self._rank, receive.tag))
        if waits:
            self._posted[record.place] = waits

    def _is_told(self, record: Record) -> bool:
        return bool(record.flags & Flag.RECEIVES and record.flags & Flag.TOLD)

    def _is_outside(self, rank: int) -> bool:
        outside = not 0 <= rank < self._world.size
        self._left_out.messages_outside += outside
        return outside

    def _tag(self, record: Record, tag: int | None) -> int:
        communicator = self._known.get(record.comm)
        return self._tags.number(communicator.id if communicator else 0, tag)

    def _shape(self, head: Record, parts: list[Record], name: str) -> Shape | None:
        """The collective with the counts that its parts hold; None where something of it is not there."""
        told = head.collective()
        counts: dict[bool, list[int]] = {False: [], True: []}
        for part in parts:
            if part.kind == Kind.COUNTS:
                counts[bool(part.flags & Flag.OF_RECEIVES)] += part.counts()
        if len(counts[False]) + len(counts[True]) != told.counts or head.flags & Flag.INTER:
            return None
        sent_B = counts[False]
        is_in_place = name in {"Alltoallv", "Alltoallw"} and not counts[True]
        return Shape(name, 0, 1, told.block_B, told.root, sent_B, sent_B if is_in_place else counts[True])

    def _collective(self, head: Record, shape: Shape | None) -> Iterator[Action]:
        members, own = self._members(head)
        if shape is None or not members or not is_known(shape.name):
            self._leave_out(head)
            return
        if len(members) == 1:
            return
        if len(members) == self._world.size and shape.name in self._of_all:
            yield Together(shape.name, shape.block_B, members[shape.root] if shape.root >= 0 else -1)
            return
        for step in rounds_of(replace(shape, rank=own, size=len(members))):
            posts, waits = self._exchange(head, step, members)
            yield from posts
            yield from waits

    def _post_collective(self, record: Record, parts: list[Record]) -> Iterator[Action]:
        told = record.collective()
        made = record if told.made_at == 0 else self._trace.record(told.made_at - 1)
        shape = self._shape(record, parts, _plain_name(made))
        members, own = self._members(record)
        if shape is None or not members or not is_known(shape.name):
            self._leave_out(made)
            return
        all_waits: list[Wait] = []
        for step in rounds_of(replace(shape, rank=own, size=len(members))):
            posts, waits = self._exchange(record, step, members)
            yield from posts
            all_waits += waits
        self._posted[record.place] = all_waits

    def _exchange(self, record: Record, step: Round, members: tuple[int, ...]) -> tuple[list[Action], list[Wait]]:
        """The messages of one round, posted together, and what to wait for."""
        tag = self._tag(record, None)
        posts: list[Action] = []
        waits = []
        for part in step.receives:
            posts.append(Receive(members[part.peer], tag, part.size_B, is_posted=True))
            waits.append(Wait(members[part.peer], self._rank, tag))
        for part in step.sends:
            posts.append(Send(members[part.peer], tag, part.size_B, is_posted=True))
            waits.append(Wait(self._rank, members[part.peer], tag))
        return posts, waits

    def _members(self, record: Record) -> tuple[tuple[int, ...], int]:
        """The communicator's ranks of the world, and which of them this one is; () where that is not known."""
        communicator = self._known.get(record.comm)
        if communicator is None:
            return (), 0
        return self._world.members(communicator.id) or (), communicator.rank

    def _leave_out(self, record: Record) -> None:
        self._left_out.calls[_name(record)] += 1


_ONLY_TIME = frozenset((Kind.CALL, Kind.COLLECTIVE, Kind.CREATION, Kind.POSTED_COLLECTIVE, Kind.TEMPLATE))
"""Records that may be left out: then their time is that of the rank alone."""

COLLECTIVES_OF_ALL = frozenset(
    (
        *("Barrier", "Bcast", "Reduce", "Allreduce", "Gather", "Scatter", "Allgather", "Alltoall", "Scan", "Exscan"),
        "Reduce_scatter_block",
    )
)
"""What `Together` may be: each rank's block is alike."""


def heads_of(records: Iterator[Record]) -> Iterator[tuple[Record, list[Record]]]:
    """Each call that returned, with its parts, in order. Parts follow their head; records of other threads may stand
    between them, but none of a call that began after this one had ended."""
    waiting: list[tuple[Record, list[Record]]] = []
    for record in records:
        if record.is_part:
            for head, parts in reversed(waiting):
                if head.thread == record.thread:
                    parts.append(record)
                    break
            continue
        while waiting and (waiting[0][0].thread == record.thread or 0 < waiting[0][0].end <= record.begin):
            if waiting[0][0].call:
                yield waiting[0]
            waiting.pop(0)
        waiting.append((record, []))
    yield from (pair for pair in waiting if pair[0].call)


def _name(record: Record) -> str:
    names = function_names()
    return names[record.call - 1] if 0 < record.call <= len(names) else f"function {record.call}"


def _plain_name(record: Record) -> str:
    """That of a collective in its blocking form, without MPI_ and _c."""
    name = _name(record).removeprefix("MPI_").removesuffix("_c").removesuffix("_init")
    return name if is_known(name) or not name.startswith("I") else name[1:].capitalize()
