from __future__ import annotations

import pytest

from seatrial.model.machine.limit import Basis, FmaUnit, Limit, dram_bandwidth, fma_rate, pcie_bandwidth

_WIDE = FmaUnit(2, 512, 4, "a guide")
_NARROW = FmaUnit(1, 128, 4, "another guide")


def test_dram_is_populated_channels_times_8_bytes_times_configured_rate() -> None:
    limit = dram_bandwidth(12, 4800)
    assert limit.value == 460.8e9 and limit.basis is Basis.PHYSICAL
    assert "12 populated channels" in limit.derivation and "4800 MT/s" in limit.derivation


def test_fma_is_the_sum_of_the_clocks_times_pipes_lanes_and_two() -> None:
    limit = fma_rate([(3.0e9, _WIDE), (3.5e9, _WIDE)], "fp64")
    assert limit.value == pytest.approx(6.5e9 * 32) and limit.is_physical
    assert limit.derivation == (
        "2 cores x 3.250 GHz measured in the run x 32 flop/cycle (2 FMA pipes x 8 fp64 lanes x 2; a guide)"
    )


def test_each_core_has_its_own_fma_unit() -> None:
    limit = fma_rate([(3.0e9, _WIDE), (2.0e9, _NARROW), (4.0e9, _WIDE)], "fp32", "as stated")
    assert limit.value == pytest.approx(7.0e9 * 64 + 2.0e9 * 8)
    assert limit.derivation == (
        "2 cores x 3.500 GHz as stated x 64 flop/cycle (2 FMA pipes x 16 fp32 lanes x 2; a guide) + "
        "1 core x 2.000 GHz as stated x 8 flop/cycle (1 FMA pipes x 4 fp32 lanes x 2; another guide)"
    )


def test_an_unconfirmed_limit_makes_no_value_impossible() -> None:
    rumour = FmaUnit(2, 256, 5, "hearsay; unconfirmed", confirmed=False)
    limit = fma_rate([(3.0e9, _WIDE), (3.0e9, rumour)], "fp64")
    assert (limit.value, limit.basis, limit.confirmed, limit.is_physical) == (144e9, Basis.PHYSICAL, False, False)
    assert not dram_bandwidth(12, 4800, confirmed=False).is_physical
    assert not Limit(1.0, "B/s", "", Basis.MEASURED).is_physical
    assert not Limit.unknown("B/s", "").is_physical


@pytest.mark.parametrize(
    ("rate", "lanes", "expected"),
    [(2.5, 1, 0.25e9), (5.0, 16, 8e9), (8.0, 16, 15.754e9), (16.0, 16, 31.508e9), (32.0, 16, 63.015e9)],
)
def test_pcie_after_encoding(rate: float, lanes: int, expected: float) -> None:
    assert pcie_bandwidth(rate, lanes).value == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("rate", "lanes"), [(7.0, 16), (8.0, 0), (8.0, -1)])
def test_a_link_that_does_not_exist_has_no_limit(rate: float, lanes: int) -> None:
    assert pcie_bandwidth(rate, lanes).value is None
