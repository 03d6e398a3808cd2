"""Units of users: labels with the scale of their prefix."""

from __future__ import annotations

import pytest

from seatrial.errors import UsageError
from seatrial.model.spelling import show
from seatrial.model.units import labelled_unit
from seatrial.report.studies.effect import is_speed


@pytest.mark.parametrize(
    ("text", "unit", "factor", "shown"),
    [
        ("MLUP/s", "LUP/s", 1e6, "123 MLUP/s"),
        ("GUPS", "UPS", 1e9, "123 GUPS"),
        ("TEPS", "TEPS", 1.0, "123 TEPS"),
        ("GTEPS", "TEPS", 1e9, "123 GTEPS"),
        ("kIOPS", "IOPS", 1e3, "123 kIOPS"),
        ("atoms/s", "atoms/s", 1.0, "123 atoms/s"),
        ("Matoms/s", "atoms/s", 1e6, "123 Matoms/s"),
        ("Tokens/s", "Tokens/s", 1.0, "123 Tokens/s"),
        ("kernels/s", "kernels/s", 1.0, "123 kernels/s"),
        ("GPU/s", "GPU/s", 1.0, "123 GPU/s"),
        ("ns/day", "ns/day", 1.0, "123 ns/day"),
        ("GB/s", "B/s", 1e9, "123 GB/s"),
        ("GFLOP/s", "flop/s", 1e9, "123 GFLOP/s"),
        ("ms", "s", 1e-3, "123 ms"),
        ("op/s", "op/s", 1.0, "123 op/s"),
        ("1", "1", 1.0, "123"),
    ],
)
def test_a_label_has_the_scale_of_its_prefix(text: str, unit: str, factor: float, shown: str) -> None:
    assert labelled_unit(text) == (unit, factor)
    assert show(123.0 * factor, unit) == shown


def test_labels_that_count_nothing_have_no_prefix() -> None:
    assert show(12340.0, "ns/day") == "12340 ns/day" and show(12340.0, "LUP/s") == "12.3 kLUP/s"
    assert all(map(is_speed, ("LUP/s", "ns/day", "UPS", "s"))) and not any(map(is_speed, ("J", "dB")))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("GFLOPS", "did you mean GFLOP/s"),
        ("Mflops/s", "did you mean MFLOP/s"),
        ("MB/sec", "did you mean MB/s"),
        ("Mbps", "did you mean"),
        ("seconds", "did you mean s?"),
        ("a b", "or a label such as"),
        ("\x1b[1m", "or a label such as"),
        ("x" * 40, "or a label such as"),
        ("", "or a label such as"),
    ],
)
def test_what_is_misspelt_or_cannot_be_a_unit_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        labelled_unit(text)
    assert words in caught.value.todo
