from __future__ import annotations

import math

import pytest

from seatrial.model.benchmark.benchmark import Better
from seatrial.model.spelling import (
    arrow,
    arrow_meaning,
    digits_to_tell,
    display_scale,
    show,
    show_ends,
    show_percent,
    show_range,
)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (57.34e9, "B/s", "57.3 GB/s"),
        (118.2e9, "flop/s", "118 GFLOP/s"),
        (24.84e-9, "s", "24.8 ns"),
        (1.5e-13, "s", "0.150 ps"),
        (90.0, "s", "90.0 s"),
        (150.0, "s", "2.50 min"),
        (3.7e9, "Hz", "3.70 GHz"),
        (250.0, "W", "250 W"),
        (8.0, "B", "8 B"),
        (1e6, "B", "1 MB"),
        (0.0, "B/s", "0 B/s"),
        (-3e9, "B/s", "-3.00 GB/s"),
        (0.97, "1", "0.970"),
        (None, "B/s", "unknown"),
        (math.nan, "s", "not a number (s)"),
        (math.inf, "s", "infinite (s)"),
    ],
)
def test_values_for_people(value, unit, text):
    assert show(value, unit) == text


def test_rounding_up_takes_the_next_prefix():
    assert show(999.7e3, "B/s") == "1.00 MB/s"
    assert show(1023.9 * 1024, "B", binary=True) == "1.00 MiB"


@pytest.mark.parametrize(
    ("value", "text"),
    [(32 << 20, "32 MiB"), (65536, "64 KiB"), (25276510208, "23.5 GiB"), (1536, "1.50 KiB"), (5, "5 B")],
)
def test_memory_in_binary_prefixes(value, text):
    assert show(value, "B", binary=True) == text


def test_no_value_is_shown_with_more_digits_than_asked_for():
    for exponent in range(-12, 19):
        for mantissa in (1.0, 1.23456789, 9.87654321):
            text = show(mantissa * 10.0**exponent, "B/s" if exponent >= 0 else "s")
            digits = text.split(" ")[0].replace(".", "").lstrip("0")
            assert len(digits) <= 4, text  # "1000 s" below two minutes is not reached; "9877 Tflop" never occurs


def test_an_interval_keeps_the_digits_that_tell_its_ends_apart():
    assert show_range(57.1e9, 57.6e9, "B/s") == "57.1 to 57.6 GB/s"
    assert show_range(57.312e9, 57.341e9, "B/s") == "57.31 to 57.34 GB/s"
    assert show_range(0.9e9, 1.1e9, "B/s") == "0.90 to 1.10 GB/s"
    assert show_range(5.0, 5.0, "s") == "5.00 to 5.00 s"


def test_an_interval_beside_its_median_takes_the_prefix_of_the_median():
    assert show_ends(0.97e9, 1.04e9, 0.99e9, "B/s") == "970 to 1040"
    assert show_ends(0.97e9, 1.04e9, 1.01e9, "B/s") == "0.97 to 1.04"


def test_digits_to_tell():
    assert digits_to_tell([1.0, 2.0]) == 3
    assert digits_to_tell([57.312, 57.341]) == 4
    assert digits_to_tell([]) == 3
    assert digits_to_tell([1.0, 1.0 + 1e-12]) == 7  # more digits than that are noise


def test_shares_in_percent():
    shares = (0.98, 0.9961, 1.0, 1.004, 0.0123, 0.5, None)
    shown = ["98 %", "99.6 %", "100 %", "100.4 %", "1.2 %", "50 %", "unknown"]
    assert [show_percent(share) for share in shares] == shown


def test_one_scale_for_an_axis():
    assert display_scale([1e9, 2e6], "B/s") == (1e9, "GB/s")
    assert display_scale([], "s") == (1.0, "s")


def test_directions():
    assert (arrow(Better.HIGHER), arrow(Better.LOWER)) == ("↑", "↓")
    assert arrow_meaning(Better.LOWER) == "lower is better"
