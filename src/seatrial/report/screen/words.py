"""Sentences about a screen, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.analysis.screening.screen import CLOCK, COUNTED, DRIFT, NO_RESULT, STATED, unit_of_fact
from seatrial.model.machine.fact import FactValue
from seatrial.model.results.no_cpu import no_cpu_sentence
from seatrial.model.spelling import NO_VALUE, count, few_names, plain, show
from seatrial.model.study.screen import NodeClasses, NotSeenAgain, Odd, Screen, with_kind
from seatrial.report.studies.best_of_words import confidence_words
from seatrial.report.studies.effect import signed
from seatrial.stats.far_values import FEW

MOST_NAMED = 4
"""So many names are in a sentence."""


def first_sentence(found: Screen) -> str:
    """The nodes whose programs had no CPU, without a full stop; "" if there are none."""
    return no_cpu_sentence(found.no_cpu, "what is odd there may be this load", len(found.nodes), "node")


def headline(found: Screen) -> str:
    """The verdict: what is odd, by name."""
    what = [named(group[0]) for group in grouped(found.odd)]
    of = count(len(found.nodes), "node")
    if what:
        return f"{len(what)} odd in {of}: {few_names(what, MOST_NAMED)}"
    differing = {node for fact in found.facts_that_differ for node in fact.odd}
    others = [node for node in found.nodes if node in differing]
    facts = (
        f", but {few_names(others, MOST_NAMED)} {'differ' if len(others) > 1 else 'differs'} in facts" if others else ""
    )
    if not found.figures:
        return f"Nothing was measured on several of the {of}{facts}"
    names = tuple(f"{figure_name(one.benchmark, one.figure)}:" for one in found.figures)
    if all(any(text.startswith(name) for text in found.not_screened) for name in names):
        return f"Too little was measured to screen {of}"
    if found.not_screened:
        parts = count(len(found.not_screened), "part")
        return f"Nothing odd was found in {of}, but {parts} of the screen could not be done"
    return f"Nothing is odd in {of}{facts}"


def figure_name(benchmark: str, figure: str) -> str:
    """As a reader looks for it."""
    return f"{benchmark} {figure}".strip()


def grouped(odd: Sequence[Odd]) -> list[tuple[Odd, ...]]:
    """The odd ones by what is odd, each with its most certain figure first."""
    groups: dict[tuple[str, str], list[Odd]] = {}
    for one in odd:
        groups.setdefault((one.kind.value, one.what), []).append(one)
    return [tuple(group) for group in groups.values()]


def named(one: Odd) -> str:
    """What is odd: "node n3"."""
    return with_kind(one.kind.value, one.what)


def by_how_much(one: Odd) -> str:
    """The figure, by how much it is off, and how surely."""
    if one.figure in STATED:
        return one.why
    if is_count(one):
        others = "none" if not one.usual else f"{one.usual:.0f}"
        return f"{one.figure} grew by {one.value:.0f} where the others have {others}; {one.why}"
    percent = signed((one.ratio - 1.0) * 100, 1)
    value, usual = (show(value, one.unit, binary=one.unit == "B") for value in (one.value, one.usual))
    text = f"{figure_name(one.benchmark, one.figure)} {value} where the others have {usual} ({percent} %)"
    if not one.benchmark:
        return f"{text}, {one.why}"
    # Of a few, the spread is unknown well.
    is_known = one.distance is not None and one.n >= FEW
    far = f", {min(one.distance or 0.0, 1e4):.3g} times the spread of the others away" if is_known else ""
    why = f"; {one.why}" if one.why else ""
    return f"{text}{far}; confidence {confidence_words(one.sureness)}{why}"


def is_count(one: Odd) -> bool:
    """Whether it is a counter of a link, and not a figure or a fact."""
    return one.why.startswith(COUNTED)


def off_by(one: Odd) -> str:
    """The difference from the others in short: "-20.1 %", or the errors or pairs that were counted."""
    if one.figure in (CLOCK, DRIFT):
        return f"{'+' if one.value > 0 else '-'}{show(abs(one.value), 's')}{'/s' if one.figure == DRIFT else ''}"
    if one.figure == NO_RESULT:
        return count(round(one.value), "pair")
    return f"+{one.value:.0f}" if is_count(one) else f"{signed((one.ratio - 1.0) * 100, 1)} %"


def off_what(one: Odd) -> str:
    """What `off_by` is of."""
    if one.figure == NO_RESULT:
        return "without a result"
    return "errors" if is_count(one) else "from the others"


def also(group: Sequence[Odd]) -> list[str]:
    """The further figures in which the same one is odd."""
    return [by_how_much(one) for one in group[1:]]


def classes_sentence(one: NodeClasses) -> str:
    """Which nodes are of the smaller class, and what tells the classes apart."""
    percent = signed((one.ratio - 1.0) * 100, 1)
    facts = f"they differ in {', '.join(one.differ_in)}" if one.differ_in else "no fact that was read tells them apart"
    return (
        f"{figure_name(one.benchmark, one.figure)}: two classes of nodes: {len(one.minority)} of {one.n} "
        f"({few_names(one.minority, MOST_NAMED)}) at {percent} % of the others; {facts}"
    )


def not_seen_again_sentence(one: NotSeenAgain) -> str:
    """What was odd at first only."""
    what = with_kind(one.kind.value, one.what)
    first, later = (f"{signed((ratio - 1.0) * 100, 1)} %" for ratio in (one.ratio, one.later))
    return (
        f"{what} was odd at first only: {figure_name(one.benchmark, one.figure)} {first} from the "
        f"others, {later} when it was measured again; what disturbed it is unknown"
    )


def differing_sentences(found: Screen) -> list[str]:
    """What single nodes have otherwise than most, with both values, but for what is odd by itself."""
    made = []
    known = {one.figure for one in found.odd if not one.benchmark}
    for one in (fact for fact in found.facts_that_differ if fact.fact not in known):
        usual = value_of_fact(one.fact, one.values[0].value)
        for value in one.values[1:]:
            if nodes := [node for node in value.nodes if node in one.odd]:
                differ = "differ" if len(nodes) > 1 else "differs"
                own = "none" if value.value is None else value_of_fact(one.fact, value.value)
                others = "none" if one.values[0].value is None else usual
                made.append(f"{few_names(nodes, MOST_NAMED)} {differ} in {one.fact}: {own}; most have {others}")
    return made


def value_of_fact(fact: str, value: FactValue | None) -> str:
    """The value of a fact in its unit."""
    unit = unit_of_fact(fact)
    if value is None:
        return NO_VALUE
    if unit == "1" or isinstance(value, str | bool):
        return plain(value)
    return show(value, unit, binary=unit == "B")


def about(found: Screen) -> str:
    """The reliability of the screen."""
    rate = f"{found.false_alarm_rate * 100:.3g} %"
    return (
        f"A screen in which nothing is odd names something in at most {rate} of cases. Nodes that differ by less than "
        f"{found.margin * 100:.3g} % are not named. Nothing was changed: the commands are proposals."
    )
