"""A chart on the page: a picture, a caption on how to read it, and a table of its numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from seatrial.model.frozen import Frozen
from seatrial.report.pages.svg import Svg
from seatrial.report.pages.tables import Table
from seatrial.report.pages.view import BenchmarkView, TrialView


class Chart(Frozen):
    """One chart. `caption` states how to read it and what was left out."""

    title: str
    caption: str
    svg: Svg
    table: Table


ChartMaker = Callable[[TrialView, BenchmarkView], Iterable[Chart]]
"""Makes the charts that the figures of one benchmark allow: none, one or several."""
