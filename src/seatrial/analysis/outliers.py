"""Outliers of a results folder: its nodes, by the screen of a cluster, and its ranks and repeats, for every figure that
they have in common; and which nodes to measure again, to be sure."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median

from seatrial.analysis.experiment_figures import in_time
from seatrial.analysis.pairs import LEAST_SLOWNESS, by_sureness, screened_pairs
from seatrial.analysis.results import all_results, machines_of, results_without_limits
from seatrial.analysis.screening.inputs import folder_to_screen, screen_input
from seatrial.analysis.screening.screen import screen_cluster
from seatrial.benchmarks import benchmark_of, registry
from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import Benchmark, Role
from seatrial.model.benchmark.parameter import Value
from seatrial.model.frozen import Frozen
from seatrial.model.results.figure_result import (
    ExperimentResult,
    FleetSpread,
    MeasureAgain,
    Outlier,
    Screening,
    ScreenResult,
)
from seatrial.model.results.record import Experiment, RepeatRecord
from seatrial.model.results.sample import point_key
from seatrial.model.study.screen import ItemFigure, Odd, OddKind, Screen, ScreenInput
from seatrial.model.study.study import DEFAULT_MARGIN
from seatrial.stats.far_values import FALSE_ALARM_RATE, FEW, FEWEST, far_values, two_classes, why_not
from seatrial.stats.ranks import p_equal
from seatrial.store.contents import Contents

SCREENS = ("node", "repeat", "rank", "pair")
"""What `compare --along` screens for outliers."""


_MOST_SUSPECTS = 6
_CONTROLS = 8
_FEWEST_CONTROLS = 4
REPEATS = 10
"""Repeats of each node in the second stage: enough to find 5 % in noise of 1 %."""
_FEWEST_REPEATS = 6
_NO_SPREAD = 1e-12


class Screened(Frozen):
    """Values of one figure that should be equal: `values` has the repeats of each of `what` (ranks, repeats).

    `is_paired`: the k-th repeat of each was made in the same process, so changes from repeat to repeat are common to
    all and are removed before the comparison.
    """

    what: tuple[str, ...]
    benchmark: str
    figure: str
    parameters: Mapping[str, Value]
    values: tuple[tuple[float, ...], ...]
    is_paired: bool = False

    @property
    def is_able(self) -> bool:
        """Whether there are enough for a screen, and ratios exist."""
        return not why_not(self.values) and all(own and all(0.0 < v < math.inf for v in own) for own in self.values)


def outliers(screened: Sequence[Screened], margin: float = DEFAULT_MARGIN) -> tuple[Outlier, ...]:
    """The outliers of all these screens, most certain first, then by distance.

    The false alarm rate is for all values of all screens together: each screen gets an equal share (Bonferroni). A
    ratio within [1/(1+margin), 1+margin] is not reported. Screens of too few, or with values that are not positive, are
    ignored. For the assumptions of the rate, see `seatrial.stats.far_values`.
    """
    able = [one for one in screened if one.is_able]
    found = [
        Outlier(
            what=one.what[far.index],
            benchmark=one.benchmark,
            figure=one.figure,
            parameters=one.parameters,
            value=median(one.values[far.index]),
            ratio=far.ratio,
            sureness=1.0 - min(1.0, far.p * len(able)),
            false_alarm_rate=FALSE_ALARM_RATE,
            n=len(one.what),
        )
        for one in able
        for far in far_values(_comparable(one), FALSE_ALARM_RATE / len(able), margin)[0]
    ]
    return tuple(sorted(found, key=by_sureness))


def outliers_along(contents: Contents, along: str, margin: float = DEFAULT_MARGIN) -> tuple[Outlier, ...]:
    """The outliers of a results folder among its repeats, ranks or pairs of ranks.

    Raises UsageError if there are too few of them for any figure.
    """
    if along == "pair":
        return _slow_pairs(contents, margin)
    if along == "rank":
        screened = _of_all_ranks(contents)
    else:
        screened = by_repeat(results_without_limits(contents), hosts_of_repeats(contents))
    if not any(one.is_able for one in screened):
        most = max((len(one.what) for one in screened), default=0)
        least = FEW if along == "repeat" else FEWEST
        raise UsageError(
            f"finding outliers needs at least {least} {along}s that measured the same; this folder has at most {most}",
            f"measure more {along}s, or compare two results folders",
        )
    return outliers(screened, margin)


def _slow_pairs(contents: Contents, margin: float) -> tuple[Outlier, ...]:
    """The slow pairs of ranks of every experiment that measured pairs; see `seatrial.analysis.pairs`."""
    benchmarks, machines = registry(), machines_of(contents)
    found: list[Screening] = []
    for result in results_without_limits(contents):
        experiment = result.experiment
        screening = screened_pairs(
            benchmarks[experiment.benchmark],
            experiment,
            machines[experiment.machine],
            contents.records[result.id],
            max(margin, LEAST_SLOWNESS),
        )
        if screening is not None:
            found.append(screening)
    if not any(one.n >= FEWEST for one in found):
        most = max((one.n for one in found), default=0)
        raise UsageError(
            f"finding slow pairs of ranks needs at least {FEWEST} pairs; this folder has at most {most}",
            f"measure pairs of more ranks: seatrial run {benchmark_of(Role.RANK_PAIRS)}",
        )
    return tuple(outlier for one in found for outlier in one.outliers)


def hosts_of_repeats(contents: Contents) -> dict[tuple[str, int], str]:
    """(experiment, repeat) -> the host that it was measured on, if recorded."""
    return {
        (key, record.repeat): str(record.seen["host"])
        for key, records in contents.records.items()
        for record in records
        if record.seen.get("host")
    }


def by_repeat(results: Iterable[ExperimentResult], hosts: Mapping[tuple[str, int], str]) -> list[Screened]:
    """Every figure of every experiment over its repeats, in order of time, separately for each host."""
    found: list[Screened] = []
    several = len(set(hosts.values())) > 1
    for result in results:
        for figure in (one for one in result.figures if not one.is_secondary):
            own: dict[str, dict[str, list[float]]] = {}
            for repeat in figure.repeats:
                host = hosts.get((result.id, repeat.repeat), "")
                name = f"repeat {repeat.repeat}" + (f" on {host}" if several and host else "")
                own.setdefault(host, {}).setdefault(name, []).append(repeat.value)
            found += [_screened(result.experiment, figure.name, figure.point, values) for values in own.values()]
    return found


def by_rank(benchmark: Benchmark, experiment: Experiment, records: Sequence[RepeatRecord]) -> list[Screened]:
    """Every figure of one experiment over its ranks: a rank's value in a repeat is the median of its samples there.

    Only ranks in every ok repeat are included. Samples without the values that the figure needs are ignored.
    """
    repeats = [record for record in in_time(records) if record.outcome.is_ok]
    found: list[Screened] = []
    for figure in benchmark.figures:
        points: dict[tuple[tuple[str, Value], ...], dict[int, dict[int, list[float]]]] = {}
        for number, record in enumerate(repeats):
            for sample in record.samples:
                if sample.series != figure.series:
                    continue
                try:
                    value = figure.value(sample)
                except (ZeroDivisionError, KeyError, TypeError):
                    continue
                ranks = points.setdefault(point_key(sample.point), {})
                ranks.setdefault(sample.rank, {}).setdefault(number, []).append(value)
        for point, ranks in points.items():
            values = {
                f"rank {rank}": [median(own[number]) for number in sorted(own)]
                for rank, own in sorted(ranks.items())
                if len(own) == len(repeats)
            }
            if values:
                found.append(_screened(experiment, figure.name, dict(point), values, is_paired=True))
    return found


def _of_all_ranks(contents: Contents) -> list[Screened]:
    """The ranks of every successful experiment with a known benchmark."""
    benchmarks, found = registry(), list[Screened]()
    for result in all_results(contents):
        benchmark = benchmarks.get(result.experiment.benchmark)
        if benchmark is not None and result.outcome.is_ok:
            found += by_rank(benchmark, result.experiment, contents.records[result.id])
    return found


def _screened(
    experiment: Experiment,
    figure: str,
    point: Mapping[str, Value],
    values: Mapping[str, Sequence[float]],
    *,
    is_paired: bool = False,
) -> Screened:
    parameters = {**experiment.parameters, **point}
    repeats = tuple(tuple(own) for own in values.values())
    return Screened(tuple(values), experiment.benchmark, figure, parameters, repeats, is_paired)


def _comparable(one: Screened) -> Sequence[Sequence[float]]:
    """The values; if paired, each over the median of its repeat."""
    if not one.is_paired or len({len(own) for own in one.values}) != 1:
        return one.values
    middles = [median(repeat) for repeat in zip(*one.values, strict=True)]
    return [[value / middle for value, middle in zip(own, middles, strict=True)] for own in one.values]


def node_outliers(folder: Path, margin: float) -> ScreenResult:
    """The outliers among the nodes of a results folder: the nodes and devices that `screen` names by their figures.

    Raises UsageError if no figure can be screened.
    """
    given = screen_input([folder_to_screen(folder)])
    reasons = [why_not(list(figure.values)) for figure in given.figures]
    if all(reasons):
        most = max((len(figure.items) for figure in given.figures), default=0)
        raise UsageError(
            f"finding outliers needs at least {FEWEST} nodes that measured the same, with repeats, or {FEW} without; "
            f"this folder has at most {most}",
            "measure more nodes or repeats, or compare two results folders",
        )
    screen = screen_cluster(given, margin)
    found = tuple(map(_outlier, _odd_nodes(screen)))
    return ScreenResult(
        found, _fleet_spreads(given, screen), measure_again(given.figures), not_screened=screen.not_screened
    )


def second_stage(first: Path, new: Path, margin: float) -> ScreenResult:
    """The suspects of a first screen that are outliers among the nodes that were measured again.

    New repeats do not know which node was the farthest, so the error is shared by these nodes, not by all. Raises
    UsageError if no figure has enough new repeats of a suspect and of other nodes.
    """
    again = measure_again(screen_input([folder_to_screen(first)]).figures)
    if again is None:
        raise UsageError(
            "the first results folder has too few nodes to measure any again", "screen at least six nodes first"
        )
    given = screen_input([folder_to_screen(new)])
    measured = [
        {item.node for item, own in zip(figure.items, figure.values, strict=True) if len(own) >= _FEWEST_REPEATS}
        for figure in given.figures
    ]
    suspects = set(again.suspects)
    if not any(own & suspects and len(own - suspects) >= _FEWEST_CONTROLS for own in measured):
        raise UsageError(
            f"the second results folder needs at least {_FEWEST_REPEATS} new repeats of a suspect and of at least "
            f"{_FEWEST_CONTROLS} other nodes, measured as in the first",
            f"measure {', '.join(again.suspects)} again, beside {', '.join(again.controls)}: "
            f"{again.repeats} repeats on each",
        )
    odd = [one for one in _odd_nodes(screen_cluster(given, margin)) if one.nodes[0] in suspects]
    named, every = {one.nodes[0] for one in odd}, set[str]().union(*measured)
    unconfirmed = tuple(name for name in again.suspects if name in every and name not in named)
    return ScreenResult(tuple(map(_outlier, odd)), unconfirmed=unconfirmed)


def _odd_nodes(screen: Screen) -> list[Odd]:
    """The nodes and devices that are odd by what was measured."""
    return [one for one in screen.odd if one.benchmark and one.kind in (OddKind.NODE, OddKind.DEVICE)]


def _outlier(one: Odd) -> Outlier:
    measured = (one.what, one.benchmark, one.figure, one.parameters, one.value, one.ratio)
    return Outlier(*measured, one.sureness, one.false_alarm_rate, one.n)


def _fleet_spreads(given: ScreenInput, screen: Screen) -> tuple[FleetSpread, ...]:
    """Where nodes truly differ, in the order of the figures: beyond the noise of their repeats at 5 % for all figures
    together, and by more than the margin between the ends of the middle 90 %, or in two classes."""
    found: list[FleetSpread] = []
    pairs = list(zip(given.figures, screen.figures, strict=False))
    able = [(one, over) for one, over in pairs if 2 * sum(len(own) > 1 for own in one.values) > len(one.items) > 1]
    for figure, over in able:
        of_noise = p_equal([[math.log(value) for value in own] for own in figure.values])
        if of_noise > FALSE_ALARM_RATE / len(able):
            continue
        inside = two_classes([math.log(value) for value in over.medians], screen.margin)
        if over.spread[1] <= (1.0 + screen.margin) * over.spread[0] and not inside:
            continue
        others = [value for k, value in enumerate(over.medians) if k not in set(inside)]
        kinds = (
            (median(over.medians[k] for k in inside) / over.median, median(others) / over.median) if inside else None
        )
        names = tuple(figure.items[k].name for k in inside)
        parts = (figure.benchmark, figure.figure, figure.parameters, len(figure.items), over.spread, of_noise)
        found.append(FleetSpread(*parts, names, kinds))
    return tuple(found)


def measure_again(figures: Sequence[ItemFigure]) -> MeasureAgain | None:
    """The nodes that are farthest from the others in any figure, up to a quarter of all, and random others; None below
    six nodes that measured the same.

    Only figures that the largest number of nodes have in common decide; a distance is in median absolute deviations of
    its figure. The same figures give the same controls.
    """
    items = max((figure.items for figure in figures), key=len, default=())
    alike = [figure for figure in figures if figure.items == items]
    names = list(dict.fromkeys(item.node for item in items))
    count = min(_MOST_SUSPECTS, len(names) // 4, len(names) - _FEWEST_CONTROLS)
    if count < 1 or len(names) < 6:
        return None
    farthest = dict.fromkeys(names, 0.0)
    for figure in alike:
        logs = [math.log(median(own)) for own in figure.values]
        centre = median(logs)
        scale = max(median(abs(log - centre) for log in logs), _NO_SPREAD)
        for item, log in zip(items, logs, strict=True):
            farthest[item.node] = max(farthest[item.node], abs(log - centre) / scale)
    order = sorted(names, key=lambda name: -farthest[name])
    seed = " ".join([*names, *(f"{figure.benchmark} {figure.figure}" for figure in alike)])
    source = random.Random(seed)  # noqa: S311 - not for security
    controls = sorted(source.sample(order[count:], min(_CONTROLS, len(names) - count)), key=names.index)
    return MeasureAgain(tuple(order[:count]), tuple(controls), REPEATS)
