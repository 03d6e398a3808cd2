"""The actions of each rank of a traced program, for replay; of an incomplete trace, the part that can be replayed.

Time outside MPI is computation; so are calls without an action in a replay (one-sided, files, neighbourhood
collectives), which `LeftOut` counts. The replay predicts the time of all other calls. A receive has the source and tag
of the message that arrived, so that the replay matches messages as the run did: MPI keeps the order of messages with
the same source, tag and communicator. Collectives of all ranks remain collectives; those of fewer ranks, and
nonblocking ones, become messages (`collective_messages`). Nonblocking ones are posted all at once, as in SMPI.

A replay has one sequence for each rank, even if several threads were in calls at the same time. In that case the
messages of a call are posted where it began and waited for where it ended: in the run, everything it waited for had
begun by then, so the replay cannot wait for a later action.

The part of an incomplete trace that can be replayed: actions that have a counterpart on the other ranks.

A truncated trace, or a program that was killed, leaves messages without a receiver and collectives that some ranks did
not reach; a replay would wait for them forever. Among messages with the same source, destination and tag, and among
collectives, the first ones match each other: the rest is dropped.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import islice, tee, zip_longest
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from seatrial.model.frozen import Frozen
from seatrial.profiler.capture.functions import function_names
from seatrial.profiler.trace.collective_messages import Shape, is_known, rounds_of
from seatrial.profiler.trace.trace_file import Flag, Record, RecordKind, TraceWorld

CREATION_B = 4
"""To create a communicator, its ranks agree on a number: an Allreduce of this many bytes."""
_EAGER_B = 4096
"""A send up to this size that completed at once is replayed as a blocking one: it does not wait for its receiver."""
_MOST_THREADS = 64  # Of a rank, in calls at the same time.


class Compute(NamedTuple):
    """Time that the rank spends by itself."""

    seconds: float


class Send(NamedTuple):
    """To a rank of the world; `is_posted`: nonblocking."""

    dest: int
    tag: int
    size_B: int
    is_posted: bool


class Receive(NamedTuple):
    """From a rank of the world; `is_posted`: nonblocking."""

    source: int
    tag: int
    size_B: int
    is_posted: bool


class Wait(NamedTuple):
    """For the oldest posted message with this source, destination and tag."""

    source: int
    dest: int
    tag: int


class WorldCollective(NamedTuple):
    """A blocking collective of all ranks of the world. `root` is a rank of the world, -1 for none."""

    name: str
    block_B: int
    root: int


Action = Compute | Send | Receive | Wait | WorldCollective


class CallsLeftOut(Struct):
    """What a replay leaves out: calls by name, whose time becomes computation, and messages outside the world."""

    calls: Counter[str] = field(default_factory=Counter)
    messages_outside: int = 0


Tags = dict[tuple[int, int | None], int]
"""One number for each tag of each communicator, from 1 in the order of requests: a replay has a single communicator.
Tag None is for the messages of collectives."""


class RankActions:
    """The actions of one rank. `has_collectives`: if False, messages replace collectives."""

    def __init__(
        self, world: TraceWorld, rank: int, tags: Tags, left_out: CallsLeftOut, has_collectives: bool = True
    ) -> None:
        self._world = world
        self._trace = world.traces[rank]
        self._rank = rank
        self._tags = tags
        self._left_out = left_out
        self._of_all = COLLECTIVES_OF_ALL if has_collectives else frozenset()
        self._posted: dict[int, list[Action]] = {}
        self._known = world.communicators[rank]

    def __iter__(self) -> Iterator[Action]:
        """The actions in order. Pending messages are waited for at the end."""
        trace = self._trace
        since = trace.loaded
        waited = 0
        in_progress: list[tuple[int, int, list[Action]]] = []  # calls of other threads: their end, and their waits
        yield Compute(trace.loaded_at_s - self._world.began_s)
        calls, later = tee(heads_of(trace.records()))
        for (head, parts), following in zip_longest(calls, islice(later, 1, None)):
            while in_progress and in_progress[0][0] <= head.begin:
                yield from heappop(in_progress)[-1]
            waited += head.waited
            actions = list(self._of(head, parts))
            if not actions and head.kind in _ONLY_TIME:
                continue
            yield Compute(max(0, head.begin - since - waited) / trace.ticks_per_s)
            since, waited = max(since, head.end), 0
            others = [in_progress[0][0]] if in_progress else []
            others += [following[0].begin] if following is not None else []
            if head.end <= min(others, default=head.end):
                yield from actions
                continue
            posts, rest = self._posts_and_waits(actions)
            yield from posts
            if rest:
                heappush(in_progress, (head.end, head.place, rest))
        for _, _, rest in sorted(in_progress):
            yield from rest
        end = trace.ended or since
        yield Compute(max(0, end - since - waited) / trace.ticks_per_s)
        for waits in self._posted.values():
            yield from waits

    def _posts_and_waits(self, actions: list[Action]) -> tuple[list[Action], list[Action]]:
        """What a call posts, and what it waits for: also all rounds of a collective after the first."""
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
            case RecordKind.CALL:
                self._leave_out(head)
            case RecordKind.MESSAGES:
                yield from self._messages(head)
            case RecordKind.POST | RecordKind.POSTED_COLLECTIVE:
                for record in (head, *parts):
                    if record.kind == RecordKind.POST:
                        yield from self._post(record)
                    elif record.kind == RecordKind.POSTED_COLLECTIVE:
                        yield from self._post_collective(record, parts if record is head else [])
            case RecordKind.DONE:
                for record in (head, *(part for part in parts if part.kind == RecordKind.DONE)):
                    for place in record.numbers():
                        yield from self._posted.pop(place, [])
            case RecordKind.CREATION:
                shape = None if head.flags & Flag.INTER else Shape("Allreduce", block_B=CREATION_B)
                yield from self._collective(head, shape)
            case RecordKind.COLLECTIVE:
                yield from self._collective(head, self._shape(head, parts, _plain_name(head)))

    def _messages(self, head: Record) -> Iterator[Action]:
        messages = head.messages()
        sends = bool(head.flags & Flag.SENDS) and not self._is_outside(messages.dest)
        receives = self._has_received(head) and not self._is_outside(messages.source)
        is_buffered = "bsend" in _name(head).lower()
        waits: list[Action] = []
        if sends:
            send = Send(messages.dest, self._tag(head, messages.send_tag), messages.sent_B, receives or is_buffered)
            yield send
            if send.is_posted:
                waits.append(Wait(self._rank, messages.dest, send.tag))
        if receives:
            receive = Receive(messages.source, self._tag(head, messages.receive_tag), messages.received_B, sends)
            yield receive
            if receive.is_posted:
                waits.append(Wait(messages.source, self._rank, receive.tag))
        if is_buffered:
            self._posted[head.place] = waits
        else:
            yield from waits

    def _post(self, record: Record) -> Iterator[Action]:
        messages = record.messages()
        waits: list[Action] = []
        if record.flags & Flag.SENDS and not self._is_outside(messages.dest):
            is_posted = not record.flags & Flag.AT_ONCE or messages.sent_B > _EAGER_B
            send = Send(messages.dest, self._tag(record, messages.send_tag), messages.sent_B, is_posted)
            yield send
            if is_posted:
                waits.append(Wait(self._rank, messages.dest, send.tag))
        if self._has_received(record) and not self._is_outside(messages.source):
            tag = self._tag(record, messages.receive_tag)
            yield Receive(messages.source, tag, messages.received_B, is_posted=True)
            waits.append(Wait(messages.source, self._rank, tag))
        if waits:
            self._posted[record.place] = waits

    def _has_received(self, record: Record) -> bool:
        return bool(record.flags & Flag.RECEIVES and record.flags & Flag.COMPLETED)

    def _is_outside(self, rank: int) -> bool:
        outside = not 0 <= rank < self._world.size
        self._left_out.messages_outside += outside
        return outside

    def _tag(self, record: Record, tag: int | None) -> int:
        communicator = self._known.get(record.comm)
        return self._tags.setdefault((communicator.id if communicator else 0, tag), len(self._tags) + 1)

    def _shape(self, head: Record, parts: list[Record], name: str) -> Shape | None:
        """The collective with the counts in its parts; None if some of them are missing."""
        collective = head.collective()
        members = self._members(head)[0]
        if members and collective.root >= len(members):
            raise self._trace.damage(f"the root {collective.root} of a collective of {len(members)} ranks")
        counts: dict[bool, list[int]] = {False: [], True: []}
        for part in parts:
            if part.kind == RecordKind.COUNTS:
                counts[bool(part.flags & Flag.OF_RECEIVES)] += part.counts()
        if len(counts[False]) + len(counts[True]) != collective.counts or head.flags & Flag.INTER:
            return None
        sent_B = counts[False]
        is_in_place = name in {"Alltoallv", "Alltoallw"} and not counts[True]
        received_B = sent_B if is_in_place else counts[True]
        return Shape(name, 0, 1, collective.block_B, collective.root, sent_B, received_B)

    def _collective(self, head: Record, shape: Shape | None) -> Iterator[Action]:
        members, _ = self._members(head)
        if shape is not None and len(members) == self._world.size > 1 and shape.name in self._of_all:
            yield WorldCollective(shape.name, shape.block_B, members[shape.root] if shape.root >= 0 else -1)
            return
        for posts, waits in self._rounds(head, head, shape):
            yield from posts
            yield from waits

    def _post_collective(self, record: Record, parts: list[Record]) -> Iterator[Action]:
        made_at = record.collective().made_at
        made = record if made_at == 0 else self._trace.record(made_at - 1)
        all_waits: list[Action] = []
        for posts, waits in self._rounds(record, made, self._shape(record, parts, _plain_name(made))):
            yield from posts
            all_waits += waits
        self._posted[record.place] = all_waits

    def _rounds(self, record: Record, made: Record, shape: Shape | None) -> Iterator[tuple[list[Action], list[Action]]]:
        """The messages of each round of a collective, posted together, and the waits for them. One that is unknown is
        left out, under the name of the call that made it."""
        members, own = self._members(record)
        if shape is None or not members or not is_known(shape.name):
            self._leave_out(made)
            return
        for step in rounds_of(replace(shape, rank=own, size=len(members))):
            tag = self._tag(record, None)
            receives = [Receive(members[part.peer], tag, part.size_B, is_posted=False) for part in step.receives]
            sends = [Send(members[part.peer], tag, part.size_B, is_posted=False) for part in step.sends]
            yield self._posts_and_waits([*receives, *sends])

    def _members(self, record: Record) -> tuple[tuple[int, ...], int]:
        """The communicator's members as ranks of the world, and this rank's number among them; () if unknown."""
        communicator = self._known.get(record.comm)
        if communicator is None:
            return (), 0
        return self._world.members(communicator.id) or (), communicator.rank

    def _leave_out(self, record: Record) -> None:
        self._left_out.calls[_name(record)] += 1


_ONLY_TIME = frozenset(
    (RecordKind.CALL, RecordKind.COLLECTIVE, RecordKind.CREATION, RecordKind.POSTED_COLLECTIVE, RecordKind.TEMPLATE)
)
"""Records that may be left out: then their time is computation."""

COLLECTIVES_OF_ALL = frozenset(
    (
        *("Barrier", "Bcast", "Reduce", "Allreduce", "Gather", "Scatter", "Allgather", "Alltoall", "Scan", "Exscan"),
        "Reduce_scatter_block",
    )
)
"""Possible names of a `WorldCollective`: those with equal blocks on all ranks."""


def heads_of(records: Iterator[Record]) -> Iterator[tuple[Record, list[Record]]]:
    """Each call that returned, with its parts, in the order in which they began. Parts follow their head; records of
    other threads may come in between.

    A thread reserves its record before it reads the clock. If it loses its CPU in between, its record comes
    too early, by any number of records, but each thread has one such record at most.
    """
    held: list[tuple[int, int, Record, list[Record]]] = []  # a heap
    latest: list[int] = []  # the latest beginnings, of as many records as there may be threads
    parts_of: dict[int, list[Record]] = {}
    for record in records:
        if record.is_part:
            if record.thread in parts_of:
                parts_of[record.thread].append(record)
            continue
        parts_of[record.thread] = []
        heappush(held, (record.begin, record.place, record, parts_of[record.thread]))
        insort(latest, record.begin)
        if len(latest) > _MOST_THREADS:
            latest.pop(0)
        while held and len(latest) == _MOST_THREADS and latest[0] >= held[0][2].end:
            *_, head, parts = heappop(held)
            if head.call:
                yield head, parts
    yield from ((head, parts) for *_, head, parts in sorted(held) if head.call)


def _name(record: Record) -> str:
    names = function_names()
    return names[record.call - 1] if 0 < record.call <= len(names) else f"function {record.call}"


def _plain_name(record: Record) -> str:
    """The name of the blocking form of a collective, without MPI_ and _c."""
    name = _name(record).removeprefix("MPI_").removesuffix("_c").removesuffix("_init")
    return name if is_known(name) or not name.startswith("I") else name[1:].capitalize()


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


class RankProgram(Frozen):
    """The actions of each rank. Iterate over them once and in this order: this also counts what is left out."""

    ranks: tuple[Iterable[Action], ...]
    left_out: CallsLeftOut
    matching: Matching | None


def program_of(world: TraceWorld, has_collectives: bool = True) -> RankProgram:
    """The actions of all ranks; of incomplete traces, those that have a counterpart."""
    tags: Tags = {}
    left_out = CallsLeftOut()
    matching = None if world.is_whole else Matching()
    if matching is not None:
        for rank in range(world.size):
            matching.count(rank, RankActions(world, rank, tags, CallsLeftOut(), has_collectives))
    ranks: list[Iterable[Action]] = []
    for rank in range(world.size):
        actions = RankActions(world, rank, tags, left_out, has_collectives)
        ranks.append(actions if matching is None else matching.kept(rank, actions))
    return RankProgram(tuple(ranks), left_out, matching)


def _next_is_within(message: _Message, so_far: Counter[_Message], others: Counter[_Message]) -> bool:
    so_far[message] += 1
    return so_far[message] <= others[message]
