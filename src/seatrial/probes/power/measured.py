"""From the readings of a sensor to the energy of a phase, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import fmean, median
from typing import Any

from seatrial.model.machine.power import Scope, SourceKind
from seatrial.model.results.energy import MeasuredEnergy
from seatrial.model.spelling import count, show
from seatrial.probes.power.source import STALE_AFTER, Reading, Sensor
from seatrial.stats.energy import FEWEST_VALUES, Energy, Series, energy, refresh_interval, unwrapped

_MOST_MISSING = 0.1
"""The share of readings in a phase that may have no value."""
_STUCK_AFTER = 20
"""A sensor that shows one value for so many of its intervals, before, in and after the phase, is stuck."""
_STAMP_STEP_S = 1.0
"""Sensors and BMCs state times in whole seconds."""
_BOTH = 2
_Known = tuple[tuple[float, float, float | None], ...]


def measured(sensor: Sensor, readings: Sequence[Reading], start_s: float, end_s: float) -> MeasuredEnergy:
    """The energy from `start_s` to `end_s`, on the clock of the readings."""
    known, reason = _known(sensor, readings, start_s, end_s)
    refresh_s = sensor.refresh_s
    found = None
    if not reason:
        seen_s = refresh_interval([at for at, _, _ in known], [value for _, value, _ in known])
        refresh_s = refresh_s or seen_s
        if len(known) < _BOTH:
            reason = f"only {count(len(known), 'reading')} before, in and after {show(end_s - start_s, 's')}"
        elif refresh_s is not None and end_s - start_s < FEWEST_VALUES * refresh_s:
            reason = _too_short(sensor, refresh_s, end_s - start_s)
        else:
            reason = _unusable(sensor, known, refresh_s, end_s)
    if not reason and refresh_s is not None:
        found = energy(_series(sensor, readings, known, refresh_s), start_s, end_s, sensor.accuracy or 0.0)
        if found is None:
            reason = _too_short(sensor, refresh_s, end_s - start_s)
    return _result(sensor, found, end_s - start_s, refresh_s, reason or _not_in_error(sensor))


def _known(sensor: Sensor, readings: Sequence[Reading], start_s: float, end_s: float) -> tuple[_Known, str]:
    """(time, value, age) of the readings that have a value, and the reason if too few do."""
    is_counter = sensor.kind is SourceKind.COUNTER
    values = [one.joules if is_counter else one.watts for one in readings]
    if not is_counter:
        values = [None if _is_none(sensor, value) else value for value in values]
    kept = [(one, value) for one, value in zip(readings, values, strict=True) if value is not None]
    within = [start_s <= one.at_s <= end_s for one in readings]
    n_within = sum(within)
    missing = sum(value is None for value, is_within in zip(values, within, strict=True) if is_within)
    if not kept or missing > _MOST_MISSING * n_within:
        fault = next((one.fault for one in readings if one.fault), "no value, 0 or a negative one")
        return (), f"{missing} of {count(n_within, 'reading')} have no value: {fault}"
    if not is_counter:
        return tuple((one.at_s, value, one.age_s) for one, value in kept), ""
    totals = unwrapped([value for _, value in kept], sensor.modulus_J)
    paired = zip(kept, totals, strict=True)
    return tuple((one.at_s, total, one.age_s) for (one, _), total in paired if total is not None), ""


def _is_none(sensor: Sensor, value: float | None) -> bool:
    """Values that stand for none: of a node that runs, 0 W too."""
    return value is None or value < 0 or (value == 0 and sensor.scope in (Scope.NODE, Scope.ENCLOSURE))


def _unusable(sensor: Sensor, known: _Known, refresh_s: float | None, end_s: float) -> str:
    """Why these values show no energy; "" if they do."""
    ages = [age for at, _, age in known if age is not None and at <= end_s]
    if refresh_s is not None and ages and median(ages) > STALE_AFTER * max(refresh_s, _STAMP_STEP_S):
        return f"its values are {show(median(ages), 's')} old, though they change every {show(refresh_s, 's')}: stale"
    span_s = known[-1][0] - known[0][0]
    is_one = len({value for _, value, _ in known}) == 1
    if is_one and (refresh_s is None or span_s >= _STUCK_AFTER * refresh_s):
        what = show(known[0][1], "J" if sensor.kind is SourceKind.COUNTER else "W")
        return f"it showed {what} in all {len(known)} readings, for {show(span_s, 's')}: stuck"
    if refresh_s is None:
        return "how often it changes is not known: it did so too seldom (state `refresh:` in the site file)"
    return ""


def _series(sensor: Sensor, readings: Sequence[Reading], known: _Known, refresh_s: float) -> Series:
    """The values, once for each time that the sensor had a new one."""
    took_s = fmean(one.took_s for one in readings)
    period_s = median(later[0] - earlier[0] for earlier, later in pairwise(known))
    late_s = min(refresh_s, period_s) + took_s
    if all(age is not None for _, _, age in known):
        known = tuple((at - (age or 0.0), value, age) for at, value, age in known)
        late_s = min(late_s, _STAMP_STEP_S + took_s)
    kept, is_new = [known[0]], True
    for one in known[1:]:
        is_changed, apart_s = one[1] != kept[-1][1], one[0] - kept[-1][0]
        if apart_s <= 0 or not (is_changed or apart_s >= refresh_s - period_s / 2):
            continue
        if is_changed and not is_new and apart_s < refresh_s:
            # Equal values do not show when the sensor was refreshed; a change does: an interval before it, too.
            earlier_s = max(one[0] - refresh_s, (kept[-2][0] + kept[-1][0]) / 2 if len(kept) > 1 else kept[-1][0])
            kept[-1] = (min(earlier_s, kept[-1][0]), *kept[-1][1:])
        kept.append(one)
        is_new = is_changed
    return Series(
        tuple(at for at, _, _ in kept),
        tuple(value for _, value, _ in kept),
        sensor.kind is SourceKind.COUNTER,
        refresh_s,
        late_s,
        sensor.window_s or 0.0,
        sensor.quantum,
    )


def _too_short(sensor: Sensor, refresh_s: float, elapsed_s: float) -> str:
    length_s = FEWEST_VALUES * max(refresh_s, sensor.window_s or 0.0)
    if elapsed_s >= length_s:
        return f"power was not steady before and after, and {show(elapsed_s, 's')} are too short to be read within"
    return (
        f"{show(elapsed_s, 's')} hold fewer than {FEWEST_VALUES} values of {sensor.name}, which changes every "
        f"{show(refresh_s, 's')}: at least {show(length_s, 's')} would do"
    )


def _not_in_error(sensor: Sensor) -> str:
    missing = [] if sensor.accuracy is not None else ["the accuracy of the meter"]
    if sensor.window_s is None and sensor.kind is SourceKind.GAUGE:
        missing.append("how long it averages")
    return f"the error does not hold {' and '.join(missing)}: not stated" if missing else ""


def _result(
    sensor: Sensor, found: Energy | None, elapsed_s: float, refresh_s: float | None, reason: str
) -> MeasuredEnergy:
    value: Callable[[str], Any] = lambda name: None if found is None else getattr(found, name)  # noqa: E731
    idle = [one for one in (value("before_W"), value("after_W")) if one is not None]
    over_idle = found.joules - fmean(idle) * elapsed_s if found is not None and len(idle) == _BOTH else None
    return MeasuredEnergy(
        source=sensor.name,
        scope=sensor.scope,
        supply=sensor.supply,
        energy=value("joules"),
        energy_error=value("joules_error"),
        mean_power=value("mean_W"),
        mean_power_error=value("mean_error_W"),
        peak_power=value("peak_W"),
        peak_power_error=value("peak_error_W"),
        idle_before=value("before_W"),
        idle_after=value("after_W"),
        energy_over_idle=over_idle,
        elapsed_s=elapsed_s,
        values=value("n_values") or 0,
        refresh_s=refresh_s,
        window_s=sensor.window_s,
        accuracy=sensor.accuracy,
        reason=reason,
        of=sensor.of,
        kind=sensor.kind,
        limit=sensor.limit_W,
        node=sensor.node,
    )
