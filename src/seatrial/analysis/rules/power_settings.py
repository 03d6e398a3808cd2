"""A rule about settings of the machine (governor, turbo, clocks, limits) that cost more energy than they save."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

from seatrial.analysis.rules.finding import Case, Names, Subject, rule, warning
from seatrial.benchmarks import registry
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.benchmark.power import SCOPE, SCOPES, of_result
from seatrial.model.environment.machine_settings import MACHINE_SETTINGS, UNCHANGED
from seatrial.model.frozen import Frozen
from seatrial.model.machine.fact import Finding
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.spelling import show_percent, show_range

CHOSEN = "machine_settings"


class _Side(Frozen):
    """An experiment with its settings."""

    result: ExperimentResult
    settings: Mapping[str, str]


class _Loss(Frozen):
    """A setting that is slower than another one and needs more energy: the figures of both, slower one first."""

    slow: _Side
    fast: _Side
    speed: tuple[FigureResult, FigureResult]
    cost: tuple[FigureResult, FigureResult]

    @property
    def ratio(self) -> float:
        """Of the energies for one result."""
        one, other = (figure.median for figure in self.cost)
        return one / other if self.cost[0].better is Better.LOWER else other / one


@rule(Subject.POWER)
def setting_costs_more(case: Case) -> Iterator[Finding]:
    """Fires if one value of a setting is slower than another and needs more energy for a result, both by intervals that
    do not overlap, with all else equal."""
    names = Names(case.results)
    documents = case.environments.values()
    chosen = {name for one in documents if isinstance(own := one.get(CHOSEN), Mapping) for name in own}
    for setting in MACHINE_SETTINGS:
        if setting not in chosen:
            continue
        for sides in _alike(case, setting):
            losses = [loss for slow, fast in permutations(sides, 2) if (loss := _loss(slow, fast)) is not None]
            if losses:
                yield _finding(names, setting, max(losses, key=lambda loss: loss.ratio))


def _alike(case: Case, setting: str) -> Iterator[Sequence[_Side]]:
    """The experiments that differ in this setting alone."""
    groups: dict[str, list[_Side]] = {}
    for result in case.results:
        document = case.environments.get(result.experiment.environment)
        if document is None or not result.outcome.is_ok or result.no_cpu is not None:
            continue
        chosen = document.get(CHOSEN)
        settings = {str(name): str(value) for name, value in chosen.items()} if isinstance(chosen, Mapping) else {}
        others = {name: value for name, value in settings.items() if name != setting}
        rest = {name: value for name, value in document.items() if name not in (CHOSEN, "name")}
        parameters = sorted(result.experiment.parameters.items(), key=lambda item: item[0])
        key = repr((result.experiment.benchmark, parameters, sorted(others.items()), _sorted(rest)))
        groups.setdefault(key, []).append(_Side(result, settings))
    return (sides for sides in groups.values() if len({side.settings.get(setting, UNCHANGED) for side in sides}) > 1)


def _sorted(document: Any) -> Any:
    return sorted((key, _sorted(own)) for key, own in document.items()) if isinstance(document, Mapping) else document


def _loss(slow: _Side, fast: _Side) -> _Loss | None:
    """By the first figure that is slower, and its energy of the largest scope that has one."""
    declared = registry().get(slow.result.experiment.benchmark)
    for figure in () if declared is None else declared.figures:
        cost = None if figure.is_secondary else of_result(figure)
        if cost is None:
            continue
        for one in (one for one in slow.result.figures if one.name == figure.name):
            speed = _both(slow, fast, figure.name, one.point)
            if speed is None or not _is_worse(*speed):
                continue
            points = ({**one.point, SCOPE: scope.value} for scope in SCOPES)
            costs = next(filter(None, (_both(slow, fast, cost.name, point) for point in points)), None)
            if costs is not None and _is_worse(*costs):
                return _Loss(slow, fast, speed, costs)
    return None


def _both(slow: _Side, fast: _Side, name: str, point: Mapping[str, Any]) -> tuple[FigureResult, FigureResult] | None:
    one, other = (_same(side.result, name, point) for side in (slow, fast))
    return None if one is None or other is None else (one, other)


def _same(result: ExperimentResult, name: str, point: Mapping[str, Any]) -> FigureResult | None:
    return next((one for one in result.figures if one.name == name and dict(one.point) == dict(point)), None)


def _is_worse(one: FigureResult, other: FigureResult) -> bool:
    """By intervals that do not overlap."""
    if one.ci95 is None or other.ci95 is None:
        return False
    return one.ci95[1] < other.ci95[0] if one.better is Better.HIGHER else one.ci95[0] > other.ci95[1]


def _finding(names: Names, setting: str, loss: _Loss) -> Finding:
    slow, fast = (side.settings.get(setting, UNCHANGED) for side in (loss.slow, loss.fast))
    (speed, of_fast), (cost, cost_of_fast) = loss.speed, loss.cost
    slower = of_fast.median / speed.median if speed.better is Better.HIGHER else speed.median / of_fast.median
    return warning(
        "setting-costs-more-than-it-saves",
        observation=f"{names.experiment(loss.slow.result)}: with {setting} {slow}, a result takes "
        f"{show_percent(slower - 1)} longer than with {fast}, and {show_percent(loss.ratio - 1)} more energy.",
        diagnosis=f"{setting} {slow} saves nothing here: it lowers the power by less than it prolongs the time.",
        remedy=f"Set {setting} to {fast} for work like this",
        evidence=(
            f"{speed.name}: {_range(speed)} with {slow}, {_range(of_fast)} with {fast}",
            f"{cost.name} ({cost.point[SCOPE]}): {_range(cost)} with {slow}, {_range(cost_of_fast)} with {fast}",
            "95 % intervals",
        ),
    )


def _range(figure: FigureResult) -> str:
    low, high = figure.ci95 or (figure.median, figure.median)
    return show_range(low, high, figure.unit, beside=figure.median)
