"""Text about a sweep: the winner, and whether its lead is beyond the noise."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.model.best_of import BestOfResult, Contender
from seatrial.report.intervals import no_interval_words
from seatrial.report.studies.effect import MINUS, effect_of
from seatrial.report.units import arrow_meaning, count, label, show, show_range

_MOST_NAMED = 4


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
        return f"{name} wins with {value}; {runner_up} is {gap_words(result)}, beyond the noise"
    tied, untested = len(tied_contenders(result)), len(result.untested)
    if not tied:
        others = f"{runner_up} has" if len(ranking) == 2 else f"{untested} of {len(ranking) - 1} others have"
        return f"{name} leads with {value}, untested: {others} too few repeats (each needs {result.needed})"
    others = f"{contender_name(tied_contenders(result)[0], result.over)} is" if tied == 1 else f"{tied} others are"
    more = f", and {untested} untested" if untested else ""
    return f"No clear winner: {name} leads with {value}, but {others} within the noise{more}"


def place_words(result: BestOfResult, place: int) -> str:
    """The relation of a contender to the winner: "winner", "tied with the winner", "behind", "untested: needs 8"."""
    if place == 0:
        return "winner"
    if place in result.tied:
        return "tied with the winner"
    if place in result.untested:
        return f"untested: needs {count(result.needed, 'repeat')}"
    return "behind"


def gap_words(result: BestOfResult) -> str:
    """The gap of the runner-up: "2.1 % behind [1.2, 3.0]"."""
    effect = effect_of(result.gap) if result.gap is not None else None
    if effect is None:
        return "behind by an unknown gap"
    behind = (1 - effect.advantage) * 100
    if effect.family is None:
        return f"{behind:.1f} % behind, without an interval"
    low, high = (1 - effect.family[1]) * 100, (1 - effect.family[0]) * 100
    digits = 1 if high - low >= 0.2 else 2
    ends = ", ".join(f"{end:.{digits}f}".replace("-", MINUS) for end in (low, high))
    return f"{behind:.{digits}f} % behind [{ends}]"


def tied_contenders(result: BestOfResult) -> list[Contender]:
    """The contenders within the noise of the winner."""
    return [result.contenders[place] for place in result.tied if 0 < place < len(result.contenders)]


def best_of_lines(result: BestOfResult) -> list[str]:
    """Notes on a sweep: the gap, ties, the cost, and the bias of the best figure."""
    ranking = ranked(result)
    lines = []
    if result.gap is not None and 1 in result.tied:
        lines.append(f"The runner-up is {gap_words(result)}: the order may be due to chance.")
    tied = tied_contenders(result)
    if tied:
        names = ", ".join(contender_name(one, result.over) for one in tied[:_MOST_NAMED])
        more = f" and {len(tied) - _MOST_NAMED} more" if len(tied) > _MOST_NAMED else ""
        lines.append(f"Tied with the leader: {names}{more}. Choose by other criteria.")
    if result.untested:
        whose = count(len(result.untested), "contender")
        lines.append(
            f"Untested: {whose} with too few repeats. A test against the leader needs {result.needed} of each."
        )
    contenders = count(len(result.contenders), "contender")
    lines.append(f"The search took {count(result.repeats, 'repeat')} of {contenders} in {show(result.cost_s, 's')}.")
    if len(ranking) > 1:
        lines.append(
            "The best of many looks better than it is, because luck helps to win: measure the winner again "
            "before quoting it."
        )
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
    return show_range(*contender.ci95, result.unit)
