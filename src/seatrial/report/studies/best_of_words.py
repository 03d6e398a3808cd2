"""The best of several candidates, the repeats that are still needed, and outliers, in words."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.model.results.figure_result import FleetSpread, Outlier, PairSampling, Screening, ScreenResult
from seatrial.model.spelling import NO_VALUE, arrow, arrow_meaning, count, few_names, label, settings, show, show_range
from seatrial.model.study.answer import Answer, Undecided
from seatrial.model.study.result import BestOfResult, Contender
from seatrial.model.units import budget_for, duration
from seatrial.report.blocks import Cell, Cells, Table, headings, right
from seatrial.report.intervals import no_interval_words
from seatrial.report.studies.effect import UNDECIDED, change_words, effect_of, signed, signed_words

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
    leads = f"the best is {UNDECIDED}: {name} leads with {value}"
    open_, untested = open_contenders(result), len(result.untested)
    few = f"too few repeats ({result.needed} needed)"
    if not open_:
        others = f"{runner_up} has" if len(ranking) == 2 else f"{untested} of {len(ranking) - 1} others have"
        return f"{leads}, but {others} {few}"
    others = contender_name(open_[0], result.over) if len(open_) == 1 else f"{len(open_)} others"
    told = f"but the noise does not tell {others} from it"
    if len(open_) == 1 and 1 in result.tied:
        told = f"{others} is {gap_words(result)}"
    more = f", and {untested} have {few}" if untested else ""
    return f"{leads}, {told}{more}"


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
        names = few_names([contender_name(one, result.over) for one in undecided], _MOST_NAMED)
        lines.append(f"Not distinguished from the leader: {names}. More repeats may decide.")
    if len(result.untested) > _MOST_NAMED:
        lines.append(f"{len(result.untested)} contenders have too few repeats for a test ({result.needed} needed).")
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


def contenders_table(result: BestOfResult) -> Table:
    """All contenders; a failed one has a reason as its remark, and no rank."""
    best = next((one.median for one in result.contenders if one.median is not None), None)
    is_said_below = len(result.untested) > _MOST_NAMED
    rows: list[Cells] = []
    for place, one in enumerate(result.contenders):
        name, repeats = contender_name(one, result.over), Cell.number(one.n_repeats)
        if one.median is None:
            reason = Cell(one.reason or "no reason given", tone="remark-cell")
            rows.append([NO_VALUE, name, *[NO_VALUE] * 3, repeats, reason])
            continue
        share = one.median / best if best else None
        median = Cell(f"{show(one.median, result.unit, 4)} {arrow(result.better)}", one.median)
        lead = Cell(NO_VALUE if share is None else f"{share:.3f}", share)
        interval = contender_interval(result, one)
        remark = UNDECIDED if is_said_below and place in result.untested else place_words(result, place)
        rows.append([Cell.number(place + 1), name, median, interval, lead, repeats, remark])
    numbers = right("Median", "95 % interval", "vs. leader", "Repeats")
    return Table.of("All contenders, best first", headings(*right("Place"), "Contender", *numbers, "Remark"), rows)


def needed_words(answer: Answer) -> str:
    """How many are undecided, the repeats and the time that may decide them, and the budget to give; without a full
    stop. "" if nothing is undecided, or if no time is known to help."""
    if not answer.undecided or answer.more_s is None:
        return ""
    some = "" if answer.decidable == answer.undecided else f"; for {answer.decidable} of them"
    time = f"about {duration(answer.more_s)} more"
    text = f"{answer.undecided} of {answer.asked} {UNDECIDED}{some}: {_repeats(answer)}{time}"
    given = [] if answer.budget_s is None else [f"--budget {budget_for(answer.budget_s)}"]
    given += [] if answer.maximum is None else [f"`max: {answer.maximum}` in the study"]
    return f"{text}. With {' and '.join(given)}, the same command goes on from these repeats" if given else text


def _repeats(answer: Answer) -> str:
    """The most repeats that one of them needs; "" if it is a matter of time only."""
    needs = [
        (one.needed, min(one.made))
        for one in answer.stretches
        if one.why in (Undecided.FEW, Undecided.WIDE, Undecided.NOISE) and one.needed is not None
    ]
    needs += [(one.needed, one.made) for one in answer.reaches if one.needed is not None]
    if not needs:
        return ""
    needed, made = max(needs)
    return f"about {count(needed, 'repeat')} needed ({made} made), "


_MOST_OUTLIERS = 8


def outlier_headline(screen: ScreenResult) -> str:
    """The number of outliers, and the first names."""
    if screen.outliers:
        named = list(dict.fromkeys(one.what for one in screen.outliers))
        return f"{count(len(named), 'outlier')}: {few_names(named, 4)}"
    if screen.fleets:
        return f"No outliers: the nodes differ from each other in {count(len(screen.fleets), 'figure')}"
    if screen.unconfirmed:
        return "No outliers: none of the nodes that were measured again differs from the others beside it"
    return "No outliers: all values agree with their peers"


def fleet_words(fleet: FleetSpread) -> str:
    """How the nodes differ: the range of the middle 90 %, or two kinds."""
    figure = f"{fleet.benchmark} {fleet.figure} {settings(fleet.parameters)}".rstrip()
    if fleet.kinds is not None:
        percent = signed((fleet.kinds[0] / fleet.kinds[1] - 1) * 100, 1)
        which = f"{len(fleet.minority)} of {fleet.n} ({few_names(fleet.minority, _MOST_OUTLIERS)})"
        return f"{figure}: two kinds of nodes: {which} differ from the others by {percent} %."
    low, high = (signed((end - 1) * 100, 1) for end in fleet.spread)
    return (
        f"{figure}: the {fleet.n} nodes truly differ, the middle 90 % from {low} to {high} % of their median, beyond "
        "the noise of the repeats. A node is named only if it is far beyond this spread."
    )


def outlier_lines(screen: ScreenResult) -> list[str]:
    """How the nodes differ, the reliability of a screen that found outliers, and what to measure again."""
    lines = [fleet_words(fleet) for fleet in screen.fleets]
    if screen.outliers and screen.unconfirmed:
        lines.append(f"Measured again and not confirmed: {', '.join(screen.unconfirmed)}.")
    if screen.outliers:
        rate = max(one.false_alarm_rate for one in screen.outliers)
        lines.append(
            f"A screen like this reports a false outlier in {rate * 100:.3g} % of cases where all are alike. A single "
            "repeat on a rare level of noise looks like an outlier and is reported as one."
        )
    lines += [f"Not screened: {text}." for text in screen.not_screened]
    again = screen.again
    if again is not None:
        lines.append(
            f"New repeats are more certain: measure the farthest ({', '.join(again.suspects)}) again, beside nodes "
            f"drawn at random ({', '.join(again.controls)}), {again.repeats} repeats on each, into another folder; "
            "then seatrial compare THIS_FOLDER THE_OTHER --along node."
        )
    return lines


def screening_lines(screening: Screening | None) -> list[str]:
    """The result of a screen of pairs of ranks: the slow ones with their confidence, or that none is slow."""
    if screening is None:
        return []
    rate = f"{screening.false_alarm_rate * 100:.3g} %"
    lines = [
        f"slow: {one.what}: {one.figure} {one.ratio:.3g} x its peers (confidence {confidence_words(one.sureness)})"
        for one in screening.outliers
    ]
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


def _outlier_row(one: Outlier) -> list[str]:
    figure = f"{one.benchmark} {one.figure} {settings(one.parameters)}".rstrip()
    return [one.what, figure, f"{signed((one.ratio - 1) * 100, 1)} %", confidence_words(one.sureness), str(one.n)]


def confidence_words(sureness: float) -> str:
    """A confidence that never rounds up to 100 %."""
    return "> 99.99 %" if sureness > 0.9999 else f"{sureness * 100:.2f} %"


def outlier_table(outliers: Sequence[Outlier]) -> Table | None:
    """A row per outlier; None without any."""
    caption = f"{count(len(outliers), 'value')} far from the median of their peers"
    columns = headings("Which", "Figure", *right("vs. peers", "Confidence", "Of"))
    return Table.if_any(caption, columns, map(_outlier_row, outliers))
