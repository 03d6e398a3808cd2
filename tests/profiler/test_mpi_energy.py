"""The energy in MPI and outside of it: planted powers of both, and phases that readings do not separate."""

from __future__ import annotations

import pytest
from analysis.test_rules_power import sensor
from msgspec.structs import replace

from seatrial.model.json_object import record_of
from seatrial.model.machine.power import Scope
from seatrial.model.results.energy import MeasuredEnergy, MpiEnergy, PowerOverTime
from seatrial.profiler.mpi_energy import mpi_energies
from seatrial.profiler.profile import OverTime
from seatrial.report.power_words import mpi_energy_words

WIDTH_S, BINS = 0.5, 120
COMPUTING_W, IN_MPI_W = 400.0, 250.0


def phases(length_s: float, *, share: float = 1.0) -> tuple[OverTime, float]:
    """Computing and MPI in turns of this length, for 60 s on 4 ranks; and the seconds in MPI. In MPI, this share of
    the ranks is there."""
    fine_s = 0.01
    inside = [share if int(k * fine_s / length_s) % 2 else 0.0 for k in range(round(WIDTH_S * BINS / fine_s))]
    each = round(WIDTH_S / fine_s)
    mpi = tuple(4 * fine_s * sum(inside[k * each : (k + 1) * each]) for k in range(BINS))
    return OverTime(WIDTH_S, mpi, (4 * WIDTH_S,) * BINS, (0.0,) * BINS, (1.0,) * BINS, ()), sum(inside) * fine_s


def power(length_s: float, refresh_s: float, late_s: float = 0.0) -> PowerOverTime:
    """A value every so often, of the mean power since the one before."""

    def watts(at_s: float) -> float:
        return IN_MPI_W if int(at_s / length_s) % 2 else COMPUTING_W

    values, points = round(60 / refresh_s), []
    for k in range(values):
        steps = [watts(max(0.0, (k + j / 20) * refresh_s - late_s)) for j in range(20)]
        points.append(((k + 0.5) * refresh_s, sum(steps) / len(steps)))
    one = record_of(MeasuredEnergy, {**sensor("bmc", Scope.NODE, 325.0), "energy": 19500.0, "energy_error": 100.0})
    return PowerOverTime((replace(one, refresh_s=refresh_s),), {"bmc": tuple(points)})


def divided(length_s: float, refresh_s: float, *, late_s: float = 0.0, share: float = 1.0, hosts: int = 1) -> MpiEnergy:
    time, _ = phases(length_s, share=share)
    (found,) = mpi_energies(time, power(length_s, refresh_s, late_s), hosts)
    return found


@pytest.mark.parametrize(
    ("length_s", "refresh_s", "late_s"), [(10.0, 1.0, 0.0), (10.0, 1.0, 0.7), (6.0, 0.1, 0.05), (7.3, 0.5, 0.2)]
)
def test_the_true_energy_is_within_the_error(length_s: float, refresh_s: float, late_s: float) -> None:
    found = divided(length_s, refresh_s, late_s=late_s)
    _, mpi_s = phases(length_s)
    assert found.in_mpi is not None and found.in_mpi_error is not None
    assert found.outside is not None and found.outside_error is not None
    assert abs(found.in_mpi - IN_MPI_W * mpi_s) <= found.in_mpi_error
    assert abs(found.outside - COMPUTING_W * (60 - mpi_s)) <= found.outside_error
    assert found.in_mpi_error < 0.25 * found.in_mpi
    assert "in MPI, " in mpi_energy_words(found)


def test_phases_that_are_shorter_than_a_reading() -> None:
    found = divided(0.2, 1.0)
    assert (found.in_mpi, found.outside) == (None, None)
    assert found.reason == (
        "in 100 % of the slices of 1.00 s ranks are both in MPI and outside: bmc has a value every 1.00 s, which does "
        "not separate them"
    )
    assert divided(10.0, 1.0, share=0.5).in_mpi is not None  # half of the time is outside of MPI on all ranks
    assert divided(3.0, 10.0).in_mpi is None


def test_ranks_on_several_nodes() -> None:
    assert "the ranks ran on 2 nodes" in divided(10.0, 1.0, hosts=2).reason
    (found,) = mpi_energies(None, power(10.0, 1.0), 0)
    assert found.reason == "no time in MPI"
