"""What stands apart from its kind, in words."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.model.outlier import Outlier, Screening
from seatrial.report.pages.tables import Cell, Column, Table
from seatrial.report.studies.effect import signed
from seatrial.report.units import NO_VALUE, count, settings


def outlier_headline(outliers: Sequence[Outlier]) -> str:
    """How many, and the first by name."""
    if not outliers:
        return "No outlier: nothing stands apart from its kind"
    named = list(dict.fromkeys(one.what for one in outliers))
    more = f" and {len(named) - 4} more" if len(named) > 4 else ""
    return f"{count(len(named), 'outlier')}: {', '.join(named[:4])}{more}"


def outlier_lines(outliers: Sequence[Outlier]) -> list[str]:
    """What a screen that names something is worth."""
    if not outliers:
        return []
    rate = max(one.false_alarm_rate for one in outliers)
    return [
        f"A screen like this names something in {rate * 100:.3g} % of cases where all are alike. Noise of which a "
        "rare second level is part looks like an outlier, and is named as one."
    ]


def screening_lines(screening: Screening | None) -> list[str]:
    """What a screen of pairs of ranks came to: who is slow and how sure that is, or that nobody is."""
    if screening is None:
        return []
    rate = f"{screening.false_alarm_rate * 100:.3g} %"
    lines = [f"slow: {slow_words(one)}" for one in screening.outliers]
    if not lines and screening.n and not screening.is_untold:
        lines = [f"none of {screening.n} {screening.of} is slow"]
    if lines:
        lines[-1] += f"; where all are alike, somebody is named in {rate} of cases"
    return [*lines, *([f"not told: {screening.why_not}"] if screening.why_not else [])]


def slow_words(one: Outlier) -> str:
    """Who is slow, in what, by how much and how surely."""
    return f"{one.what}: {one.figure} {one.ratio:.3g} x its kind (sureness {sureness_words(one.sureness)})"


def outlier_row(one: Outlier) -> list[str]:
    """Which, its figure, how far from its kind, how sure, of how many."""
    figure = f"{one.benchmark} {one.figure} {settings(one.parameters)}".rstrip()
    return [one.what, figure, f"{signed((one.ratio - 1) * 100, 1)} %", sureness_words(one.sureness), str(one.n)]


def sureness_words(sureness: float) -> str:
    """A sureness that never rounds up to certainty."""
    return "> 99.99 %" if sureness > 0.9999 else f"{sureness * 100:.2f} %"


OUTLIER_COLUMNS = ("Which", "Figure", "To its kind", "Sureness", "Of")


def outlier_table(outliers: Sequence[Outlier]) -> Table:
    """All of them, as given."""
    numeric = ("To its kind", "Sureness", "Of")
    columns = [Column(name, numeric=name in numeric) for name in OUTLIER_COLUMNS]
    rows = [[Cell(text or NO_VALUE) for text in outlier_row(one)] for one in outliers]
    return Table(f"{count(len(outliers), 'value')} apart from the median of their kind", columns, rows)
