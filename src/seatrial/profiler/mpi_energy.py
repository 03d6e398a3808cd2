"""The energy of the time in MPI and of that outside of it, as far as readings of power separate them.

A value of a sensor is about the time since the one before, and over its averaging window. In a slice of that length the
ranks are in MPI, outside, or both. The energy of a slice with both is divided by time; what that may be wrong by is
the share of either, times the range of powers that were read. Where most of the time is in such slices there is no
energy of either.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from seatrial.model.results.energy import Curve, MeasuredEnergy, MpiEnergy, PowerOverTime
from seatrial.model.spelling import show, show_percent
from seatrial.profiler.profile import OverTime

_PURE = 0.9
"""A slice is of MPI if so much of its time is, and outside of it if so much is."""
_MOST_MIXED = 0.5
_FEWEST_SLICES = 10


def mpi_energies(time: OverTime | None, power: PowerOverTime, hosts: int) -> tuple[MpiEnergy, ...]:
    """By each sensor that shows the energy of the command. `time` is that of all ranks, `hosts` the number of nodes
    that they ran on: the sensors are of one of them."""
    return tuple(_by(one, time, power.curves.get(one.source, ()), hosts) for one in power.energies if one.energy)


def _by(one: MeasuredEnergy, time: OverTime | None, curve: Curve, hosts: int) -> MpiEnergy:
    slice_s = None if one.refresh_s is None else one.refresh_s + (one.window_s or 0.0)
    if len(curve) > 1:  # of many values, the curve has means of neighbours
        slice_s = max(slice_s or 0.0, (curve[-1][0] - curve[0][0]) / (len(curve) - 1))
    if hosts != 1 or time is None or slice_s is None or len(curve) < _FEWEST_SLICES:
        why = f"the ranks ran on {hosts} nodes, and the sensor measures one of them" if hosts > 1 else "no time in MPI"
        return _none(one, slice_s, why if hosts > 1 or time is None else "too few values over time")
    each = max(1, math.ceil(slice_s / time.width_s - 1e-9))
    width_s = each * time.width_s
    starts = range(0, len(time.mpi_s), each)
    spent = [(sum(time.mpi_s[k : k + each]), sum(time.wall_s[k : k + each])) for k in starts]
    shares = [min(1.0, mpi / wall) if wall > 0 else 0.0 for mpi, wall in spent]
    if len(shares) < _FEWEST_SLICES:
        return _none(one, slice_s, f"fewer than {_FEWEST_SLICES} slices of {show(width_s, 's')}")
    mixed = sum(1 - _PURE < share < _PURE for share in shares) / len(shares)
    if mixed > _MOST_MIXED:
        why = (
            f"in {show_percent(mixed)} of the slices of {show(width_s, 's')} ranks are both in MPI and outside: "
            f"{one.source} has a value every {show(one.refresh_s, 's')}, which does not separate them"
        )
        return _none(one, slice_s, why)
    joules = [_energy(curve, k * width_s, (k + 1) * width_s) for k in range(len(shares))]
    in_mpi = sum(share * energy for share, energy in zip(shares, joules, strict=True))
    outside = sum(joules) - in_mpi
    error = _unsure(one, curve, shares, joules, width_s, slice_s)
    of_sensor = (one.energy_error or 0.0) / (one.energy or 1.0)
    return MpiEnergy(
        one.source, in_mpi, error + of_sensor * in_mpi, outside, error + of_sensor * outside, slice_s, one.reason
    )


def _unsure(
    one: MeasuredEnergy,
    curve: Curve,
    shares: Sequence[float],
    joules: Sequence[float],
    width_s: float,
    slice_s: float,
) -> float:
    """What may be of the other: in slices with both, and where one follows the other."""
    within = [watts for at, watts in curve if 0.0 <= at <= width_s * len(shares)]
    span_W = max(within, default=0.0) - min([*within, *([one.idle_before] if one.idle_before is not None else [])])
    mixed = sum(share * (1 - share) for share in shares) * width_s * span_W
    steps = 0.0
    for k, (share, after) in enumerate(pairwise(shares)):
        if abs(share - after) > 1 - _PURE:  # what is late shows a step in the slices beside it
            beside = joules[max(0, k - 1) : k + 3]
            steps += (max(beside) - min(beside)) / width_s * slice_s
    return mixed + steps


def _energy(curve: Curve, start_s: float, end_s: float) -> float:
    """The area below the curve, with its ends as they are nearest."""
    inside = [(at, watts) for at, watts in curve if start_s < at < end_s]
    points = [(start_s, _at(curve, start_s)), *inside, (end_s, _at(curve, end_s))]
    return sum((b - a) * (one + other) / 2 for (a, one), (b, other) in pairwise(points))


def _at(curve: Curve, at_s: float) -> float:
    before = max((point for point in curve if point[0] <= at_s), default=curve[0])
    after = min((point for point in curve if point[0] >= at_s), default=curve[-1])
    if after[0] <= before[0]:
        return before[1]
    return before[1] + (after[1] - before[1]) * min(1.0, max(0.0, (at_s - before[0]) / (after[0] - before[0])))


def _none(one: MeasuredEnergy, slice_s: float | None, reason: str) -> MpiEnergy:
    return MpiEnergy(one.source, None, None, None, None, slice_s, reason)
