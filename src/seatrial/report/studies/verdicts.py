"""One sentence for each verdict, and advice for undecided ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence

from seatrial.analysis.grouped import grouped
from seatrial.analysis.match import sessions_words
from seatrial.analysis.stretches import is_apart, needed_repeats, repeats_made, why_undecided
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.benchmark.parameter import Value
from seatrial.model.frozen import Frozen
from seatrial.model.spelling import NO_VALUE, arrow, count, label, show_alike
from seatrial.model.study.answer import Undecided
from seatrial.model.study.comparison import Comparison, Stopped, Verdict, decisive
from seatrial.model.study.result import Compared
from seatrial.model.study.study import distinguishing, varying
from seatrial.report.blocks import Cell, Cells, Column, Table, headings, right
from seatrial.report.studies.effect import (
    alike_words,
    asks_equivalence,
    effect_of,
    effect_words,
    interval_words,
    is_speed,
    margin_edges,
    margin_words,
    noise_words,
    ratio_rule,
    ratio_words,
    rounded_up,
    signed_words,
    size_of,
    verdict_word,
    word_of,
)
from seatrial.stats.interval import LEAST_SESSIONS
from seatrial.stats.ratio import verdict as verdict_of

FEWEST_REPEATS = 6
"""With fewer, there is no 95 % interval of a median or a ratio."""

_LONGEST_NAME = 60

ORDER = (Verdict.SLOWER, Verdict.FASTER, Verdict.AMBIGUOUS, Verdict.SAME, Verdict.EQUIVALENT)
"""The most important first."""


class Statement(Frozen):
    """A verdict in words. `subject` is what was compared, `sentence` says it.

    `hint` is advice if there is no verdict, `note` a limitation.
    """

    comparison: Comparison
    subject: str
    sentence: str
    hint: str
    note: str

    @property
    def word(self) -> str:
        """The verdict alone."""
        return word_of(self.comparison)


def statements(compared: Sequence[Compared]) -> list[Statement]:
    """All verdicts: slower first, then faster, undecided, same; within each the figure with the largest difference
    first, and the points of a figure in order of their sizes. Those of secondary figures are at the end."""
    made = [
        Statement(one, name, verdict_sentence(one), more_repeats(one), one.note)
        for one, name in in_order_of_sizes(compared, with_sides=False)
    ]
    largest: dict[Hashable, float] = {}
    for each in made:
        key = (each.comparison.verdict, curve_of(each.comparison))
        largest[key] = max(size_of(each.comparison), largest.get(key, 0.0))
    return sorted(
        made,
        key=lambda each: (
            each.comparison.is_secondary,
            ORDER.index(each.comparison.verdict),
            -largest[each.comparison.verdict, curve_of(each.comparison)],
        ),
    )


def in_order_of_sizes(compared: Sequence[Compared], *, with_sides: bool = True) -> list[tuple[Comparison, str]]:
    """All comparisons with their subjects, figure by figure, the points of a figure in ascending order."""
    names = subjects(compared, with_sides=with_sides)
    named = list(zip((c for one in compared for c in one.comparisons), names, strict=True))
    curves = grouped((curve_of(comparison), (comparison, name)) for comparison, name in named)
    return [pair for curve in curves.values() for pair in _ascending(curve)]


def _ascending(curve: Sequence[tuple[Comparison, str]]) -> list[tuple[Comparison, str]]:
    names = varying([comparison.parameters for comparison, _ in curve])
    seen: dict[tuple[str, str], int] = {}
    for comparison, _ in curve:
        for name in names:
            seen.setdefault((name, repr(comparison.parameters.get(name))), len(seen))

    def place(name: str, value: Value | None) -> tuple[float, int]:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value), 0
        return 0.0, seen[name, repr(value)]

    return sorted(curve, key=lambda pair: [place(name, pair[0].parameters.get(name)) for name in names])


def curve_of(comparison: Comparison) -> Hashable:
    """What the points of a curve share: the figure and the two sides."""
    return (comparison.benchmark, comparison.figure, comparison.baseline.name, comparison.candidate.name)


def headline(compared: Sequence[Compared]) -> str:
    """The sides, and the number of each verdict; secondary figures do not count."""
    comparisons = decisive(comparison for one in compared for comparison in one.comparisons)
    if not comparisons:
        return "Nothing was compared: no figure was measured on two sides"
    counts = Counter(one.verdict for one in comparisons)
    numbers = ", ".join(
        f"{counts[verdict]} {verdict_word(verdict, comparisons)}" for verdict in ORDER if counts[verdict]
    )
    if len(compared) == 1:
        return f"{short(compared[0].candidate)} against {short(compared[0].baseline)}: {numbers}"
    return f"{len(comparisons)} comparisons: {numbers}"


def verdict_sentence(comparison: Comparison) -> str:
    """The verdict with its interval, without a full stop: "B is 16 % higher [14, 18] than A"."""
    is_decided = comparison.verdict is not Verdict.AMBIGUOUS
    apart = "" if is_decided or not is_apart(comparison) else _apart_words(comparison)
    text = sentence_of(comparison, effect_words(comparison), apart)
    if is_decided:
        return f"{text}{_contradiction(comparison)}"
    return text if apart or _is_open(comparison) else f"{text}{_reach(comparison)}"


def sentence_of(comparison: Comparison, change: str, apart: str) -> str:
    """The verdict, the change and the two sides; `apart` is why sides that were measured apart have none, else ""."""
    base, candidate = short(comparison.baseline.name), short(comparison.candidate.name)
    match comparison.verdict:
        case Verdict.FASTER | Verdict.SLOWER:
            return f"{candidate} is {change} than {base}"
        case Verdict.SAME | Verdict.EQUIVALENT:
            return f"{candidate} and {base} are {alike_words(comparison.verdict, comparison.margin)}: {change}"
    return f"no verdict on {candidate} against {base}: {apart}" if apart else f"{candidate} against {base}: {change}"


def more_repeats(comparison: Comparison) -> str:
    """Advice that may resolve an ambiguous comparison; "" if there is a verdict, or nothing helps."""
    if comparison.verdict is not Verdict.AMBIGUOUS:
        return ""
    if comparison.baseline.is_reference or comparison.candidate.is_reference:
        return "A published value has no interval: only the ratio is known, not a verdict."
    if is_apart(comparison) and set(comparison.baseline.hosts) != set(comparison.candidate.hosts):
        return (
            "Two machines, measured apart: what changes on one of them cannot be separated from their difference. "
            f"For a verdict, measure each in {LEAST_SESSIONS} sessions, in alternation: --again adds one."
        )
    if is_apart(comparison):
        return (
            "Measured apart: drift of the machine cannot be separated from the change. For a verdict, run both sides "
            f"in one study (`seatrial run STUDY` with a `compare` section), or in {LEAST_SESSIONS} sessions each, in "
            "alternation."
        )
    if comparison.design.stopped is Stopped.UNFINISHED:
        return "The same command continues the study."
    noun = "block" if comparison.design.is_interleaved else "repeat per side"
    made = repeats_made(comparison)
    if _is_open(comparison):
        return _to_an_interval(comparison, made, noun)
    needed = needed_repeats(comparison)
    name = "equivalence" if comparison.asks_equivalence else "margin"
    if needed is None:
        return (
            f"The interval is narrow, and the difference is at the edge of the margin of "
            f"{margin_words(comparison.margin)}: more repeats may never decide. Consider whether a difference of this "
            f"size matters, and set `{name}` accordingly."
        )
    if why_undecided(comparison) is Undecided.NOISE:
        noise = noise_words(comparison.margin, made, needed)
        return (
            f"{noise[0].upper()}{noise[1:]}. Sooner: measure with less noise (nothing else on the machine: "
            f"`--wait-quiet 10min`), or set a larger `{name}`."
        )
    more = rounded_up(needed - made)
    return (
        f"About {count(more, f'more {noun}', f'more {_plural(noun)}')} might decide, if spread and estimate "
        f"stay the same ({made} were made)."
    )


def short(name: str) -> str:
    """A name shortened for a sentence; headings and tables have the full name."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1].rstrip()}…"


def subjects(compared: Sequence[Compared], *, with_sides: bool = True) -> list[str]:
    """The subject of each comparison, by what distinguishes them: benchmark, figure, parameters, the two sides (not
    `with_sides`: for sentences, which name both)."""
    comparisons = [comparison for one in compared for comparison in one.comparisons]
    of_benchmark = grouped((one.benchmark, one.parameters) for one in comparisons)
    distinct = {benchmark: distinguishing(own) for benchmark, own in of_benchmark.items()}
    several = {
        "benchmark": len({one.benchmark for one in comparisons}) > 1,
        "baseline": len({one.baseline.name for one in comparisons}) > 1,
        "candidate": len({one.candidate.name for one in comparisons}) > 1,
    }
    names = []
    for one in comparisons:
        words = [one.benchmark] if several["benchmark"] else []
        words.append(one.figure)
        words += [label(name, one.parameters[name]) for name in distinct[one.benchmark] if name in one.parameters]
        if with_sides and (several["candidate"] or several["baseline"]):
            against = f" against {one.baseline.name}" if several["baseline"] else ""
            words.append(f"{one.candidate.name}{against}")
        names.append(" · ".join(words))
    return names


def shared(everything: Sequence[Mapping[str, Value]]) -> dict[str, Value]:
    """The settings that are equal everywhere."""
    if not everything:
        return {}
    differ = set(varying(everything))
    return {name: value for name, value in everything[0].items() if name not in differ}


def session_verdict(comparison: Comparison) -> Verdict:
    """What the interval of the measured sessions alone would say: it holds for these, not for the next ones."""
    low, high = comparison.ci95 or (None, None)
    return verdict_of(low, high, comparison.margin, higher_is_better=comparison.better is Better.HIGHER)


def _apart_words(comparison: Comparison) -> str:
    """The difference between the sessions that were measured: "these two sessions differ by +5.0 % [+4.1, +5.9]"."""
    effect = effect_of(comparison)
    words = sessions_words(comparison.design)
    which = f"these {'two sessions' if words == '1 session per side' else words} differ"
    if effect is None:
        return f"{which}, without a ratio"
    interval = None if effect.plain is None else comparison.ci95
    change = signed_words(comparison.ratio, interval, comparison.margin)
    return f"{which} by {change}" if not change.startswith(("higher", "lower")) else f"{which}: {change}"


def _is_open(comparison: Comparison) -> bool:
    """Whether there is no interval for a verdict."""
    effect = effect_of(comparison)
    return effect is None or effect.family is None


def _reach(comparison: Comparison) -> str:
    """The verdicts that the interval allows."""
    effect = effect_of(comparison)
    if effect is None or effect.family is None:
        return ""
    low, high = margin_edges(comparison.margin)
    faster, slower = ("faster", "slower") if is_speed(comparison.unit) else ("better", "worse")
    least, most = effect.family
    alike = "equivalent" if comparison.asks_equivalence else "the same"
    allowed = {slower: least < low, alike: most > low and least < high, faster: most > high}
    may_be = [word for word, is_allowed in allowed.items() if is_allowed]
    return f", consistent with {' or '.join(may_be)}" if len(may_be) > 1 else ""


def _contradiction(comparison: Comparison) -> str:
    """A warning if verdict and interval contradict each other."""
    effect = effect_of(comparison)
    low, high = margin_edges(comparison.margin)
    family = effect.family if effect is not None else None
    if family is None:
        return " (a verdict without an interval: do not trust it)"
    supported = {
        Verdict.FASTER: family[0] > high,
        Verdict.SLOWER: family[1] < low,
        # The ends may be inverted, so an end on the edge may be beyond it by a rounding error.
        Verdict.SAME: (inside := family[0] >= low * (1 - 1e-12) and family[1] <= high * (1 + 1e-12)),
        Verdict.EQUIVALENT: inside,
    }
    return "" if supported[comparison.verdict] else " (the interval contradicts this: do not trust it)"


def _to_an_interval(comparison: Comparison, made: int, noun: str) -> str:
    least = needed_repeats(comparison)
    if least is None:
        return ""
    family = f" of {comparison.family} comparisons" if comparison.family > 1 else ""
    return (
        f"An interval{f' for a family{family}' if family else ''} needs {least} {_plural(noun)}; "
        f"{made} {'was' if made == 1 else 'were'} made."
    )


def _plural(noun: str) -> str:
    return "blocks" if noun == "block" else "repeats per side"


def no_verdict_interval(comparison: Comparison) -> str:
    """Why a comparison has no interval for a verdict, without a full stop; "" if it has one."""
    if comparison.ci95_family is not None:
        return ""
    return comparison.note or more_repeats(comparison).removesuffix(".") or "the repeats allow none"


NOT_COMPARED = "not compared"


def verdict_rows(compared: Compared) -> list[tuple[str, str, str]]:
    """(what was compared, verdict, ratio with its interval) of each comparison; (what, NOT_COMPARED, why) of what was
    to be compared and was not."""
    rows = []
    for one in compared.comparisons:
        settings = " ".join(label(name, value) for name, value in one.parameters.items())
        what = f"{one.benchmark} {one.figure} {settings}: {compared.candidate} against {compared.baseline}"
        ends = one.simultaneous
        interval = f"no interval ({no_verdict_interval(one)})"
        if ends is not None:
            interval = f"interval {ends[0]:.4g} to {ends[1]:.4g}"
        rows.append((what, one.verdict.value, f"ratio {one.ratio:.4g}, {interval}, {count(one.n_repeats, 'repeat')}"))
    lost = (f"{compared.candidate} against {compared.baseline}", NOT_COMPARED)
    return [*rows, *((*lost, why) for why in compared.lost)]


def ratio_note(comparisons: Iterable[Comparison]) -> str:
    """What a ratio is, if a reader who divides the medians beside it gets another one; else ""."""
    return ratio_rule((one.ratio, one.candidate.median, one.baseline.median) for one in comparisons)


def comparison_table(named: Sequence[tuple[str, Comparison]], caption: str = "All comparisons") -> Table:
    """The numbers as the model has them: medians, ratio of the raw figure, both intervals, verdict, p, repeats."""
    is_asked = asks_equivalence(one for _, one in named)
    numbers = right("Baseline", "Candidate", "Ratio", "95 % interval", "95 % simultaneous")
    numbers += right(*["90 % simultaneous"] * is_asked)
    on_page = (Column("Effect", short=None), Column("p", numeric=True, short=None))
    columns = headings("Figure", *numbers, "Verdict", *on_page, *right("Repeats"))
    return Table.of(caption, columns, [_cells(subject, comparison, is_asked) for subject, comparison in named])


def relative_table(comparisons: Sequence[Comparison]) -> Table | None:
    """Several candidates beside one baseline, if one figure compares them all: each with its ratio to the first."""
    own = [one for one in comparisons if not one.is_secondary]
    what = {(one.benchmark, one.figure, one.baseline.name) for one in own}
    if len(own) < 2 or len(what) > 1 or len({one.candidate.name for one in own}) < len(own):
        return None
    first = own[0]
    medians = [first.baseline.median, *(one.candidate.median for one in own)]
    shown = [Cell(text, median) for text, median in zip(show_alike(medians, first.unit, 4), medians, strict=True)]
    rows: list[Cells] = [[first.baseline.name, shown[0], Cell("1", 1.0), "", ""]]
    for one, median in zip(own, shown[1:], strict=True):
        ratio = Cell(ratio_words(one.ratio, one.ci95), one.ratio if math.isfinite(one.ratio) else None)
        verdict = Cell(word_of(one), tone=f"verdict-{one.verdict.value}")
        rows.append([one.candidate.name, median, ratio, interval_words(one.ci95), verdict])
    numbers = right(f"{first.figure}\N{NO-BREAK SPACE}{arrow(first.better)}", "Relative", "95 % interval")
    caption = f"Each beside {first.baseline.name}"
    return Table.of(caption, headings(Column("Candidate", short=" "), *numbers, "Verdict"), rows)


def _cells(subject: str, one: Comparison, is_asked: bool) -> Cells:
    medians = (one.baseline.median, one.candidate.median)
    p = one.p_family
    return [
        f"{subject}\N{NO-BREAK SPACE}{arrow(one.better)}",
        *(Cell(text, median) for text, median in zip(show_alike(medians, one.unit, 4), medians, strict=True)),
        Cell(ratio_words(one.ratio, one.ci95), one.ratio if math.isfinite(one.ratio) else None),
        interval_words(one.ci95),
        interval_words(one.ci95_family),
        *([interval_words(one.ci90_family)] if is_asked else []),
        Cell(word_of(one), tone=f"verdict-{one.verdict.value}"),
        effect_words(one),
        Cell(NO_VALUE if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}", p),
        Cell.number(one.n_repeats),
    ]
