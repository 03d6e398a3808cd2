"""The second stage of a screen of nodes: which to measure again, and what their new repeats say."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from msgspec.structs import replace

from seatrial.analysis.outliers import Screened, screened_nodes
from seatrial.errors import UsageError
from seatrial.model.results.figure_result import MeasureAgain, Outlier, ScreenResult
from seatrial.stats.outliers import FALSE_ALARM_RATE
from seatrial.stats.second_stage import FEWEST_CONTROLS, FEWEST_REPEATS, REPEATS, confirmed, to_measure_again
from seatrial.store.contents import Contents


def measure_again(screened: Sequence[Screened], contents: Contents) -> MeasureAgain | None:
    """The nodes farthest from the others, and controls; None with too few nodes that measured the same.

    Only figures that the largest number of nodes have in common decide. The same experiments give the same controls.
    """
    able = [one for one in screened if one.is_positive]
    nodes = max((one.what for one in able), key=len, default=())
    medians = [
        [median(values) for _, values in sorted(zip(one.what, one.values, strict=True))]
        for one in able
        if set(one.what) == set(nodes)
    ]
    names = sorted(nodes)
    again = to_measure_again(medians, " ".join([*sorted(contents.experiments), *names]))
    if again is None:
        return None
    suspects, controls = (tuple(names[k] for k in places) for places in (again.suspects, again.controls))
    return MeasureAgain(suspects, controls, REPEATS)


def second_stage(first: Contents, new: Contents, margin: float) -> ScreenResult:
    """The suspects of the first screen that differ from the controls in new repeats, most certain first.

    Nodes of `new` that are not suspects are its controls. The error rate of 5 % is shared by the figures. Raises
    UsageError if no figure has new repeats of a suspect and of four controls.
    """
    before = {_key(one): one for one in screened_nodes(first) if one.is_positive}
    again = measure_again(list(before.values()), first)
    if again is None:
        raise UsageError(
            "the first results folder has too few nodes to measure any again", "screen at least six nodes first"
        )
    repeated = [_with_enough_repeats(one) for one in screened_nodes(new) if one.is_positive]
    pairs = [(before[_key(one)], one) for one in repeated if _key(one) in before]
    able = [(old, one) for old, one in pairs if _is_enough(one, again)]
    if not able:
        raise UsageError(
            f"the second results folder needs at least {FEWEST_REPEATS} new repeats of a suspect and of at least "
            f"{FEWEST_CONTROLS} other nodes, measured as in the first",
            f"measure {', '.join(again.suspects)} again, beside {', '.join(again.controls)}: "
            f"{again.repeats} repeats on each",
        )
    rate = FALSE_ALARM_RATE / len(able)
    found = [outlier for old, one in able for outlier in _outliers(old, one, again, rate, margin, len(able))]
    found.sort(key=lambda outlier: (-outlier.sureness, -max(outlier.ratio, 1.0 / outlier.ratio)))
    named = {outlier.what for outlier in found}
    measured = {name for _, one in able for name in one.what}
    unconfirmed = tuple(name for name in again.suspects if name in measured and name not in named)
    return ScreenResult(tuple(found), unconfirmed=unconfirmed)


def _outliers(
    old: Screened, new: Screened, again: MeasureAgain, rate: float, margin: float, figures: int
) -> list[Outlier]:
    place = {name: k for k, name in enumerate(old.what)}
    values = dict(zip(new.what, new.values, strict=True))
    suspects = {place[name]: values[name] for name in again.suspects if name in values and name in place}
    controls = [own for name, own in values.items() if name not in again.suspects]
    first = [median(own) for own in old.values]
    return [
        Outlier(
            what=old.what[one.index],
            benchmark=new.benchmark,
            figure=new.figure,
            parameters=new.parameters,
            value=median(suspects[one.index]),
            ratio=one.ratio,
            sureness=1.0 - min(1.0, one.p_adjusted * figures),
            false_alarm_rate=FALSE_ALARM_RATE,
            n=len(old.what),
        )
        for one in confirmed(first, suspects, controls, rate)
        if not 1.0 / (1.0 + margin) <= one.ratio <= 1.0 + margin
    ]


def _is_enough(one: Screened, again: MeasureAgain) -> bool:
    suspects = set(one.what) & set(again.suspects)
    return bool(suspects) and len(one.what) - len(suspects) >= FEWEST_CONTROLS


def _with_enough_repeats(one: Screened) -> Screened:
    kept = [(name, values) for name, values in zip(one.what, one.values, strict=True) if len(values) >= FEWEST_REPEATS]
    return replace(one, what=tuple(name for name, _ in kept), values=tuple(values for _, values in kept))


def _key(one: Screened) -> tuple[object, ...]:
    return one.benchmark, one.figure, tuple(sorted(one.parameters.items())), one.environment
