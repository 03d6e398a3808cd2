"""Load of other processes that comes and goes over repeats: which repeats had it, and how far apart."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from seatrial.diagnosis.disturbance.foreign import ForeignLoad, Timed, comes_and_goes

_CPUS = 2


def repeats(
    busy: Callable[[float], float], *, number: int = 20, length_s: float = 1.0, gap_s: float = 0.0, cpus: int = _CPUS
) -> list[Timed]:
    """Repeats one after another; `busy`: the CPUs of others at a time."""
    found: list[Timed] = []
    for k in range(number):
        begin = k * (length_s + gap_s)
        used = [busy(begin + length_s * (n + 0.5) / 50) for n in range(50)]
        found.append((k, 1.7e9 + begin, recorded(sum(used) / 50 * length_s, length_s, cpus)))
    return found


def recorded(others_s: float, length_s: float, cpus: int = _CPUS) -> Mapping[str, Any]:
    busy = {str(cpu): 0.5 * length_s for cpu in range(cpus)}
    return {"others_s": round(others_s, 2), "cpu_window_s": length_s * cpus, "busy_s": busy, "program_s": length_s}


def one_second_in(period_s: float, since_s: float = 0.3) -> Callable[[float], float]:
    return lambda at: float((at - since_s) % period_s < 1.0)


def test_a_neighbour_of_a_second_in_five() -> None:
    found = comes_and_goes(repeats(one_second_in(5.0, 3.0)))
    assert found == ForeignLoad((3, 8, 13, 18), 20, 1.0, 2.0, 4, 5.0)
    assert found is not None and found.when == "in 4 of 20 repeats (3, 8, 13, 18), 4 times about 5.00 s apart"
    assert found.said.startswith("other processes used 1 of 2 CPUs in 4 of 20 repeats")


@pytest.mark.parametrize("since_s", [0.0, 0.25, 0.5, 0.9])
@pytest.mark.parametrize(("length_s", "gap_s"), [(0.05, 0.02), (0.3, 0.0), (0.7, 0.1), (1.0, 0.05)])
def test_the_interval_is_found_whatever_the_length_of_repeats(length_s: float, gap_s: float, since_s: float) -> None:
    number = round(32 / (length_s + gap_s))
    found = comes_and_goes(repeats(one_second_in(5.0, since_s), number=number, length_s=length_s, gap_s=gap_s))
    assert found is not None and found.period_s == pytest.approx(5.0, rel=0.1)


@pytest.mark.parametrize("length_s", [1.8, 2.5, 3.0, 3.6, 4.2, 7.0])
def test_no_interval_is_stated_that_long_repeats_cannot_show(length_s: float) -> None:
    found = comes_and_goes(repeats(one_second_in(5.0), number=40, length_s=length_s))
    assert found is None or found.period_s is None or found.period_s == pytest.approx(5.0, rel=0.1)


def test_load_that_comes_at_no_interval_is_located() -> None:
    some = {2, 3, 4, 11, 17, 18}
    found = comes_and_goes(repeats(lambda at: 0.8 * (int(at) in some)))
    assert found is not None and set(found.repeats) == some and found.period_s is None
    assert found.when == "in 6 of 20 repeats (2-4, 11, 17-18)"


@pytest.mark.parametrize(
    "busy",
    [
        lambda _: 0.0,
        lambda _: 0.9,
        lambda at: 0.4 + 0.3 * (int(at) % 5 == 0),  # it varies
        lambda at: 0.9 * (int(at) == 7),  # once
        lambda at: 0.15 * (int(at) % 5 == 0),  # little
        lambda at: 0.9 * (int(at) % 10 != 0),  # nearly always
    ],
)
def test_other_load_does_not_come_and_go(busy: Callable[[float], float]) -> None:
    assert comes_and_goes(repeats(busy)) is None


def test_half_a_cpu_is_much_for_memory_only() -> None:
    beside = repeats(lambda at: 0.8 * (int(at) % 5 == 0), cpus=64)
    assert comes_and_goes(beside) is None
    assert comes_and_goes(beside, of_memory=True) is not None


def test_chance_is_seldom_an_interval() -> None:
    """Random load that is there a fifth of the time, with bursts of a second."""
    chance = random.Random(1)
    named = 0
    for _ in range(200):
        had = [chance.random() < 0.2 for _ in range(30)]
        found = comes_and_goes(repeats(lambda at, had=had: float(had[min(29, int(at))]), number=30))  # type: ignore[misc]
        named += found is not None and found.period_s is not None
    assert named <= 6


def test_records_without_these_values_say_nothing() -> None:
    assert comes_and_goes([(k, float(k), {}) for k in range(20)]) is None
    assert comes_and_goes([(k, float(k), {"others_s": "x", "cpu_window_s": 2.0}) for k in range(20)]) is None
    sums: list[Timed] = [
        (k, float(k), {"others_s": float(k % 5 == 0), "cpu_window_s": 4.0, "program_s": 1.0}) for k in range(20)
    ]
    found = comes_and_goes(sums)
    assert found is not None and found.of_cpus == 4.0, "of many CPUs only the sum is recorded"
