"""The figure of molecular dynamics that users wait for: the time of one step."""

from __future__ import annotations

from seatrial.model.benchmark import Better, Figure


def time_step(series: str, work: str) -> Figure:
    """Seconds of a step, from samples that count their `steps`."""
    return Figure(
        name="step",
        series=series,
        unit="s",
        better=Better.LOWER,
        value=lambda sample: sample.elapsed_s / sample.work["steps"],
        work=work,
    )
