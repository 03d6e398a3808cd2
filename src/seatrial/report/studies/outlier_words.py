"""Text about outliers."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.model.outlier import FleetSpread, MeasureAgain, Outlier, Screening, ScreenResult
from seatrial.model.pair_sampling import PairSampling
from seatrial.report.pages.tables import Cell, Column, Table
from seatrial.report.studies.effect import signed
from seatrial.report.units import NO_VALUE, count, settings

_MOST_NAMED = 8


def outlier_headline(screen: ScreenResult) -> str:
    """The number of outliers, and the first names."""
    outliers = screen.outliers
    if not outliers and screen.fleets:
        return f"No outliers: the nodes differ from each other in {count(len(screen.fleets), 'figure')}"
    if not outliers and screen.unconfirmed:
        return "No outliers: none of the nodes that were measured again differs from the others beside it"
    if not outliers:
        return "No outliers: all values agree with their peers"
    named = list(dict.fromkeys(one.what for one in outliers))
    more = f" and {len(named) - 4} more" if len(named) > 4 else ""
    return f"{count(len(named), 'outlier')}: {', '.join(named[:4])}{more}"


def fleet_words(fleet: FleetSpread) -> str:
    """How the nodes differ: the range of the middle 90 %, or two kinds."""
    figure = f"{fleet.benchmark} {fleet.figure} {settings(fleet.parameters)}".rstrip()
    if fleet.kinds is not None:
        named = ", ".join(fleet.minority[:_MOST_NAMED])
        more = f" and {len(fleet.minority) - _MOST_NAMED} more" if len(fleet.minority) > _MOST_NAMED else ""
        percent = signed((fleet.kinds[0] / fleet.kinds[1] - 1) * 100, 1)
        which = f"{len(fleet.minority)} of {fleet.n} ({named}{more})"
        return f"{figure}: two kinds of nodes: {which} differ from the others by {percent} %."
    low, high = (signed((end - 1) * 100, 1) for end in fleet.spread)
    return (
        f"{figure}: the {fleet.n} nodes truly differ, the middle 90 % from {low} to {high} % of their median, beyond "
        "the noise of the repeats. A node is named only if it is far beyond this spread."
    )


def outlier_lines(screen: ScreenResult) -> list[str]:
    """How the nodes differ, the reliability of a screen that found outliers, and what to measure again."""
    about = [fleet_words(fleet) for fleet in screen.fleets]
    if screen.outliers and screen.unconfirmed:
        about.append(f"Measured again and not confirmed: {', '.join(screen.unconfirmed)}.")
    again = [] if screen.again is None else [again_words(screen.again)]
    if not screen.outliers:
        return [*about, *again]
    rate = max(one.false_alarm_rate for one in screen.outliers)
    return [
        *about,
        f"A screen like this reports a false outlier in {rate * 100:.3g} % of cases where all are alike. Noise with "
        "a rare second level looks like an outlier and is reported as one.",
        *again,
    ]


def again_words(again: MeasureAgain) -> str:
    """What a second stage measures."""
    return (
        f"New repeats are more certain: measure the farthest ({', '.join(again.suspects)}) again, beside nodes drawn "
        f"at random ({', '.join(again.controls)}), {again.repeats} repeats on each, into another folder; then "
        "seatrial compare THIS_FOLDER THE_OTHER --along node."
    )


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
    lines += [f"no conclusion: {screening.why_not}"] if screening.why_not else []
    if screening.sampling is not None and screening.sampling.pairs < screening.sampling.of_pairs:
        lines.append(sampling_words(screening.sampling))
    return lines


def sampling_words(sampling: PairSampling) -> str:
    """Which pairs of all were measured, and what that can show."""
    least, most = sampling.least_partners, sampling.most_partners
    partners = f"{least}" if least == most else f"{least} to {most}"
    rounds = "" if sampling.rounds is None else f", {sampling.rounds} of {sampling.of_rounds} rounds"
    seed = "" if sampling.seed is None else f", seed {sampling.seed}"
    few = "" if sampling.tells_ranks else ": too few to distinguish a slow rank from a slow pair"
    share = f"{sampling.share * 100:.3g} %"
    return (
        f"a sample of {sampling.pairs} of {sampling.of_pairs} pairs ({share}{rounds}{seed}); each rank met {partners} "
        f"others{few}; a single slow pair is in the sample with a chance of {share}"
    )


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
