"""`seatrial.history/1`: the history of a figure as one JSON object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypedDict

from seatrial.analysis.history import FALSE_ALARM_RATE
from seatrial.model.json_object import filled
from seatrial.model.json_shape import Json, shape
from seatrial.model.results.history import FigureHistory


@shape(None)
class HistoryJson(TypedDict):
    """The history of a figure over sessions."""

    schema: Literal["seatrial.history/1"]
    false_alarm_rate: Annotated[float, "share of histories without a change in which one is named, at most"]
    series: list[FigureHistory]


def history_document(found: Sequence[FigureHistory]) -> Json:
    """The document."""
    return filled(HistoryJson, None, false_alarm_rate=FALSE_ALARM_RATE, series=found)
