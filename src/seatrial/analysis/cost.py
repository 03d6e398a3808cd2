"""What a result costs by the site's tariff: node-hours, and their price with that of the energy.

Nothing is guessed: without a tariff in the site file there is no price, and without a measured energy of the node, none
of energy.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from seatrial.analysis.experiment_figures import Extent, summarised
from seatrial.benchmarks import registry
from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import Benchmark, Better, Figure, elapsed
from seatrial.model.benchmark.power import SCOPE, of_result
from seatrial.model.environment.site import Tariff
from seatrial.model.machine.power import Scope
from seatrial.model.results.figure_result import ExperimentResult, FigureResult, RepeatValue, RepeatValues
from seatrial.model.results.sample import point_key
from seatrial.plan.site_in_force import place_in_force, site_in_force

_log = logging.getLogger(__name__)
_HOUR_S = 3600.0
_KWH_J = 3.6e6


def tariff_in_force() -> Tariff | None:
    """The tariff of the site file; None without one. A file that is invalid is reported, and has none."""
    try:
        return site_in_force().tariff_at(place_in_force())
    except UsageError as error:
        _log.warning("no prices: %s", error.message)
        return None


def priced(results: Sequence[ExperimentResult]) -> tuple[ExperimentResult, ...]:
    """The results with the costs of their times as further figures, if there is a tariff."""
    tariff = tariff_in_force()
    if tariff is None:
        return tuple(results)
    known = registry()
    return tuple(
        result
        if (benchmark := known.get(result.experiment.benchmark)) is None or not result.figures
        else replace(result, figures=(*result.figures, *_costs(benchmark, result, tariff)))
        for result in results
    )


def _costs(benchmark: Benchmark, result: ExperimentResult, tariff: Tariff) -> Iterator[FigureResult]:
    nodes = max(1, len(set(result.hosts)))
    declared = {figure.name: figure for figure in benchmark.figures if not figure.is_secondary}
    for one in result.figures:
        figure = declared.get(one.name)
        if (
            figure is None
            or figure.unit != "s"
            or figure.better is not Better.LOWER
            or not isinstance(one.repeats, RepeatValues)
        ):
            continue
        hours = {repeat.repeat: repeat.value * nodes / _HOUR_S for repeat in one.repeats}
        yield _figure(result, one, f"{one.name}_node_hours", "node-h", f"{one.name} on {nodes} node", hours)
        energy = of_result(figure)
        joules = {} if energy is None else _joules(result, one, energy.name)
        if tariff.node_hour is None and not joules:
            continue
        price = {
            repeat: (tariff.node_hour or 0.0) * own + (tariff.kwh or 0.0) * joules.get(repeat, 0.0) / _KWH_J
            for repeat, own in hours.items()
            if not joules or repeat in joules
        }
        yield _figure(result, one, f"{one.name}_price", tariff.currency, _words(tariff, has_energy=bool(joules)), price)


def _joules(result: ExperimentResult, one: FigureResult, name: str) -> dict[int, float]:
    """The energy of a time in each repeat, of the node."""
    wanted = point_key({**one.point, SCOPE: Scope.NODE.value})
    found = next((f for f in result.figures if f.name == name and point_key(f.point) == wanted), None)
    return {} if found is None else {repeat.repeat: repeat.value for repeat in found.repeats}


def _words(tariff: Tariff, *, has_energy: bool) -> str:
    nodes = "" if tariff.node_hour is None else f"{tariff.node_hour:g} {tariff.currency} for a node-hour"
    energy = "without energy, which was not measured or has no price"
    if has_energy and tariff.kwh is not None:
        energy = f"{tariff.kwh:g} {tariff.currency} for a kWh"
    return ", ".join(filter(None, (nodes, energy)))


def _figure(
    result: ExperimentResult, of: FigureResult, name: str, unit: str, work: str, values: Mapping[int, float]
) -> FigureResult:
    repeats = RepeatValues.of(
        [RepeatValue(one.repeat, one.order, one.t0, values[one.repeat]) for one in of.repeats if one.repeat in values]
    )
    figure = Figure(name, unit, Better.LOWER, elapsed, work, is_secondary=True)
    seen = Extent(min(repeats.values), max(repeats.values), len(repeats))
    return summarised(figure, of.point, result.experiment.parameters, repeats, seen, None)
