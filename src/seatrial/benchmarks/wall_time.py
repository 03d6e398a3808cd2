"""The figure of a whole run by our own clock."""

from __future__ import annotations

from seatrial.model.benchmark import Better, Figure
from seatrial.model.declaration import WALL
from seatrial.model.role import Role


def wall_time(work: str) -> Figure:
    """Elapsed seconds of a run of the program: lower is better."""
    return Figure(
        name=WALL,
        series=WALL,
        unit="s",
        better=Better.LOWER,
        value=lambda sample: sample.elapsed_s,
        work=work,
        role=Role.PROGRAM_START,
    )
