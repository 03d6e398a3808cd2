"""The sections of a study on the page: the content of each, and its template."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from seatrial.analysis.answer import reaches_of
from seatrial.model.spelling import label
from seatrial.model.study.comparison import Difference
from seatrial.model.study.result import BestOfResult, Compared, ScalingResult
from seatrial.report.charts.distributions import Recorded, distributions, drawn_pairs, drift_words, in_order
from seatrial.report.charts.forest import forest
from seatrial.report.charts.scaling import efficiency_chart, fit_chart, scaling_chart, scaling_table
from seatrial.report.charts.vega import Chart
from seatrial.report.pages.view import Cell, Cells, Table
from seatrial.report.studies import best_of_words, change_words, scaling_words
from seatrial.report.studies.answer_words import reach_sentence
from seatrial.report.studies.article import Section, chart_section
from seatrial.report.studies.container_section import container_sections, is_stated_by_facts
from seatrial.report.studies.design import design_lines, fairness_headline, said_once, spoken, unintended_first
from seatrial.report.studies.verdicts import comparison_table, headline, in_order_of_sizes, shared

_MOST_UNFOLDED = 12
_FEWEST_TO_FOLD = 16
_MOST_SCALING_CHARTS = 12

_RATIOS = (
    "The candidate relative to the baseline, for each figure. The verdict is whether the thick line is inside or "
    "outside the shaded band. A thick line that crosses an edge of the band needs more repeats or a different margin."
)
_SPREAD = (
    "The values behind the medians. Look for two clusters on one side (a median between them represents neither), long "
    "tails, and overlap between the sides."
)
_TIME = (
    "The same repeats in the order of measurement. Look whether both sides move together (the machine drifted, and "
    "blocks compensate for it) or only one does, and whether the first repeats differ from the others."
)

_LEFT_OUT = "What the comparison was to include, and why it does not. It is in no table and no verdict."


def comparison_sections(compared: Sequence[Compared], ident: str, record: Recorded) -> list[Section]:
    """Fairness, verdicts, containers, ratios, distributions, order of time; the last three only if there is anything
    to draw.

    Empty if nothing was compared.
    """
    if not compared:
        return []
    comparisons = [comparison for comparison, _ in in_order_of_sizes(compared)]
    names = [name for _, name in in_order_of_sizes(compared)]
    left_out = list(dict.fromkeys(text for one in compared for text in one.lost))
    sections: list[Section] = []
    if left_out:
        context = {"about": _LEFT_OUT, "lines": left_out, "charts": []}
        sections.append(Section("left-out", "Not compared", "charts", context))
    if comparisons or (not left_out and any(one.differences for one in compared)):
        sections.append(Section("fairness", "Is it a fair comparison?", "fairness", _fairness(compared)))
    if not comparisons:
        return sections
    sections.append(Section("verdicts", "Verdicts", "verdicts", _verdicts(compared)))
    sections += container_sections(compared)
    number = "The comparison" if len(comparisons) == 1 else f"{len(comparisons)} comparisons"
    named = list(zip(names, comparisons, strict=True))
    numbers = comparison_table(named, f"{number}: medians and ratios of the raw figures")
    held = " · ".join(label(*item) for item in shared([one.parameters for one in comparisons]).items())
    ratios = {"about": _RATIOS, "charts": forest(comparisons, names, ident), "table": numbers, "held": held}
    sections.append(Section("ratios", "Ratios with their intervals", "ratios", ratios))
    sections += _where(compared)
    spread = distributions(comparisons, names, ident)
    drifts = [f"{one.subject}: {drift_words(one.comparison)}." for one in drawn_pairs(comparisons, names)]
    sections += chart_section("distributions", "Distributions", _SPREAD, [spread])
    return sections + chart_section("order", "Over time", _TIME, [in_order(comparisons, names, ident, record)], drifts)


def _where(compared: Sequence[Compared]) -> list[Section]:
    """The breakdowns of a difference; empty if no probe recorded them."""
    found = change_words.breakdowns_of(compared)
    lines: list[str] = []
    for one in found:
        lines += [
            f"{change_words.breakdown_title(one)}: {change_words.breakdown_sentence(one)}.",
            *change_words.change_lines(one),
            *change_words.breakdown_lines(one),
        ]
    tables = [made for one in found if (made := change_words.breakdown_table(one)) is not None]
    context = {"about": change_words.BREAKDOWN_RULE, "tables": tables, "lines": lines}
    return [Section("where", "Where the difference comes from", "breakdown", context)] if found else []


def _fairness(compared: Sequence[Compared]) -> dict[str, Any]:
    pairs = [pair for pair in unintended_first(compared) if not is_stated_by_facts(*pair)]
    several = len(compared) > 1
    unintended = [pair for pair in pairs if not pair[1].intended]
    asked = [pair for pair in pairs if pair[1].intended and not pair[1].follows_from]
    followed = [pair for pair in pairs if pair[1].intended and pair[1].follows_from]
    return {
        "headline": fairness_headline(compared),
        "unintended": _differences("Unintended differences", unintended, several, tone="alarm"),
        "asked": _differences("Intended: what the comparison is about", asked, several),
        "followed": _differences("Consequences of the intended differences", followed, several),
        "design": design_lines(compared),
    }


def _differences(
    caption: str, pairs: Sequence[tuple[Compared, Difference]], several: bool, tone: str = ""
) -> Table | None:
    """One row per difference; the headings name the sides if there are only two. None without differences."""
    if not pairs:
        return None
    follows = any(difference.follows_from for _, difference in pairs)
    sides = ["Baseline", "Candidate", "Comparison"]
    if not several:
        sides = [f"Baseline: {pairs[0][0].baseline}", f"Candidate: {pairs[0][0].candidate}"]
    rows: list[Cells] = []
    for one, difference in pairs:
        cells = [Cell(difference.what, tone=tone), _side(difference.baseline), _side(difference.candidate)]
        more = [one.candidate] * several + [difference.follows_from] * follows
        rows.append([*cells, *more])
    return Table.of(caption, ["What", *sides, *["Follows from"] * follows], rows)


def _side(text: str | None) -> Cell:
    return Cell("absent", tone="none") if text is None else Cell(text)


def _verdicts(compared: Sequence[Compared]) -> dict[str, Any]:
    made = spoken(compared)
    shown = made if len(made) <= _FEWEST_TO_FOLD else made[:_MOST_UNFOLDED]
    counts = headline(compared) if len(made) > 1 else ""
    return {"counts": counts, "shown": shown, "folded": made[len(shown) :]}


def scaling_sections(results: Sequence[ScalingResult], ident: str) -> list[Section]:
    """One section for all scaling results: a part for each figure. Only the first ones have charts."""
    if not results:
        return []
    parts = []
    said: set[str] = set()
    for number, result in enumerate(results, start=1):
        own = f"{ident}-{number}"
        (reach,) = reaches_of([result])
        makers: tuple[Callable[[ScalingResult, str], Chart | None], ...] = (scaling_chart, efficiency_chart, fit_chart)
        drawn = [maker(result, own) for maker in makers] if number <= _MOST_SCALING_CHARTS else []
        lines = [
            scaling_words.scaling_design(result),
            scaling_words.crossing_words(result),
            *(scaling_words.fit_words(result, fit) for fit in result.fits),
        ]
        lines += [scaling_words.no_fit_words(result), result.note if result.fits else ""]
        parts.append(
            {
                "subject": f"{result.benchmark} {result.figure}",
                "headline": reach_sentence(reach) if len(results) > 1 else "",
                "lines": said_once(lines, said),
                "charts": [chart for chart in drawn if chart is not None],
                "table": scaling_table(result),
            }
        )
    return [Section("scaling", "Scaling", "scaling", {"parts": parts})]


def best_of_sections(results: Sequence[BestOfResult]) -> list[Section]:
    """One section for all sweeps: the winner, its lead, all contenders."""
    said: set[str] = set()
    parts = [
        {
            "subject": best_of_words.best_of_figure(result),
            "headline": best_of_words.best_of_headline(result) if len(results) > 1 else "",
            "lines": said_once(best_of_words.best_of_lines(result), said),
            "table": best_of_words.contenders_table(result),
        }
        for result in results
    ]
    return [Section("best-of", "Best of the sweep", "best_of", {"parts": parts})] if parts else []
