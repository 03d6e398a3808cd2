from __future__ import annotations

import pytest

from seatrial.model.limit import Basis, dram_bandwidth, fma_rate, pcie_bandwidth


def test_dram_is_populated_channels_times_8_bytes_times_configured_rate() -> None:
    limit = dram_bandwidth(12, 4800)
    assert limit.value == 460.8e9 and limit.basis is Basis.PHYSICAL
    assert "12 populated channels" in limit.derivation and "4800 MT/s" in limit.derivation


def test_fma_is_the_sum_of_the_clocks_times_pipes_lanes_and_two() -> None:
    limit = fma_rate((3.0e9, 3.5e9), pipes=2, lanes=8, precision="fp64", source="a guide")
    assert limit.value == pytest.approx(6.5e9 * 32)
    assert "2 cores x 3.250 GHz" in limit.derivation and "a guide" in limit.derivation


@pytest.mark.parametrize(
    ("rate", "lanes", "expected"),
    [(2.5, 1, 0.25e9), (5.0, 16, 8e9), (8.0, 16, 15.754e9), (16.0, 16, 31.508e9), (32.0, 16, 63.015e9)],
)
def test_pcie_after_encoding(rate: float, lanes: int, expected: float) -> None:
    assert pcie_bandwidth(rate, lanes).value == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("rate", "lanes"), [(7.0, 16), (8.0, 0), (8.0, -1)])
def test_a_link_that_does_not_exist_has_no_limit(rate: float, lanes: int) -> None:
    assert pcie_bandwidth(rate, lanes).value is None
