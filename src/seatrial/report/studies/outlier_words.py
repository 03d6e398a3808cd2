"""Text about outliers."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.model.outlier import Outlier, Screening
from seatrial.report.pages.tables import Cell, Column, Table
from seatrial.report.studies.effect import signed
from seatrial.report.units import NO_VALUE, count, settings


def outlier_headline(outliers: Sequence[Outlier]) -> str:
    """The number of outliers, and the first names."""
    if not outliers:
        return "No outliers: all values agree with their peers"
    named = list(dict.fromkeys(one.what for one in outliers))
    more = f" and {len(named) - 4} more" if len(named) > 4 else ""
    return f"{count(len(named), 'outlier')}: {', '.join(named[:4])}{more}"


def outlier_lines(outliers: Sequence[Outlier]) -> list[str]:
    """The reliability of a screen that found outliers."""
    if not outliers:
        return []
    rate = max(one.false_alarm_rate for one in outliers)
    return [
        f"A screen like this reports a false outlier in {rate * 100:.3g} % of cases where all are alike. Noise with "
        "a rare second level looks like an outlier and is reported as one."
    ]


def screening_lines(screening: Screening | None) -> list[str]:
    """The result of a screen of pairs of ranks: the slow ones with their confidence, or that none is slow."""
    if screening is None:
        return []
    rate = f"{screening.false_alarm_rate * 100:.3g} %"
    lines = [f"slow: {slow_words(one)}" for one in screening.outliers]
    if not lines and screening.n and not screening.is_inconclusive:
        lines = [f"none of {screening.n} {screening.of} is slow"]
    if lines:
        lines[-1] += f"; false alarms in {rate} of cases where all are alike"
    return [*lines, *([f"no conclusion: {screening.why_not}"] if screening.why_not else [])]


def slow_words(one: Outlier) -> str:
    """A slow one: its figure, ratio and confidence."""
    return f"{one.what}: {one.figure} {one.ratio:.3g} x its peers (confidence {confidence_words(one.sureness)})"


def outlier_row(one: Outlier) -> list[str]:
    """The cells for OUTLIER_COLUMNS."""
    figure = f"{one.benchmark} {one.figure} {settings(one.parameters)}".rstrip()
    return [one.what, figure, f"{signed((one.ratio - 1) * 100, 1)} %", confidence_words(one.sureness), str(one.n)]


def confidence_words(sureness: float) -> str:
    """A confidence that never rounds up to 100 %."""
    return "> 99.99 %" if sureness > 0.9999 else f"{sureness * 100:.2f} %"


OUTLIER_COLUMNS = ("Which", "Figure", "vs. peers", "Confidence", "Of")


def outlier_table(outliers: Sequence[Outlier]) -> Table:
    """A row per outlier."""
    numeric = ("vs. peers", "Confidence", "Of")
    columns = [Column(name, numeric=name in numeric) for name in OUTLIER_COLUMNS]
    rows = [[Cell(text or NO_VALUE) for text in outlier_row(one)] for one in outliers]
    return Table(f"{count(len(outliers), 'value')} far from the median of their peers", columns, rows)
