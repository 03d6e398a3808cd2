from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.errors import UsageError
from seatrial.model.units import Quantity, parse_bytes, parse_quantity, parse_seconds


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("64MiB", 64 * 2**20, "B"),
        ("1 GB", 1e9, "B"),
        ("2.5GHz", 2.5e9, "Hz"),
        ("10min", 600, "s"),
        ("250 us", 250e-6, "s"),
        ("250µs", 250e-6, "s"),
        ("1%", 0.01, "1"),
        ("3", 3, "1"),
        ("1.18e11flop/s", 1.18e11, "flop/s"),
        ("10Gbit/s", 1.25e9, "B/s"),
        ("25GB/s", 25e9, "B/s"),
        ("-2W", -2, "W"),
    ],
)
def test_quantities_become_si(text: str, value: float, unit: str) -> None:
    quantity = parse_quantity(text)
    assert quantity == Quantity(pytest.approx(value), unit)


@pytest.mark.parametrize("text", ["", "MiB", "1 2", "64mib", "10 parsec", "1e", "0x10", "nan", "inf", "1_000", "٣GB"])
def test_an_invalid_quantity_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_quantity(text)


@given(st.text(max_size=12))
def test_any_text_gives_a_quantity_or_a_usage_error(text: str) -> None:
    with suppress(UsageError):
        parse_quantity(text)


@pytest.mark.parametrize("text", ["20", "-1s", "1GB", "1%", "1e999s"])
def test_an_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_seconds(text)


@pytest.mark.parametrize("text", ["1.5", "0.3KiB", "-1", "1s", "50%"])
def test_sizes_are_whole_bytes(text: str) -> None:
    with pytest.raises(UsageError):
        parse_bytes(text)


def test_a_size_with_a_fraction_that_is_whole_is_a_size() -> None:
    assert parse_bytes("1.5KiB") == 1536
