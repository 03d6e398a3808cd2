"""`seatrial.history/1`: the history of a figure as one JSON object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypedDict

from seatrial.analysis.history import FALSE_ALARM_RATE
from seatrial.model.benchmark import Better
from seatrial.model.difference import Difference
from seatrial.model.history import Change, FigureHistory, Session
from seatrial.model.json_shape import Keywords, Settings, filled, shape
from seatrial.model.units import Unit

_OneOrMore = Annotated[int, Keywords(minimum=1)]


@shape(Session)
class SessionJson(TypedDict):
    """The repeats that one process recorded."""

    at: Annotated[float, "start of the first repeat, in seconds since the epoch"]
    median: Annotated[float, "median of its repeats, in the unit of the figure"]
    n_repeats: _OneOrMore


@shape(Difference)
class ChangedJson(TypedDict):
    """What was recorded to differ between the two sides of a change; whether it is the reason is unknown."""

    what: str
    baseline: str | None
    candidate: str | None


@shape(Change)
class ChangeJson(TypedDict):
    """A change of level between two sessions."""

    index: Annotated[int, "place in `sessions` of the first one after it, from 0", Keywords(minimum=1)]
    last_before: Annotated[float, "start of the last session before it, in seconds since the epoch"]
    first_after: Annotated[float, "start of the first session after it, in seconds since the epoch"]
    before: Annotated[float, "median of the sessions before it, back to the previous change"]
    after: Annotated[float, "median of the sessions after it, up to the next change"]
    ratio: Annotated[float, "after over before"]
    sureness: Annotated[float, "1 - p of a permutation test", Keywords(minimum=0, maximum=1)]
    differences: list[ChangedJson]


@shape(FigureHistory)
class FigureHistoryJson(TypedDict):
    """A figure on one host."""

    benchmark: str
    figure: str
    parameters: Settings
    host: str
    unit: Unit
    better: Better
    sessions: list[SessionJson]
    changes: list[ChangeJson]
    why_not: Annotated[str, "why no change could be found; empty: one could"]


@shape(None)
class HistoryJson(TypedDict):
    """The history of a figure over sessions."""

    schema: Literal["seatrial.history/1"]
    false_alarm_rate: Annotated[float, "share of histories without a change in which one is named, at most"]
    series: list[FigureHistoryJson]


def history_document(found: Sequence[FigureHistory]) -> HistoryJson:
    """The document."""
    return HistoryJson(
        schema="seatrial.history/1",
        false_alarm_rate=FALSE_ALARM_RATE,
        series=[filled(FigureHistoryJson, one) for one in found],
    )
