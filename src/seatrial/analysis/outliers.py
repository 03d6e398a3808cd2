"""Outliers among many nodes, ranks or repeats, for every figure that they have in common; and the second stage of a
screen of nodes: which to measure again, and what their new repeats say."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from msgspec.structs import replace

from seatrial.analysis.experiment_figures import in_time
from seatrial.analysis.pairs import LEAST_SLOWNESS, by_sureness, screened_pairs
from seatrial.analysis.results import all_results, machines_of, results_without_limits
from seatrial.benchmarks import benchmark_of, registry
from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import Benchmark
from seatrial.model.benchmark.parameter import Params, Value
from seatrial.model.benchmark.role import Role
from seatrial.model.frozen import Frozen
from seatrial.model.results.figure_result import (
    ExperimentResult,
    FigureResult,
    FleetSpread,
    MeasureAgain,
    Outlier,
    Screening,
    ScreenResult,
)
from seatrial.model.results.record import Experiment, RepeatRecord
from seatrial.model.results.sample import point_key
from seatrial.model.study.study import DEFAULT_MARGIN
from seatrial.stats.far_values import FEWEST_CONTROLS, FEWEST_REPEATS, REPEATS, confirmed, to_measure_again
from seatrial.stats.fleet import fleet_of
from seatrial.stats.outliers import FALSE_ALARM_RATE, FEWEST, FEWEST_SINGLE, OutlyingValue, are_enough, screen_groups
from seatrial.store.contents import Contents

SCREENS = ("node", "repeat", "rank", "pair")
"""What `compare --along` screens for outliers."""


class Screened(Frozen):
    """Values of one figure that should be equal: `values` has the repeats of each of `what` (nodes, ranks, repeats).

    `is_paired`: the k-th repeat of each was made in the same process, so changes from repeat to repeat are common to
    all and are removed before the comparison.
    """

    what: tuple[str, ...]
    benchmark: str
    figure: str
    parameters: Mapping[str, Value]
    values: tuple[tuple[float, ...], ...]
    is_paired: bool = False
    environment: str = ""

    @property
    def is_able(self) -> bool:
        """Whether there are enough for a screen, and ratios exist."""
        return self.is_positive and are_enough(self.values)

    @property
    def is_positive(self) -> bool:
        """Whether ratios exist."""
        return all(own and all(0.0 < value < float("inf") for value in own) for own in self.values)

    def outlier(self, found: OutlyingValue, tests: int, rate: float) -> Outlier:
        """One of these that is far from the others, of so many screens together at the false alarm rate."""
        return Outlier(
            what=self.what[found.index],
            benchmark=self.benchmark,
            figure=self.figure,
            parameters=self.parameters,
            value=median(self.values[found.index]),
            ratio=found.ratio,
            sureness=1.0 - min(1.0, found.p_adjusted * tests),
            false_alarm_rate=rate,
            n=len(self.what),
        )


def outliers(screened: Sequence[Screened], margin: float = DEFAULT_MARGIN) -> tuple[Outlier, ...]:
    """The outliers of all these screens, most certain first, then by distance.

    The false alarm rate is for all values of all screens together: each screen gets an equal share (Bonferroni). A
    ratio within [1/(1+margin), 1+margin] is not reported. Screens of too few, or with values that are not positive, are
    ignored. For the assumptions of the rate, see `seatrial.stats.outliers`.
    """
    able = [one for one in screened if one.is_able]
    found = [
        one.outlier(outlying, len(able), FALSE_ALARM_RATE)
        for one in able
        for outlying in screen_groups(_comparable(one), FALSE_ALARM_RATE / len(able))
        if _is_beyond(outlying, margin)
    ]
    return tuple(sorted(found, key=by_sureness))


def _is_beyond(outlying: OutlyingValue, margin: float) -> bool:
    return not 1.0 / (1.0 + margin) <= outlying.ratio <= 1.0 + margin


def fleet_spreads(screened: Sequence[Screened], margin: float = DEFAULT_MARGIN) -> tuple[FleetSpread, ...]:
    """Where nodes truly differ, in the order of the screens: beyond the noise of their repeats at 5 % for all screens
    together, and by more than the margin between the ends of the middle 90 %, or in two kinds."""
    able = [one for one in screened if one.is_able]
    found: list[FleetSpread] = []
    for one in able:
        fleet = fleet_of([[math.log(value) for value in own] for own in _comparable(one)])
        if fleet is None or fleet.p_equal > FALSE_ALARM_RATE / len(able):
            continue
        if fleet.spread[1] <= (1.0 + margin) * fleet.spread[0] and fleet.kinds is None:
            continue
        minority = tuple(one.what[place] for place in fleet.minority)
        found.append(
            FleetSpread(
                benchmark=one.benchmark,
                figure=one.figure,
                parameters=one.parameters,
                n=len(one.what),
                spread=fleet.spread,
                of_noise=fleet.p_equal,
                minority=minority,
                kinds=fleet.kinds,
            )
        )
    return tuple(found)


def screened_nodes(contents: Contents) -> list[Screened]:
    """Every figure of the folder over its nodes."""
    return by_node(results_without_limits(contents), hosts_of_repeats(contents))


def outliers_along(contents: Contents, along: str, margin: float = DEFAULT_MARGIN) -> tuple[Outlier, ...]:
    """The outliers of a results folder among its nodes, repeats, ranks or pairs of ranks (`along` in `SCREENS`).

    Raises UsageError if there are too few of them for any figure.
    """
    if along == "pair":
        return _slow_pairs(contents, margin)
    if along == "rank":
        screened = _of_all_ranks(contents)
    elif along == "node":
        screened = screened_nodes(contents)
    else:
        screened = by_repeat(results_without_limits(contents), hosts_of_repeats(contents))
    if not any(one.is_able for one in screened):
        most = max((len(one.what) for one in screened), default=0)
        least = FEWEST_SINGLE if along == "repeat" else FEWEST
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


def by_node(results: Iterable[ExperimentResult], hosts: Mapping[tuple[str, int], str]) -> list[Screened]:
    """Every figure over the nodes: one group of repeats for each host.

    Nodes are compared if benchmark, parameters and environment are equal; the machine need not be, since each node may
    have been discovered separately. Repeats without a known host are ignored.
    """
    groups: dict[tuple[object, ...], tuple[ExperimentResult, FigureResult, dict[str, list[float]]]] = {}
    for result in results:
        same = (result.experiment.benchmark, _key(result.experiment.parameters), result.experiment.environment)
        for figure in (one for one in result.figures if not one.is_secondary):
            key = (*same, figure.name, point_key(figure.point))
            _, _, values = groups.setdefault(key, (result, figure, {}))
            for repeat in figure.repeats:
                host = hosts.get((result.id, repeat.repeat))
                if host is not None:
                    values.setdefault(host, []).append(repeat.value)
    return [
        _screened(result.experiment, figure.name, figure.point, values)
        for result, figure, values in groups.values()
        if values
    ]


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
    return Screened(tuple(values), experiment.benchmark, figure, parameters, repeats, is_paired, experiment.environment)


def _comparable(one: Screened) -> Sequence[Sequence[float]]:
    """The values; if paired, each over the median of its repeat."""
    if not one.is_paired or len({len(own) for own in one.values}) != 1:
        return one.values
    middles = [median(repeat) for repeat in zip(*one.values, strict=True)]
    return [[value / middle for value, middle in zip(own, middles, strict=True)] for own in one.values]


def _key(parameters: Params) -> tuple[tuple[str, Value], ...]:
    return tuple(sorted(parameters.items()))


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
    before = {_same(one): one for one in screened_nodes(first) if one.is_positive}
    again = measure_again(list(before.values()), first)
    if again is None:
        raise UsageError(
            "the first results folder has too few nodes to measure any again", "screen at least six nodes first"
        )
    repeated = [_with_enough_repeats(one) for one in screened_nodes(new) if one.is_positive]
    pairs = [(before[_same(one)], one) for one in repeated if _same(one) in before]
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
    found.sort(key=by_sureness)
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
        replace(old.outlier(one, figures, FALSE_ALARM_RATE), value=median(suspects[one.index]))
        for one in confirmed(first, suspects, controls, rate)
        if _is_beyond(one, margin)
    ]


def _is_enough(one: Screened, again: MeasureAgain) -> bool:
    suspects = set(one.what) & set(again.suspects)
    return bool(suspects) and len(one.what) - len(suspects) >= FEWEST_CONTROLS


def _with_enough_repeats(one: Screened) -> Screened:
    kept = [(name, values) for name, values in zip(one.what, one.values, strict=True) if len(values) >= FEWEST_REPEATS]
    return replace(one, what=tuple(name for name, _ in kept), values=tuple(values for _, values in kept))


def _same(one: Screened) -> tuple[object, ...]:
    return one.benchmark, one.figure, tuple(sorted(one.parameters.items())), one.environment
