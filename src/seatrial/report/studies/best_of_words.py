"""Text about a sweep: the winner, and whether its lead is beyond the noise."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.model.best_of import BestOfResult, Contender
from seatrial.report.intervals import no_interval_words
from seatrial.report.studies.effect import UNDECIDED, change_words, effect_of, signed_words
from seatrial.report.units import arrow_meaning, count, label, show, show_range

_MOST_NAMED = 4

BIAS = (
    "The best of many looks better than it is, because luck helps to win: measure the winner again before quoting it."
)


def contender_name(contender: Contender, over: Sequence[str]) -> str:
    """The swept settings of a contender: "record 1 MiB · direct true"."""
    named = [label(name, contender.parameters[name]) for name in over if name in contender.parameters]
    return " · ".join(named) or "defaults"


def ranked(result: BestOfResult) -> list[Contender]:
    """The contenders with a value, best first."""
    return [contender for contender in result.contenders if contender.median is not None]


def best_of_headline(result: BestOfResult) -> str:
    """The winner, the runner-up and whether the gap beats the noise, in one line."""
    ranking = ranked(result)
    if not ranking:
        return f"No winner: none of {count(len(result.contenders), 'contender')} succeeded"
    winner = ranking[0]
    name = contender_name(winner, result.over)
    value = show(winner.median, result.unit)
    if len(ranking) == 1:
        return f"{name} is the only contender that succeeded: {value}"
    runner_up = contender_name(ranking[1], result.over)
    if result.is_beyond_noise:
        return f"{name} is the best with {value}; next is {runner_up}, {gap_words(result)}"
    open_, untested = len(open_contenders(result)), len(result.untested)
    if not open_:
        others = f"{runner_up} has" if len(ranking) == 2 else f"{untested} of {len(ranking) - 1} others have"
        return (
            f"the best is {UNDECIDED}: {name} leads with {value}, but {others} too few repeats ({result.needed} needed)"
        )
    others = contender_name(open_contenders(result)[0], result.over) if open_ == 1 else f"{open_} others"
    more = f", and {untested} have too few repeats ({result.needed} needed)" if untested else ""
    return f"the best is {UNDECIDED}: {name} leads with {value}, {_not_told(result, others)}{more}"


def _not_told(result: BestOfResult, others: str) -> str:
    """How far the contenders are from the leader that the noise does not tell from it."""
    if len(open_contenders(result)) == 1 and 1 in result.tied:
        return f"{others} is {gap_words(result)}"
    return f"but the noise does not tell {others} from it"


def place_words(result: BestOfResult, place: int) -> str:
    """The relation of a contender to the leader: "best", "leads", "undecided", "behind", "undecided: needs 8"."""
    if place == 0:
        return "best" if result.is_beyond_noise else "leads"
    if place in result.tied:
        return UNDECIDED
    if place in result.untested:
        return f"{UNDECIDED}: needs {count(result.needed, 'repeat')}"
    return "behind"


def gap_words(result: BestOfResult) -> str:
    """The runner-up compared with the winner: "2.1 % lower [1.2, 3.0]"."""
    gap = result.gap
    if gap is None or effect_of(gap) is None:
        return "at an unknown distance"
    if 1 in result.tied or gap.ci95_family is None:
        return signed_words(gap.ratio, gap.ci95_family, gap.margin)
    return change_words(gap.ratio, gap.ci95_family, gap.margin)


def open_contenders(result: BestOfResult) -> list[Contender]:
    """The contenders that the noise does not tell from the leader."""
    return [result.contenders[place] for place in result.tied if 0 < place < len(result.contenders)]


def best_of_lines(result: BestOfResult) -> list[str]:
    """Notes on a sweep: what is undecided, the cost, and the bias of the best figure."""
    ranking = ranked(result)
    lines = []
    undecided = open_contenders(result)
    if undecided:
        names = ", ".join(contender_name(one, result.over) for one in undecided[:_MOST_NAMED])
        more = f" and {len(undecided) - _MOST_NAMED} more" if len(undecided) > _MOST_NAMED else ""
        lines.append(f"Not told from the leader: {names}{more}. More repeats may decide.")
    contenders = count(len(result.contenders), "contender")
    lines.append(f"The search took {count(result.repeats, 'repeat')} of {contenders} in {show(result.cost_s, 's')}.")
    if len(ranking) > 1:
        lines.append(BIAS)
    return lines


def best_of_figure(result: BestOfResult) -> str:
    """The figure that decides the winner, and its direction."""
    fixed = " · ".join(label(name, value) for name, value in result.parameters.items() if name not in result.over)
    text = f"{result.benchmark}, by {result.figure} ({arrow_meaning(result.better)})"
    return f"{text}; {fixed}" if fixed else text


def contender_interval(result: BestOfResult, contender: Contender) -> str:
    """Its interval, or the reason for having none."""
    if contender.median is None:
        return ""
    if contender.ci95 is None:
        return no_interval_words(contender.n_repeats)
    return show_range(*contender.ci95, result.unit, beside=contender.median)
