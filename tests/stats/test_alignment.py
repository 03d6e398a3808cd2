"""The offset between a meter's clock and a program's, by planted loads."""

from __future__ import annotations

import numpy as np
import pytest

from seatrial.stats.alignment import aligned, edges


def curve(
    phases: list[tuple[float, float]], offset_s: float, interval_s: float, *, noise_W: float = 2.0, seed: int = 0
) -> tuple[list[float], list[float]]:
    """A meter of 300 W, and 500 W in the phases, whose values are averages of its interval."""
    generator = np.random.default_rng(seed)
    fine = np.arange(0.0, phases[-1][1] + 60, 0.01)
    power = np.full(fine.shape, 300.0)
    for start, end in phases:
        power[(fine >= start) & (fine < end)] = 500.0
    total = np.concatenate([[0.0], np.cumsum(power) * 0.01])[:-1]
    ends = np.arange(interval_s + generator.random() * interval_s, fine[-1], interval_s)
    watts = (np.interp(ends, fine, total) - np.interp(ends - interval_s, fine, total)) / interval_s
    return list(ends + offset_s), list(watts + generator.normal(0, noise_W, ends.shape))


@pytest.mark.parametrize("phases", [[(40.0, 90.0)], [(30.0, 50.0), (70.0, 100.0), (110.0, 115.0)]])
@pytest.mark.parametrize("interval_s", [0.1, 1.0])
def test_the_offset_is_within_its_error(phases: list[tuple[float, float]], interval_s: float) -> None:
    for seed in range(15):
        at_s, watts = curve(phases, 7200.5, interval_s, seed=seed)
        found, why = aligned(at_s, watts, phases)
        assert found is not None, why
        assert abs(found.offset_s - 7200.5) <= found.error_s <= 1.8 * interval_s


def test_a_load_that_is_not_clear_is_refused() -> None:
    phases = [(40.0, 90.0)]
    at_s, watts = curve(phases, 0.0, 1.0)
    assert (
        aligned(at_s, watts, [(40.0, 80.0)])[1]
        == "the load of 40.0 s was not found in the meter's curve, which has 2 edges"
    )
    assert aligned(at_s[60:], watts[60:], phases)[0] is None  # its start is not in the file
    flat = [300.0 + 2 * (k % 3) for k in range(len(at_s))]
    assert aligned(at_s, flat, phases)[0] is None
    assert aligned(at_s[:9], watts[:9], phases)[1] == "the meter has 9 values: too few for an edge"
    twice, power = curve([(40.0, 90.0), (140.0, 190.0)], 0.0, 1.0)
    assert (
        aligned(twice, power, phases)[1] == "the load of 50.0 s matches the meter's curve at 2 times: which is unclear"
    )
    ramp = [300.0 + min(200.0, max(0.0, 4.0 * (at - 40.0))) for at in at_s]
    assert aligned(at_s, ramp, phases)[0] is None


def test_noise_has_no_edges() -> None:
    generator = np.random.default_rng(3)
    at_s = list(np.arange(0.0, 500.0, 1.0))
    assert len(edges(at_s, list(300 + generator.normal(0, 10, 500)))) == 0
    assert edges([], []) == edges([0.0], [1.0]) == []
