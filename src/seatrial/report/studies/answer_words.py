"""The answer of a study as one sentence, the same on the terminal, on the page and in JSON."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.analysis.stretches import coarse
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.results.no_cpu import NOT_JUDGED
from seatrial.model.spelling import bare_name, count, label, setting_number, show, show_percent, workers_text, written
from seatrial.model.study.answer import Answer, Reach, Span, Stretch, Undecided
from seatrial.model.study.comparison import Verdict
from seatrial.model.study.result import EFFICIENT, BestOfResult
from seatrial.model.study.study import ENVIRONMENT_PREFIX, distinguishing
from seatrial.model.units import budget_for, duration
from seatrial.report.first_sentence import first_of_answer
from seatrial.report.studies.best_of_words import best_of_headline
from seatrial.report.studies.change_words import breakdown_sentence
from seatrial.report.studies.effect import (
    UNDECIDED,
    alike_words,
    change_words,
    margin_words,
    noise_words,
    range_words,
    signed_words,
)
from seatrial.report.studies.scaling_words import efficiency_range
from seatrial.stats.interval import LEAST_SESSIONS

_MOST_CLAUSES = 4
_MOST_NAMED = 3
_MOST_STRETCHES = 12
"""With more, the answer counts points instead of naming them."""
_LONGEST_NAME = 40
_NOT_NAMES = ("the ", "no ")
"""Beginnings of a sentence that get a capital letter; a name of the user's keeps its own."""
_BARE_VALUES = frozenset({"true", "false", "unset", "none"})
"""Values that do not name a side by themselves."""


def answer_sentence(answer: Answer) -> str:
    """The answer, without a full stop: what had no CPU, or the load beside it, if any, and one sentence. That begins
    with a capital letter unless with a name."""
    first = first_of_answer(answer)
    return f"{first}. {_sentence(answer)}" if first else _sentence(answer)


def _sentence(answer: Answer) -> str:
    clauses = _clauses(answer)
    if not clauses:
        return _without_result(answer)
    sentence = "; ".join([*clauses, *_open_words(answer)])
    return sentence[:1].upper() + sentence[1:] if sentence.startswith(_NOT_NAMES) else sentence


def answer_line(answer: Answer) -> str:
    """The sentence with its full stop."""
    return f"{answer_sentence(answer)}."


def side_name(name: str, axis: str) -> str:
    """The name of a side for a sentence: a word names itself ("openmpi"), other values are named with the axis
    ("threads 2", "nontemporal true", "OMP_NUM_THREADS 4")."""
    value = name.removeprefix(f"{axis} ") if axis else name
    if not value:
        return f"no {axis.removeprefix(ENVIRONMENT_PREFIX)}"
    if value == name or value in _BARE_VALUES or value[:1].isdigit():
        value = name.removeprefix(ENVIRONMENT_PREFIX) if axis else name
    return value if len(value) <= _LONGEST_NAME else f"{value[: _LONGEST_NAME - 1].rstrip()}…"


def _candidate(one: Stretch) -> str:
    return side_name(one.candidate, one.axis)


def _baseline(one: Stretch) -> str:
    return side_name(one.baseline, one.axis)


def _clauses(answer: Answer) -> list[str]:
    decided = [one for one in answer.stretches if one.why is None]
    if len(decided) > _MOST_STRETCHES:
        decided = [one for one in coarse(answer.stretches) if one.why is None]
    found = _few(_by_winner(decided, answer))
    found += [_undecided_words(one, answer) for one in _worth_naming(answer)]
    if answer.stretches and not found:
        found += _few(_all_undecided(answer.stretches))
    found += _few([_reach_words(one, _are_several(answer.reaches)) for one in answer.reaches])
    names = distinguishing([one.parameters for one in answer.best]) if answer.best else []
    found += _few([_best(one, names) for one in answer.best])
    found += _spans(answer.spans)
    known = [one for one in answer.breakdowns if one.whole is not None]
    named = [one for one in known if any(part.is_beyond_noise for part in one.parts)]
    sentences = dict.fromkeys(breakdown_sentence(one) for one in named)
    return found + [text[:1].lower() + text[1:] for text in sentences]


def _few(clauses: Sequence[str]) -> list[str]:
    """The first clauses of one kind, and how many more there are."""
    if len(clauses) <= _MOST_CLAUSES:
        return list(clauses)
    return [*clauses[: _MOST_CLAUSES - 1], f"{len(clauses) - _MOST_CLAUSES + 1} more such results"]


def _best(one: BestOfResult, names: Sequence[str]) -> str:
    """The winner; if there are several sweeps, with the settings that distinguish them."""
    text = best_of_headline(one)
    held = ", ".join(label(name, one.parameters[name]) for name in names if name in one.parameters)
    return f"{one.figure} with {held}: {text}" if held else text


def _without_result(answer: Answer) -> str:
    if answer.not_compared:
        more = f", and {len(answer.not_compared) - 1} more" if len(answer.not_compared) > 1 else ""
        return f"Nothing was compared: {answer.not_compared[0]}{more}"
    if answer.outcomes:
        counted = [f"{number} {state.replace('_', ' ')}" for state, number in answer.outcomes.items()]
        return f"No answer: of {count(sum(answer.outcomes.values()), 'experiment')}, {', '.join(counted)}"
    return "Nothing was measured on two sides, so nothing was compared"


# Comparisons


def _by_winner(decided: Sequence[Stretch], answer: Answer) -> list[str]:
    """One clause for each winner, in order of appearance; what is the same comes last."""
    named = _are_several(answer.stretches)
    several_sides = len({(one.baseline, one.candidate) for one in answer.stretches}) > 1
    winners: dict[tuple[str, str], list[str]] = {}
    same: list[str] = []
    for one in decided:
        if one.verdict in (Verdict.SAME, Verdict.EQUIVALENT):
            sides = f"{_candidate(one)} and {_baseline(one)} are " if several_sides or len(decided) == 1 else ""
            text = f"{sides}{alike_words(one.verdict, one.margin)}: {_what(one, named)}"
            same.append(f"{text} {_change(one)}" if one.comparisons == 1 else text)
            continue
        winner, loser = _candidate(one), _baseline(one)
        if one.verdict is Verdict.SLOWER:
            winner, loser = loser, winner
        winners.setdefault((winner, loser if several_sides else ""), []).append(_advantage(one, named))
    found = []
    for (winner, loser), advantages in winners.items():
        against = f" against {loser}" if loser else ""
        found.append(f"{winner}{against}: {', '.join(_few(advantages))}")
    return found + _few(same)


def _advantage(one: Stretch, named: bool) -> str:
    """What the winner is better at: "lower one_way up to 8 KiB by 20 %"; for a baseline that wins, the number is the
    candidate's, as in every ratio: "lower one_way up to 8 KiB (mpich 25 % higher)"."""
    better = "higher" if one.better is Better.HIGHER else "lower"
    what = f"{better} {_what(one, named)}"
    change = _change(one)
    if one.verdict is Verdict.FASTER and change.startswith(better):
        return f"{what} {change.removeprefix(better).lstrip()}"
    if one.verdict is Verdict.FASTER and f" % {better}" in change:
        return f"{what} by {change.replace(f' % {better}', ' %')}"
    return f"{what} ({_candidate(one)} {change})"


def _change(one: Stretch) -> str:
    """The change of one comparison with its interval, as the verdict states it; of several, the range."""
    has_direction = one.verdict in (Verdict.FASTER, Verdict.SLOWER)
    if one.ratios is None:
        return "no ratio"
    if one.comparisons > 1 or one.ci95_family is None:
        return range_words(one.ratios, None, has_direction=has_direction)
    words = change_words if has_direction else signed_words
    return words(one.ratios[0], one.ci95_family, one.margin)


def _what(one: Stretch, named: bool) -> str:
    """The figures and where: "latency one_way up to 8 KiB"."""
    return f"{_what_without_points(one, named)}{_points(one)}"


def _what_without_points(one: Stretch, named: bool) -> str:
    figures = _listed(one.figures)
    area = one.benchmark.rpartition(".")[2]
    if named and figures != area:
        figures = f"{area} {figures}"
    return figures + "".join(f" at {label(name, value)}" for name, value in one.where.items())


def _points(one: Stretch) -> str:
    """The points of a stretch: "up to 8 KiB", "from 1 MiB", "at all 14 sizes"."""
    if one.total < 2:
        return ""
    if one.along is None:
        return f" at all {one.total} points" if one.points == one.total else f" at {one.points} of {one.total} points"
    numbers = [setting_number(one.along, value) for value in one.values if isinstance(value, int | float)]
    if len(one.values) == one.total == 2:
        return f" at both {_noun(one.along)}"
    if len(one.values) == one.total:
        return f" at all {one.total} {_noun(one.along)}"
    name = "" if one.along.endswith("_B") else f"{bare_name(one.along)} "
    if len(numbers) == 1:
        return f" at {name}{numbers[0]}"
    if one.is_first and one.is_last:
        return f" at {len(numbers)} of {one.total} {_noun(one.along)}"
    if one.is_first:
        return f" up to {name}{numbers[-1]}"
    if one.is_last:
        return f" from {name}{numbers[0]}"
    return f" from {name}{numbers[0]} to {numbers[-1]}"


def _noun(along: str) -> str:
    return "sizes" if along == "size_B" else f"values of {bare_name(along)}"


def _worth_naming(answer: Answer) -> list[Stretch]:
    """The undecided stretches that get their own clause: all if there are few, and else none: they are counted."""
    undecided = [one for one in answer.stretches if one.why is not None]
    return undecided if len(undecided) <= _MOST_NAMED else []


def _all_undecided(stretches: Sequence[Stretch]) -> list[str]:
    """The range of the estimates of each two sides, where nothing is decided and too much is open to name it."""
    ratios: dict[tuple[str, str], list[float]] = {}
    for one in stretches:
        ratios.setdefault((_candidate(one), _baseline(one)), []).extend(one.ratios or ())
    return [
        f"{candidate} {range_words((min(own), max(own)), None, has_direction=False) if own else 'no ratio'} "
        f"against {baseline}"
        for (candidate, baseline), own in ratios.items()
    ]


def _undecided_words(one: Stretch, answer: Answer) -> str:
    """Such as "triad: nontemporal true higher by a factor of 7.0, undecided: 6 repeats needed (4 and 3 made)"."""
    what = _what_undecided(one, _are_several(answer.stretches))
    text = f"{what}: {_candidate(one)} {_change(one)} against {_baseline(one)}, {UNDECIDED}"
    match one.why:
        case Undecided.FEW if one.needed is not None:
            first, second = one.made
            made = str(first) if first == second else f"{first} and {second}"
            return f"{text}: {one.needed} repeats needed, {made} made"
        case Undecided.WIDE if one.needed is not None:
            return f"{text}: about {one.needed} repeats needed, {min(one.made)} made"
        case Undecided.NOISE if one.needed is not None:
            return f"{text}: {noise_words(one.margin, min(one.made), one.needed)}"
        case Undecided.APART:
            needed = f"both side by side in one study, or {LEAST_SESSIONS} sessions each in alternation"
            return f"{text}: measured apart; a verdict needs {needed}"
        case Undecided.PUBLISHED:
            return f"{text}: a published value has no interval"
        case Undecided.UNFINISHED:
            return f"{text}: not finished; the same command continues it"
        case Undecided.AT_MARGIN:
            return (
                f"{text}: the difference is at the edge of the margin of {margin_words(one.margin)}, more repeats may "
                "never decide"
            )
    return text


def _what_undecided(one: Stretch, named: bool) -> str:
    """The figures, with the points by name if they are few: an undecided point may be anywhere on its curve."""
    if one.along is None or len(one.values) == one.total:
        return _what(one, named)
    what = _what_without_points(one, named)
    if len(one.values) > _MOST_NAMED:
        return f"{what} at {len(one.values)} of {one.total} {_noun(one.along)}"
    values = [setting_number(one.along, value) for value in one.values if isinstance(value, int | float)]
    name = "" if one.along.endswith("_B") else f"{bare_name(one.along)} "
    return f"{what} at {name}{_listed(values)}"


def _open_words(answer: Answer) -> list[str]:
    """How much is undecided, and the time that may decide it."""
    if not answer.undecided:
        return []
    counted = f"{answer.undecided} of {answer.asked} {UNDECIDED}"
    is_counted = not all(one in _worth_naming(answer) for one in answer.stretches if one.why is not None)
    words = [counted] if is_counted else []
    if answer.more_s is not None:
        which = "" if answer.decidable == answer.undecided else f" {answer.decidable} of {answer.undecided}"
        words.append(f"{_more(answer)} may decide{which}")
    return [", ".join(words)] if words else []


def _more(answer: Answer) -> str:
    """The time that may decide: of a study with the budget to give, "about 4.0 min more (a budget of 9min)"."""
    time = f"about {duration(answer.more_s or 0.0)} more"
    given = [] if answer.budget_s is None else [f"a budget of {budget_for(answer.budget_s)}"]
    given += [] if answer.maximum is None else [f"max: {answer.maximum}"]
    return f"{time} ({' and '.join(given)})" if given else time


# Scaling


def _reach_words(one: Reach, named: bool) -> str:
    figures = _listed(one.figures)
    subject = f"{one.benchmark.rpartition('.')[2]} {figures}" if named else figures
    return f"{subject}: {reach_sentence(one)}"


def reach_sentence(one: Reach) -> str:
    """How far the figures scale: "at least 80 % efficient up to 16 threads; 61 % [58, 64] at 32"."""
    threshold = show_percent(EFFICIENT)
    if one.last is None:
        only = f"only the point at {workers_text(one.along, one.baseline_workers)}" if one.points else "no point"
        return f"no scaling: {only} succeeded"
    parts = []
    if one.efficient is not None:
        end = ", the most measured" if one.efficient.workers == one.last.workers else ""
        reached = f"at least {threshold} efficient up to {workers_text(one.along, one.efficient.workers)}{end}"
        parts.append(f"{reached}: {efficiency_range(one.efficient.values, one.efficient.ci95)}" if end else reached)
    if one.below is not None:
        efficiency = efficiency_range(one.below.values, one.below.ci95)
        below = f"{efficiency} at {workers_text(one.along, one.below.workers)}"
        if one.efficient is None and not one.undecided:
            below = f"below {threshold} efficient from the first step on: {below}"
        elif one.efficient is None:
            below = f"below {threshold} efficient: {below}"
        parts.append(below)
    if one.undecided:
        parts.append(_undecided_reach(one))
    if one.unjudged:
        parts.append(_unjudged_reach(one))
    if one.lost:
        parts.append(f"no result at {workers_text(one.along, *one.lost)}")
    return ", ".join(parts)


def _unjudged_reach(one: Reach) -> str:
    """The efficiencies that were measured without a CPU for part of the time."""
    shown = [
        f"{efficiency_range(e.values, e.ci95)} at {workers_text(one.along, e.workers)}"
        for e in one.unjudged[:_MOST_NAMED]
    ]
    more = f" and {len(one.unjudged) - _MOST_NAMED} more" if len(one.unjudged) > _MOST_NAMED else ""
    return f"efficiency {NOT_JUDGED} ({', '.join(shown)}{more})"


def _undecided_reach(one: Reach) -> str:
    """The numbers of workers whose efficiency is not decided; one without an interval states nothing."""
    named = [e.workers for e in one.undecided[:_MOST_NAMED]]
    text = f"{UNDECIDED} at {workers_text(one.along, *named, more=len(one.undecided) - len(named))}"
    first = one.undecided[0]
    if first.ci95 is None:
        need = "no interval" if one.needed is None else f"{count(one.needed, 'repeat')} needed, {one.made} made"
        return f"{text}: {need}"
    text = f"{text}: {efficiency_range(first.values, first.ci95)}" if len(one.undecided) == 1 else text
    return text if one.needed is not None else f"{text}; the budget that would decide is unknown"


# Sweeps without a comparison


def _spans(spans: Sequence[Span]) -> list[str]:
    """The figures of a study that compares nothing: medians, and how to get a verdict."""
    found = _few([_span_words(one, _are_several(spans)) for one in spans])
    if any(one.points > 1 for one in spans):
        found.append("medians only: `compare`, `scaling` or `best_of` in the study file asks for a verdict")
    return found


def _span_words(one: Span, named: bool) -> str:
    figure = f"{one.benchmark.rpartition('.')[2]} {one.figure}" if named else one.figure
    if one.points < 2:
        return f"{figure} {show(one.low, one.unit)}"
    low, high = (f"{show(value, one.unit)}{_at(at)}" for value, at in ((one.low, one.low_at), (one.high, one.high_at)))
    return f"{figure} from {low} to {high}"


def _at(settings: object) -> str:
    if not isinstance(settings, dict) or not settings:
        return ""
    return f" ({', '.join(f'{bare_name(name)} {_value(name, value)}' for name, value in settings.items())})"


def _value(name: str, value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return setting_number(name, value)
    return written(name, value)  # type: ignore[arg-type]  # settings have no other values


# Lists


def _listed(names: Sequence[str]) -> str:
    if len(names) > 2 * _MOST_NAMED:
        return f"{', '.join(names[:_MOST_NAMED])} and {len(names) - _MOST_NAMED} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _are_several(those: Sequence[Stretch] | Sequence[Reach] | Sequence[Span]) -> bool:
    """Whether they are of several benchmarks."""
    return len({one.benchmark for one in those}) > 1
