"""A screen of a cluster: what was measured on each node and between nodes, and the odd ones among them.

Figures are in SI units. A ratio is the value of the odd one over the usual value of the others.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import overload

from seatrial.model.benchmark import Better
from seatrial.model.fact import FactValue
from seatrial.model.frozen import Frozen
from seatrial.model.parameter import Value
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
    """A counter of a link of a node (its name in `model.link_counters`) that grew while the cluster was measured."""

    node: str
    port: str
    counter: str
    grew_by: int


class ScreenInput(Frozen):
    """All that a screen uses. `switch_of` has the leaf switch of each node whose switch is known.

    `not_apart` are pairs of nodes that share CPUs: messages between them show the scheduler, not a link.
    `failed` says what was tried and gave no figure.
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
    link_counts: tuple[LinkCount, ...] = ()


class Odd(Frozen):
    """One that is unlike the others. `what` names it, `nodes` are those that it concerns.

    `usual` is the median of the others, `distance` how many times their own spread it is away (None: they do not
    spread, or no statistics were needed). `sureness` is one minus the p-value, adjusted for everything that was
    screened; for a fact that was read, or an error that was counted, it is 1, and `false_alarm_rate` 0. Where the
    others counted none, `ratio` is over one.
    """

    kind: OddKind
    what: str
    nodes: tuple[str, ...]
    benchmark: str
    figure: str
    unit: Unit
    value: float
    usual: float
    ratio: float
    distance: float | None
    sureness: float
    false_alarm_rate: float
    remedy: str
    n: int
    why: str = ""
    parameters: Mapping[str, Value] = {}


class NotSeenAgain(Frozen):
    """A node or device that was odd, but not when it was measured again: `ratio` and `later` are over the others."""

    kind: OddKind
    what: str
    benchmark: str
    figure: str
    ratio: float
    later: float
    parameters: Mapping[str, Value] = {}


class ValueOfFact(Frozen):
    """A value of a fact, and the nodes that have it; `value` is None for nodes that do not state the fact."""

    value: FactValue | None
    nodes: tuple[str, ...]


class FactThatDiffers(Frozen):
    """A fact on which nodes differ, its most frequent value first. `odd` are nodes with a rare value."""

    fact: str
    values: tuple[ValueOfFact, ...]
    odd: tuple[str, ...]


class NodeClasses(Frozen):
    """Two classes of nodes in a figure, instead of odd ones: `minority` at `ratio` of the others.

    `differ_in` are the facts that all of one class share and none of the other has.
    """

    benchmark: str
    figure: str
    minority: tuple[str, ...]
    n: int
    ratio: float
    differ_in: tuple[str, ...] = ()
    parameters: Mapping[str, Value] = {}


class FigureOverNodes(Frozen):
    """How a figure is distributed: `medians` of each of `items`, and the range of the middle 90 % over the median."""

    kind: OddKind
    benchmark: str
    figure: str
    unit: Unit
    better: Better
    items: tuple[Item, ...]
    medians: tuple[float, ...]
    median: float
    spread: tuple[float, float]
    parameters: Mapping[str, Value] = {}


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
