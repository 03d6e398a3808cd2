"""What was found in results folders as JSON objects: `seatrial.history/1`, of figures over sessions,
`seatrial.screen/1`, the odd nodes, devices, links and switches of a cluster, and `seatrial.folders/1`, the folders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, NotRequired, TypedDict

from seatrial.analysis.folder import FolderSummary
from seatrial.analysis.history import FALSE_ALARM_RATE
from seatrial.model.json_object import filled
from seatrial.model.json_shape import From, Json, Keywords, Positive, Text, shape
from seatrial.model.results.history import FigureHistory
from seatrial.model.results.no_cpu import NoCpu
from seatrial.model.study.screen import (
    FactThatDiffers,
    FigureOverNodes,
    LinkCount,
    NodeClasses,
    NotSeenAgain,
    Odd,
    Screen,
)


@shape(None)
class HistoryJson(TypedDict):
    """The history of a figure over sessions."""

    schema: Literal["seatrial.history/1"]
    false_alarm_rate: Annotated[float, "share of histories without a change in which one is named, at most"]
    series: list[FigureHistory]


def history_document(found: Sequence[FigureHistory]) -> Json:
    """The document."""
    return filled(HistoryJson, None, false_alarm_rate=FALSE_ALARM_RATE, series=found)


_Probability = Annotated[float, Keywords(minimum=0, maximum=1)]


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


def _nodes(found: Screen) -> list[Json]:
    return [{"name": node, "switch": found.switch_of.get(node)} for node in found.nodes]


def _links(found: Screen) -> list[Json]:
    return [{"a": a, "b": b} for a, b in dict.fromkeys(pair for figure in found.pairs for pair in figure.pairs)]


@shape(Screen)
class ScreenJson(TypedDict):
    """The answer of `seatrial screen`."""

    schema: Literal["seatrial.screen/1"]
    nodes: Annotated[list[ScreenedNodeJson], From(_nodes)]
    links: Annotated[list[ScreenedLinkJson], From(_links), "the pairs of nodes between which messages were measured"]
    odd: Annotated[list[Odd], "the most certain first"]
    not_seen_again: Annotated[list[NotSeenAgain], "what was odd, but not when it was measured again"]
    facts_that_differ: list[FactThatDiffers]
    classes: list[NodeClasses]
    figures: list[FigureOverNodes]
    link_counters: Annotated[
        list[LinkCount], From("link_counts"), "those that grew while the cluster was measured, errors first"
    ]
    no_cpu: NotRequired[Annotated[list[NoCpu], "nodes whose programs were ready to run without a CPU"]]
    not_screened: Annotated[list[Text], "what could not be screened, and why"]
    false_alarm_rate: Annotated[_Probability, "the probability that a screen names anything if nothing is odd"]
    margin: Annotated[Positive, "nodes that differ by less than this share are not named"]


def screen_document(found: Screen) -> Json:
    """The document."""
    return filled(ScreenJson, found)


@shape(None)
class FoldersJson(TypedDict):
    """Results folders."""

    schema: Literal["seatrial.folders/1"]
    folders: list[FolderSummary]


def folders_document(found: Sequence[FolderSummary]) -> Json:
    """The document."""
    return filled(FoldersJson, None, folders=found)
