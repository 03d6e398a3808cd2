"""`seatrial.screen/1`: the odd nodes, devices, links and switches of a cluster as one JSON object."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from seatrial.model.benchmark import Better
from seatrial.model.fact import FactValue
from seatrial.model.json_shape import Count, Finite, From, Keywords, Positive, Settings, Text, filled, shape
from seatrial.model.link_counters import LINK_COUNTERS, CounterKind
from seatrial.model.screen import (
    FactThatDiffers,
    FigureOverNodes,
    LinkCount,
    NodeClasses,
    NotSeenAgain,
    Odd,
    OddKind,
    Screen,
    ValueOfFact,
)
from seatrial.model.units import Unit

_Probability = Annotated[float, Keywords(minimum=0, maximum=1)]


@shape(Odd)
class OddJson(TypedDict):
    """One that is unlike the others."""

    kind: OddKind
    what: Text
    nodes: Annotated[list[Text], "the nodes that it concerns"]
    benchmark: Annotated[str, "empty: a fact that was read, not a figure that was measured"]
    figure: Text
    parameters: Settings
    unit: Unit
    value: Finite
    usual: Annotated[Finite, "the median of the others; of uplinks that are compared with their design, the design"]
    ratio: Annotated[Finite, "value over usual"]
    distance: Annotated[Finite, "from the others, in 1.48 of their median absolute deviations; null: not known"]
    sureness: Annotated[_Probability, "1 - p, adjusted for all that was screened"]
    false_alarm_rate: Annotated[_Probability, "of the whole screen"]
    n: Annotated[Count, "how many were compared"]
    why: str
    remedy: Text


@shape(NotSeenAgain)
class NotSeenAgainJson(TypedDict):
    """A node or device that was odd, but not when it was measured again."""

    kind: OddKind
    what: Text
    benchmark: Text
    figure: Text
    parameters: Settings
    ratio: Annotated[Positive, "at first, over the usual value of the others"]
    later: Annotated[Positive, "when it was measured again, over the same"]


@shape(ValueOfFact)
class ValueOfFactJson(TypedDict):
    """A value of a fact, and who has it."""

    value: Annotated[FactValue | None, "null: the nodes do not state it"]
    nodes: list[Text]


@shape(FactThatDiffers)
class FactThatDiffersJson(TypedDict):
    """A fact on which nodes differ; the most frequent value first."""

    fact: Text
    values: list[ValueOfFactJson]
    odd: Annotated[list[Text], "the nodes with a rare value"]


@shape(NodeClasses)
class ClassesJson(TypedDict):
    """Two classes of nodes in a figure, instead of odd ones."""

    benchmark: str
    figure: Text
    parameters: Settings
    minority: list[Text]
    n: Count
    ratio: Annotated[Positive, "of the median of the smaller class to that of the larger one"]
    differ_in: Annotated[list[Text], "the facts that tell the classes apart"]


@shape(FigureOverNodes)
class FigureOverNodesJson(TypedDict):
    """A figure over nodes, devices, links of nodes, or switches; `names` and `medians` are in the same order."""

    kind: OddKind
    benchmark: str
    figure: Text
    parameters: Settings
    unit: Unit
    better: Better
    names: Annotated[list[Text], From(lambda one: [item.name for item in one.items])]
    medians: list[Finite]
    median: Finite
    spread: Annotated[tuple[Finite, Finite], "the middle 90 %, over the median"]


@shape(LinkCount)
class LinkCountJson(TypedDict):
    """A counter of a link of a node that grew during the measurement: errors, discards, congestion, retries."""

    node: Text
    port: Text
    counter: Text
    kind: Annotated[CounterKind, From(lambda one: LINK_COUNTERS[one.counter].kind)]
    grew_by: Count
    meaning: Annotated[Text, From(lambda one: LINK_COUNTERS[one.counter].meaning)]


@shape(None)
class ScreenedNodeJson(TypedDict):
    """A node, and its leaf switch."""

    name: Text
    switch: Annotated[str | None, "null: not known"]


@shape(None)
class ScreenedLinkJson(TypedDict):
    """Two nodes between which messages were measured."""

    a: Text
    b: Text


@shape(None)
class ScreenJson(TypedDict):
    """The answer of `seatrial screen`."""

    schema: Literal["seatrial.screen/1"]
    nodes: list[ScreenedNodeJson]
    links: Annotated[list[ScreenedLinkJson], "the pairs of nodes between which messages were measured"]
    odd: Annotated[list[OddJson], "the most certain first"]
    not_seen_again: Annotated[list[NotSeenAgainJson], "what was odd, but not when it was measured again"]
    facts_that_differ: list[FactThatDiffersJson]
    classes: list[ClassesJson]
    figures: list[FigureOverNodesJson]
    link_counters: Annotated[list[LinkCountJson], "those that grew while the cluster was measured, errors first"]
    not_screened: Annotated[list[Text], "what could not be screened, and why"]
    false_alarm_rate: Annotated[_Probability, "the probability that a screen names anything if nothing is odd"]
    margin: Annotated[Positive, "nodes that differ by less than this share are not named"]


def screen_document(found: Screen) -> ScreenJson:
    """The document."""
    pairs = dict.fromkeys(pair for figure in found.pairs for pair in figure.pairs)
    return ScreenJson(
        schema="seatrial.screen/1",
        nodes=[ScreenedNodeJson(name=node, switch=found.switch_of.get(node)) for node in found.nodes],
        links=[ScreenedLinkJson(a=a, b=b) for a, b in pairs],
        odd=[filled(OddJson, one) for one in found.odd],
        not_seen_again=[filled(NotSeenAgainJson, one) for one in found.not_seen_again],
        facts_that_differ=[filled(FactThatDiffersJson, one) for one in found.facts_that_differ],
        classes=[filled(ClassesJson, one) for one in found.classes],
        figures=[filled(FigureOverNodesJson, one) for one in found.figures],
        link_counters=[filled(LinkCountJson, one) for one in found.link_counts],
        not_screened=list(found.not_screened),
        false_alarm_rate=found.false_alarm_rate,
        margin=found.margin,
    )
