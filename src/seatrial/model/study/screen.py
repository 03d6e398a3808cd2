"""A screen of a cluster: what was measured on each node and between nodes, and the odd ones among them.

Figures are in SI units. A ratio is the value of the odd one over the usual value of the others.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, overload

from seatrial.model.benchmark.benchmark import Better
from seatrial.model.benchmark.parameter import Value
from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import As, Count, Finite, Hidden, Number, Positive, Settings, Share, Text, key, published
from seatrial.model.machine.fact import FactValue
from seatrial.model.machine.links import LINK_COUNTERS, CounterKind
from seatrial.model.results.no_cpu import NoCpu
from seatrial.model.units import Unit

FALSE_ALARM_RATE = 0.01
"""The probability that a screen names anything at all if nothing is odd: of all nodes, links and figures together."""

MARGIN = 0.05
"""Nodes that differ from the others by less than this are not named, however sure the difference is."""


class OddKind(StrEnum):
    """What is odd."""

    NODE = "node"
    DEVICE = "device"
    LINK = "link"
    SWITCH = "switch"


def with_kind(kind: str, what: str) -> str:
    """A name after what it is, which names such as "link of n3" say themselves."""
    return what if what.startswith(f"{kind} ") else f"{kind} {what}"


class Item(Frozen):
    """What one value of a figure belongs to: a node, or a device of it ("gpu 3")."""

    node: str
    device: str = ""

    @property
    def name(self) -> str:
        """As reports name it."""
        return f"{self.device} of {self.node}" if self.device else self.node


class RepeatsOfItems(Sequence[Sequence[float]]):
    """The repeats of each of many items, in little memory: those of an item are from its entry in `starts` up to the
    next."""

    __slots__ = ("_starts", "_values")

    def __init__(self, values: Sequence[float], starts: Sequence[int]) -> None:
        self._values = array("d", values) if set(map(type, values)) <= {float} else list(values)
        self._starts = array("q", starts)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __iter__(self) -> Iterator[Sequence[float]]:
        values = list(self._values)
        for start, end in pairwise(self._starts):
            yield values[start:end]

    @overload
    def __getitem__(self, index: int) -> Sequence[float]: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Sequence[float]]: ...

    def __getitem__(self, index: int | slice) -> Sequence[float] | Sequence[Sequence[float]]:
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        return list(self._values[self._starts[index] : self._starts[index + 1]])


class ItemFigure(Frozen):
    """One figure over nodes, or devices of nodes: `values` has the repeats of each item, all positive.

    `later` has those of an item, by its position, that a screen measured because the item was odd.
    """

    benchmark: str
    figure: str
    unit: Unit
    better: Better
    items: tuple[Item, ...]
    values: Sequence[Sequence[float]]
    parameters: Mapping[str, Value] = {}
    later: Mapping[int, Sequence[float]] = {}


class PairFigure(Frozen):
    """One figure of pairs of nodes: `values` has the repeats of each pair, all of the same length and positive."""

    benchmark: str
    figure: str
    unit: Unit
    better: Better
    pairs: tuple[tuple[str, str], ...]
    values: tuple[Sequence[float], ...]
    parameters: Mapping[str, Value] = {}


class HalfFigure(Frozen):
    """The bandwidth between the nodes of a switch and all others, when all of them exchange at once."""

    benchmark: str
    figure: str
    unit: Unit
    switches: tuple[str, ...]
    values: tuple[Sequence[float], ...]
    parameters: Mapping[str, Value] = {}


class LinkCount(Frozen):
    """A counter of a link of a node that grew during the measurement: errors, discards, congestion, retries.

    `counter` is its name in `model.machine.links`.
    """

    node: Text
    port: Text
    counter: Text
    grew_by: Count

    @property
    @key
    def kind(self) -> CounterKind:
        """What it is a sign of."""
        return LINK_COUNTERS[self.counter].kind

    @property
    @key
    def meaning(self) -> Text:
        """What it counts, in words."""
        return LINK_COUNTERS[self.counter].meaning


CountsOfNodes = Mapping[str, Mapping[str, int]]
"""Of one repeat: every node -> counter of links -> what it grew by."""


class NoResult(Frozen):
    """A benchmark that was tried on one node and gave no result there, and why."""

    node: str
    benchmark: str
    why: str


NodePair = tuple[str, str]


LEAST_CLOCK_S = 0.1
"""Clocks that a service synchronises differ by less."""


class ClockReading(Frozen):
    """At a time of a node's clock, by how much it was ahead of the clock that stamps files in the results folder, and
    the error of that; in seconds."""

    at_s: float
    ahead_s: float
    error_s: float


class FolderUse(Frozen):
    """What a node saw of the results folder in each repeat: seconds to make a folder and to write a small file; and the
    type of its file system there, "" if it is not known."""

    claim_s: Sequence[float] = ()
    write_s: Sequence[float] = ()
    clock: Sequence[ClockReading] = ()
    file_system: str = ""


FINGERPRINT = "fingerprint"
"""The note of a program, and the figure of a screen, of the bits that a deterministic run gave."""


class Fingerprints(Frozen):
    """The fingerprints of one program with equal settings and processors: node -> those of its repeats."""

    benchmark: str
    of_node: Mapping[str, tuple[str, ...]]


class ScreenInput(Frozen):
    """All that a screen uses. `switch_of` has the leaf switch of each node whose switch is known.

    `tried_pairs`: pairs of nodes that were measured by themselves, since nothing was measured on all nodes together ->
    why there is no result, "" if there is.

    `not_apart` are pairs of nodes that share CPUs: messages between them show the scheduler, not a link.
    `failed` says what was tried and gave no figure; `no_results` what of it was tried on one node, and `results` which
    benchmarks gave some on each. `no_cpu` are the nodes whose programs had no CPU for a part of the
    time.
    `oversubscription` is the designed ratio of the bandwidth of a switch's nodes to that of its uplinks, if known.
    """

    nodes: tuple[str, ...]
    figures: tuple[ItemFigure, ...] = ()
    pairs: tuple[PairFigure, ...] = ()
    halves: tuple[HalfFigure, ...] = ()
    facts: Mapping[str, Mapping[str, FactValue]] = {}
    switch_of: Mapping[str, str] = {}
    oversubscription: float | None = None
    not_apart: frozenset[tuple[str, str]] = frozenset()
    failed: tuple[str, ...] = ()
    no_results: tuple[NoResult, ...] = ()
    results: Mapping[str, frozenset[str]] = {}
    link_counts: tuple[LinkCount, ...] = ()
    counts_of_repeats: tuple[CountsOfNodes, ...] = ()
    no_cpu: tuple[NoCpu, ...] = ()
    tried_pairs: Mapping[NodePair, str] = {}
    folder_use: Mapping[str, FolderUse] = {}
    fingerprints: tuple[Fingerprints, ...] = ()


class Odd(Frozen):
    """One that is unlike the others.

    `distance` is None if the others do not spread, or no statistics were needed. `sureness` of a fact that was read, or
    an error that was counted, is 1, and `false_alarm_rate` 0. Where the others counted none, `ratio` is over one.
    """

    kind: OddKind
    what: Text
    nodes: Annotated[tuple[Text, ...], "the nodes that it concerns"]
    benchmark: Annotated[str, "empty: a fact that was read, not a figure that was measured"]
    figure: Text
    unit: Unit
    value: Number
    usual: Annotated[Number, "the median of the others; of uplinks that are compared with their design, the design"]
    ratio: Annotated[Number, "value over usual"]
    distance: Annotated[Finite, "from the others, in 1.48 of their median absolute deviations; null: not known"]
    sureness: Annotated[Share, "1 - p, adjusted for all that was screened"]
    false_alarm_rate: Annotated[Share, "of the whole screen"]
    remedy: Text
    n: Annotated[Count, "how many were compared"]
    why: str = ""
    parameters: Annotated[Mapping[str, Value], As(Settings)] = {}


class NotSeenAgain(Frozen):
    """A node or device that was odd, but not when it was measured again."""

    kind: OddKind
    what: Text
    benchmark: Text
    figure: Text
    ratio: Annotated[Positive, "at first, over the usual value of the others"]
    later: Annotated[Positive, "when it was measured again, over the same"]
    parameters: Annotated[Mapping[str, Value], As(Settings)] = {}


class ValueOfFact(Frozen):
    """A value of a fact, and who has it."""

    value: Annotated[FactValue | None, "null: the nodes do not state it"]
    nodes: tuple[Text, ...]


class FactThatDiffers(Frozen):
    """A fact on which nodes differ; the most frequent value first."""

    fact: Text
    values: tuple[ValueOfFact, ...]
    odd: Annotated[tuple[Text, ...], "the nodes with a rare value"]


@published("Classes")
class NodeClasses(Frozen):
    """Two classes of nodes in a figure, instead of odd ones.

    `differ_in` are the facts that all of one class share and none of the other has.
    """

    benchmark: str
    figure: Text
    minority: tuple[Text, ...]
    n: Count
    ratio: Annotated[Positive, "of the median of the smaller class to that of the larger one"]
    differ_in: Annotated[tuple[Text, ...], "the facts that tell the classes apart"] = ()
    parameters: Annotated[Mapping[str, Value], As(Settings)] = {}


class FigureOverNodes(Frozen):
    """A figure over nodes, devices, links of nodes, or switches; `names` and `medians` are in the same order."""

    kind: OddKind
    benchmark: str
    figure: Text
    unit: Unit
    better: Better
    items: Hidden[tuple[Item, ...]]
    medians: tuple[Number, ...]
    median: Number
    spread: Annotated[tuple[Number, Number], "the middle 90 %, over the median"]
    parameters: Annotated[Mapping[str, Value], As(Settings)] = {}

    @property
    @key
    def names(self) -> tuple[Text, ...]:
        """As reports name the items."""
        return tuple(item.name for item in self.items)


class Screen(Frozen):
    """The answer of a screen, most certain first. `not_screened` says what could not be, and why."""

    nodes: tuple[str, ...]
    switch_of: Mapping[str, str]
    odd: tuple[Odd, ...]
    facts_that_differ: tuple[FactThatDiffers, ...]
    classes: tuple[NodeClasses, ...]
    figures: tuple[FigureOverNodes, ...]
    pairs: tuple[PairFigure, ...]
    not_screened: tuple[str, ...]
    false_alarm_rate: float
    margin: float
    link_counts: tuple[LinkCount, ...] = ()
    not_seen_again: tuple[NotSeenAgain, ...] = ()
    no_cpu: tuple[NoCpu, ...] = ()
