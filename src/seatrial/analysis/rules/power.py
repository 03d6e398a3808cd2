"""Rules about power that sensors showed beside repeats: limits that were reached, power that falls or is averaged,
parts that differ or are out, idle power, and sensors that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean, median
from typing import Any

from seatrial.analysis.power import RECORDED, energies_of
from seatrial.analysis.rules.finding import Case, Names, Subject, error, listed, note, rule, warning
from seatrial.model.frozen import Frozen
from seatrial.model.json_object import record_of
from seatrial.model.machine.fact import Finding
from seatrial.model.machine.power import PartOut, Scope, SourceKind
from seatrial.model.results.energy import MeasuredEnergy
from seatrial.model.results.figure_result import ExperimentResult
from seatrial.model.spelling import count, show, show_percent
from seatrial.stats.averaging import averaging_window

_AT_LIMIT = 0.97
"""The share of its limit from which a part counts as limited: RAPL holds an average, which stays a little below."""
_FLAT = (0.98, 1.03)
"""Values between these shares of the limit are at it,"""
_FLAT_SHARE = 0.25
"""and so many of them are a flat top."""
_FALLS_BY = 0.05
_FEWEST_POINTS = 10
_UNEVEN = 0.15
_HIGH_IDLE = 0.6
_FEWEST_PARTS = 2
_WINDOWS_AGREE = 1.5
_MOST_LOOKED_AT = 8
"""Repeats in which a window is looked for."""


class _Repeat(Frozen):
    """What the sensors showed of a repeat."""

    energies: tuple[MeasuredEnergy, ...]
    curves: Mapping[str, Sequence[Sequence[float]]]
    start_s: float
    end_s: float
    ended_s: float
    parts_out: tuple[PartOut, ...] = ()

    def within(self, source: str) -> list[float]:
        """The power that a sensor shows in the phase. The values at both ends may be of the time before and after."""
        return [watts for at, watts in self.curves.get(source, ()) if self.start_s < at < self.end_s][1:-1]

    def of(self, scope: Scope) -> list[MeasuredEnergy]:
        """The sensors of a scope that show the energy, one for each part."""
        found: dict[tuple[str, str], MeasuredEnergy] = {}
        for one in self.energies:
            if one.scope is scope and one.energy is not None:
                found.setdefault(one.part, one)
        return list(found.values())


def _measured(case: Case) -> Iterator[tuple[str, ExperimentResult, list[_Repeat]]]:
    """Name, experiment and repeats of each experiment whose power was measured."""
    names, powered = Names(case.results), case.known.powered
    for result in case.results:
        if result.id not in powered:
            continue
        known = [found for seen in case.observed(result.id) if (found := _repeat(seen)) is not None]
        if known and result.outcome.is_ok:
            yield names.experiment(result), result, known


def _repeat(seen: Mapping[str, Any]) -> _Repeat | None:
    power, energies = seen.get(RECORDED), energies_of(seen)
    if not energies or not isinstance(power, Mapping):
        return None
    try:
        phase, known = power["phase"], power["curves"].items()
        curves = {str(name): [(float(at), float(watts)) for at, watts in points] for name, points in known}
        start_s, end_s = float(phase["start_s"]), float(phase["end_s"])
        out = tuple(record_of(PartOut, one) for one in power.get("parts_out", ()))
        return _Repeat(energies, curves, start_s, end_s, float(phase.get("ended_s", end_s)), out)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


@rule(Subject.POWER)
def power_limit_reached(case: Case) -> Iterator[Finding]:
    """Fires if a part drew its power limit on average, in most repeats."""
    for name, _, repeats in _measured(case):
        shares: dict[str, list[float]] = {}
        limits: dict[str, float] = {}
        for one in (one for repeat in repeats for one in repeat.energies):
            if one.limit and one.mean_power is not None:
                shares.setdefault(one.source, []).append(one.mean_power / one.limit)
                limits[one.source] = one.limit
        reached = {source: median(own) for source, own in shares.items() if median(own) >= _AT_LIMIT}
        if reached:
            first = max(reached, key=lambda source: reached[source])
            yield warning(
                "power-limit-reached",
                observation=f"{name}: {first} drew {show_percent(reached[first])} of its limit of "
                f"{show(limits[first], 'W')} on average"
                + (f", and so did {listed(one for one in reached if one != first)}." if len(reached) > 1 else "."),
                diagnosis="At its power limit, a part lowers its clock: the figure is that of the limit. By how much "
                "another limit would change it was not measured.",
                remedy="Compare with another limit: the axis environment.power_limit (or environment.gpu_power_limit) "
                "in a study",
                evidence=(
                    f"{source}: {show_percent(share)} of {show(limits[source], 'W')}, median of "
                    f"{count(len(shares[source]), 'repeat')}"
                    for source, share in reached.items()
                ),
            )


@rule(Subject.POWER)
def power_is_capped(case: Case) -> Iterator[Finding]:
    """Fires if the power stays at its limit for a part of the phase, and is never above it, in every repeat. If it does
    so on average, `power_limit_reached` fires."""
    for name, _, repeats in _measured(case):
        shares: dict[str, list[float]] = {}
        limits = {one.source: one.limit for one in repeats[-1].energies if one.limit}
        for source, limit in limits.items():
            for repeat in repeats:
                values = [watts / limit for watts in repeat.within(source)]
                if len(values) >= _FEWEST_POINTS and max(values) <= _FLAT[1] and fmean(values) < _AT_LIMIT:
                    shares.setdefault(source, []).append(fmean(value >= _FLAT[0] for value in values))
        flat = {source: min(own) for source, own in shares.items() if len(own) == len(repeats)}
        capped = [source for source, least in flat.items() if least >= _FLAT_SHARE]
        if capped:
            first = max(capped, key=lambda source: flat[source])
            yield warning(
                "power-capped",
                observation=f"{name}: for {show_percent(median(shares[first]))} of its phase {first} showed its limit "
                f"of {show(limits[first], 'W')}, and never more.",
                diagnosis="Power that stays at its limit is held there: meanwhile the clock is lower than it would be. "
                "By how much another limit would change the figure was not measured.",
                remedy="Compare with another limit: the axis environment.power_limit (or environment.gpu_power_limit) "
                "in a study; a limit of the whole node is set in its BMC",
                evidence=(f"{source}: at least {show_percent(flat[source])} in each repeat" for source in capped),
            )


@rule(Subject.POWER)
def readings_are_averaged(case: Case) -> Iterator[Finding]:
    """Fires if a gauge shows the steps of the load as ramps of one length, in most repeats, and does not state that it
    averages so long."""
    for name, _, repeats in _measured(case):
        found: dict[str, list[float]] = {}
        looked_at = repeats[-_MOST_LOOKED_AT:]
        for repeat in looked_at:
            loads = ((repeat.start_s, repeat.end_s), (0.0, repeat.ended_s), (0.0, repeat.end_s))
            for one in (one for one in repeat.energies if one.kind is SourceKind.GAUGE):
                points = repeat.curves.get(one.source, ())
                window_s = averaging_window([at for at, _ in points], [watts for _, watts in points], loads)
                if window_s is not None and window_s > _WINDOWS_AGREE * (one.window_s or 0.0):
                    found.setdefault(one.source, []).append(window_s)
        for source, windows in found.items():
            if 2 * len(windows) > len(looked_at) and max(windows) <= _WINDOWS_AGREE * min(windows):
                window_s = median(windows)
                yield warning(
                    "power-averaged",
                    observation=f"{name}: {source} shows the start and the end of the load as ramps of "
                    f"{show(window_s, 's')}.",
                    diagnosis=f"An average over the last {show(window_s, 's')} looks like this, and so does a device "
                    "that raises and lowers its power slowly (power smoothing); which it is was not measured. The "
                    "sensor does not state it, so the errors of its energy do not hold it.",
                    remedy=f"Take samples for {show(10 * window_s, 's')} or longer, or use a counter of energy "
                    "(`seatrial power` lists them)",
                    evidence=f"{', '.join(show(one, 's') for one in windows)} in {count(len(windows), 'repeat')} of "
                    f"{len(looked_at)}, at intervals of {show(_interval_s(looked_at[-1], source), 's')}",
                )


def _interval_s(repeat: _Repeat, source: str) -> float | None:
    points = repeat.curves.get(source, ())
    return median([later[0] - earlier[0] for earlier, later in pairwise(points)]) if len(points) > 1 else None


@rule(Subject.POWER)
def parts_are_out(case: Case) -> Iterator[Finding]:
    """Fires if a BMC reported a fan or a supply that is out while experiments were measured."""
    names: dict[PartOut, dict[str, None]] = {}
    for name, _, repeats in _measured(case):
        for part in (part for repeat in repeats for part in repeat.parts_out):
            names.setdefault(part, {})[name] = None
    if names:
        measured = dict.fromkeys(name for own in names.values() for name in own)
        yield warning(
            "power-part-out",
            observation=f"While {listed(measured)} {'was' if len(measured) == 1 else 'were'} measured, "
            f"{count(len(names), 'part')} of the node {'was' if len(names) == 1 else 'were'} out, as the BMC reports: "
            f"{listed(part.words for part in names)}.",
            diagnosis="Without a fan, others turn faster and draw more, or parts get warmer; without a supply, the "
            "others work at another efficiency. What it changed in these figures was not measured.",
            remedy="Have the part replaced, then measure again; look at it in the BMC's event log",
            evidence=(f"{part.source}: {part.words}, with {listed(own)}" for part, own in names.items()),
        )


@rule(Subject.POWER)
def power_falls(case: Case) -> Iterator[Finding]:
    """Fires if the power of the node, or of a part if no sensor measures the node, falls within the phase of every
    repeat."""
    for name, _, repeats in _measured(case):
        falls: dict[str, list[float]] = {}
        for repeat in repeats:
            for one in repeat.of(Scope.NODE) or repeat.of(Scope.PACKAGE) or repeat.of(Scope.DEVICE):
                if (fall := _fall(repeat, one.source)) is not None:
                    falls.setdefault(one.source, []).append(fall)
        steady = {source: min(own) for source, own in falls.items() if len(own) == len(repeats)}
        falling = {source: least for source, least in steady.items() if least >= _FALLS_BY}
        if falling:
            first = max(falling, key=lambda source: falling[source])
            yield warning(
                "power-falls",
                observation=f"{name}: the power shown by {first} fell by {show_percent(median(falls[first]))} from the "
                "first to the last fifth of each repeat.",
                diagnosis="Heat or a limit on the average of power lowers clocks over time, and then a short run shows "
                "more than a long one. Work that becomes less has the same effect. Which it is was not measured.",
                remedy="Repeat with a longer phase, and watch clock and temperature meanwhile (`turbostat`, "
                "`nvidia-smi -q -d CLOCK,TEMPERATURE`)",
                evidence=f"{first}: {', '.join(show_percent(one) for one in falls[first][:_FEWEST_POINTS])}",
            )


def _fall(repeat: _Repeat, source: str) -> float | None:
    """By which share the power of the last fifth of the phase is below that of the first; None: too few values."""
    within = repeat.within(source)
    if len(within) < _FEWEST_POINTS:
        return None
    fifth = len(within) // 5
    first = fmean(within[:fifth])
    return None if first <= 0 else 1 - fmean(within[-fifth:]) / first


@rule(Subject.POWER)
def uneven_parts(case: Case) -> Iterator[Finding]:
    """Fires if parts of one kind draw different power in every repeat, beyond their errors, though all are busy."""
    for name, _, repeats in _measured(case):
        for scope in (Scope.PACKAGE, Scope.DEVICE):
            lows = [_lowest(repeat.of(scope)) for repeat in repeats]
            least = [one for one in lows if one is not None]
            if len(least) < len(repeats) or len({source for source, _, _ in least}) != 1:
                continue
            source, gaps, n_parts = least[0][0], [gap for _, gap, _ in least], least[0][2]
            yield note(
                "power-uneven",
                observation=f"{name}: {source} drew {show_percent(median(gaps))} less than the other "
                f"{count(n_parts - 1, scope.value)}, in each repeat.",
                diagnosis="It had less work, a lower clock, or waited: power alone does not say which.",
                remedy="Measure each part alone, and compare their figures",
                evidence=f"least gap {show_percent(min(gaps))} in {count(len(gaps), 'repeat')}",
            )


def _lowest(parts: Sequence[MeasuredEnergy]) -> tuple[str, float, int] | None:
    """(the part with the lowest power, by which share it is below the median of the others, number of parts) if that is
    clear, and it draws clearly more than idle."""
    if len(parts) < _FEWEST_PARTS:
        return None
    ranked = sorted(parts, key=lambda one: one.mean_power or 0.0)
    low, others = ranked[0], ranked[1:]
    usual = median([one.mean_power or 0.0 for one in others])
    errors = (low.mean_power_error or 0.0) + max(one.mean_power_error or 0.0 for one in others)
    gap = usual - (low.mean_power or 0.0)
    is_busy = low.idle_before is not None and (low.mean_power or 0.0) > (1 + _UNEVEN) * low.idle_before
    if usual <= 0 or gap < _UNEVEN * usual or gap <= errors or not is_busy:
        return None
    return low.source, gap / usual, len(parts)


@rule(Subject.POWER)
def high_idle_power(case: Case) -> Iterator[Finding]:
    """Fires if the node draws most of its highest mean power without work."""
    nodes = [one for _, _, repeats in _measured(case) for repeat in repeats for one in repeat.of(Scope.NODE)]
    idle = [watts for one in nodes for watts in (one.idle_before, one.idle_after) if watts is not None]
    busiest = max((one.mean_power or 0.0 for one in nodes), default=0.0)
    if idle and busiest > 0 and median(idle) >= _HIGH_IDLE * busiest:
        yield note(
            "power-idle-high",
            observation=f"Idle, the node draws {show(median(idle), 'W')}: {show_percent(median(idle) / busiest)} of "
            f"the {show(busiest, 'W')} of its busiest program here.",
            diagnosis="If programs here use most of the node, idle states or clocks do not save much on it. If they "
            "use a small part of it, this is to be expected.",
            remedy="Look at idle states and governor (`seatrial settings`, `cpupower idle-info`), and compare "
            "environment.cpu_idle and environment.governor in a study",
            evidence=f"{count(len(idle), 'value')} of idle power between repeats, from {show(min(idle), 'W')} to "
            f"{show(max(idle), 'W')}",
        )


@rule(Subject.POWER)
def sensors_contradict(case: Case) -> Iterator[Finding]:
    """Fires if parts used more energy than their node, beyond the errors of both, in every repeat."""
    for name, _, repeats in _measured(case):
        excess = [_excess(repeat) for repeat in repeats]
        above = [one for one in excess if one is not None]
        if above and len(above) == len(repeats):
            parts, node, sources = max(above, key=lambda one: one[0] / one[1])
            yield error(
                "power-sensors-contradict",
                observation=f"{name}: {sources} used {show(parts, 'J')}, but the whole node {show(node, 'J')}.",
                diagnosis="A part cannot use more than its node: one of the sensors is wrong, or the node's sensor is "
                "of another node. No figure of power here can be trusted.",
                remedy="Compare the sensors with a meter (`seatrial power --meter FILE.csv`), and check which chassis "
                "the site file names",
                evidence=f"in {count(len(above), 'repeat')}, beyond the errors of both",
            )


def _excess(repeat: _Repeat) -> tuple[float, float, str] | None:
    """(energy of the parts, energy of the node, names of the parts) if the parts are above the node."""
    nodes = repeat.of(Scope.NODE)
    parts = [one for scope in (Scope.PACKAGE, Scope.MEMORY, Scope.DEVICE) for one in repeat.of(scope)]
    if not nodes or not parts:
        return None
    node = max(nodes, key=lambda one: one.energy or 0.0)
    parts = [one for one in parts if one.node == node.node]
    total = sum(one.energy or 0.0 for one in parts)
    errors = (node.energy_error or 0.0) + sum(one.energy_error or 0.0 for one in parts)
    if total - errors <= (node.energy or 0.0):
        return None
    return total, node.energy or 0.0, listed(one.source for one in parts)
