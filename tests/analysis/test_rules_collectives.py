"""Experiments for the rules about collective operations between devices."""

from __future__ import annotations

from analysis.made_up_copies import figure, p2p
from analysis.made_up_copies import result as collective_result
from analysis.test_rules_expectation import made, result

from seatrial.analysis.rules import rules
from seatrial.analysis.rules.collectives import pair_limits_collective
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


def copied(slow: float, busbw: float, *, nodes: int = 1, count: int = 4) -> Case:
    """GPUs whose pairs copy at 48 GB/s but for that of 2 and 3, and an all-reduce."""
    addresses = [f"0000:{number + 1:02x}:00.0" for number in range(count)]
    pairs, seen = p2p(addresses, lambda a, b: slow if {a, b} == {2, 3} else 48e9)
    figures = [
        figure("busbw", busbw * share, size_B=size, in_place=False) for size, share in ((1 << 20, 0.3), (1 << 30, 1.0))
    ]
    collective = collective_result(figures, "gpu.collective", op="all_reduce", nodes=nodes, ranks=count)
    return Case(Machine("m"), (pairs, collective), seen)


CASES["pair-limits-collective"] = (
    copied(24e9, 25e9),
    [copied(24e9, 40e9), copied(47e9, 46e9), copied(24e9, 25e9, nodes=2), copied(24e9, 25e9, count=2)],
)


def test_the_pair_is_named_beside_the_rates() -> None:
    (found,) = (one for one in pair_limits_collective(CASES["pair-limits-collective"][0]))
    assert "has a bus bandwidth of 25 GB/s" in found.observation.replace("25.0", "25")
    assert (
        "Copies between device 2 and device 3 reach 24.0 GB/s, those of the other pairs 48.0 GB/s" in found.observation
    )
    assert "was not observed" in found.diagnosis
