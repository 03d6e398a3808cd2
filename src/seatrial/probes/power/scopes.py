"""From the energies of single sensors to the figures of a scope: the node, or all parts of one kind in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from seatrial.model.benchmark.copies import COPY
from seatrial.model.benchmark.power import (
    ENERGY,
    MEAN_POWER,
    OVER_IDLE,
    PEAK_POWER,
    SCOPES,
    is_of_power,
    of_result,
    power_sample,
    value_of_result,
)
from seatrial.model.machine.power import Scope, SourceKind
from seatrial.model.results.energy import Curve, MeasuredEnergy, PowerOverTime
from seatrial.model.results.record import Reading
from seatrial.model.results.sample import Sample


def scope_samples(
    found: PowerOverTime, results: Iterable[Reading], runs: int, nodes: Sequence[str] = ("",)
) -> tuple[Sample, ...]:
    """The samples of the figures of power. `results` are the figures of the same repeat, `runs` the number of runs of
    the program in its phase, `nodes` those that it ran on ("": this one): all of them together count."""
    results = [one for one in results if not is_of_power(one.figure) and not one.figure.is_secondary]
    samples: list[Sample] = []
    for scope in SCOPES:
        own = sensors_of(scope, [one for one in found.energies if one.node in nodes])
        if {one.node for one in own} == set(nodes) and all(one.energy is not None for one in own):
            samples += _of_scope(scope, own, found.curves, results, runs)
    return tuple(samples)


def sensors_of(scope: Scope, energies: Sequence[MeasuredEnergy]) -> list[MeasuredEnergy]:
    """A sensor of each part, which has its energy if one of them does, counters first: others measure the same. All
    sensors of a node measure the same."""
    parts: dict[tuple[str, str], MeasuredEnergy] = {}
    own = [one for one in energies if one.scope is scope]
    for one in sorted(own, key=lambda one: (one.energy is None, one.kind is not SourceKind.COUNTER)):
        parts.setdefault(one.part, one)
    return list(parts.values())


def _of_scope(
    scope: Scope,
    own: Sequence[MeasuredEnergy],
    curves: Mapping[str, Curve],
    results: Sequence[Reading],
    runs: int,
) -> list[Sample]:
    joules, error_J = _sum(one.energy for one in own), _sum(one.energy_error for one in own)
    mean_W, error_W = _sum(one.mean_power for one in own), _sum(one.mean_power_error for one in own)
    samples = [
        power_sample(ENERGY, scope, joules / runs, error_J / runs),
        power_sample(MEAN_POWER, scope, mean_W, error_W),
        power_sample(PEAK_POWER, scope, _peak(own, curves), _sum(one.peak_power_error for one in own)),
    ]
    over_idle = [one.energy_over_idle for one in own]
    if None not in over_idle:
        samples.append(power_sample(OVER_IDLE, scope, _sum(over_idle) / runs, error_J / runs))
    for reading in results:
        figure = of_result(reading.figure)
        if figure is not None and mean_W > 0 and reading.value > 0:
            value = value_of_result(reading.figure, reading.value, mean_W)
            point = {name: where for name, where in reading.point.items() if name != COPY}
            samples.append(power_sample(figure.name, scope, value, value * error_W / mean_W, point))
    return samples


def _peak(own: Sequence[MeasuredEnergy], curves: Mapping[str, Curve]) -> float:
    """The highest power of all parts at the same time. The sum of their highest is never less."""
    if len(own) == 1:
        return own[0].peak_power or 0.0
    known = [list(curves.get(one.source, ())) for one in own]
    latest = [0.0] * len(known)
    highest = 0.0
    moments = sorted((at, number, watts) for number, points in enumerate(known) for at, watts in points)
    for _, number, watts in moments:
        latest[number] = watts
        highest = max(highest, sum(latest))
    return min(highest, _sum(one.peak_power for one in own))


def _sum(values: Iterable[float | None]) -> float:
    return sum(value or 0.0 for value in values)
