"""Experiments for the rules about collective operations between devices."""

from __future__ import annotations

from analysis.test_rules_expectation import made, result

from seatrial.analysis.rules import rules
from seatrial.analysis.rules.finding import Case
from seatrial.model.machine.machine import Machine


def case(apart_s: float, times: int = 60, ranks: tuple[int, ...] = (3,) * 5) -> Case:
    """Five repeats of 60 samples of 5 ms, of which a rank was the last in `times`."""
    measured = result(made(1.0, None))
    seen = {
        (measured.id, repeat): {
            "notes": {
                "arrivals": {
                    "rank": rank,
                    "host": "n2",
                    "samples": 60,
                    "times": times,
                    "apart_s": apart_s,
                    "sample_s": 5e-3,
                }
            }
        }
        for repeat, rank in enumerate(ranks)
    }
    return Case(Machine("m"), (measured,), seen)


CASES = {
    "rank-arrives-late": (
        case(0.1),
        [case(2e-6), case(8e-4), case(0.1, times=30), case(0.1, ranks=(0, 1, 2, 3, 0))],
    )
}


def test_the_rank_and_its_host_are_named() -> None:
    (found,) = (one for rule in rules() for one in rule(CASES["rank-arrives-late"][0]))
    assert "rank 3 on n2 starts the operations 100 ms after the first rank" in found.observation
