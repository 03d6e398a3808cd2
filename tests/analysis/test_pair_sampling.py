"""What the measured pairs cover: of all pairs, of each rank, of the switches."""

from __future__ import annotations

import pytest

from seatrial.analysis.pairs import pair_sampling
from seatrial.benchmarks.mpi.tournament import sampled_pairs
from seatrial.model.results.figure_result import PairSampling, Screening
from seatrial.report.studies.best_of_words import screening_lines


def lines(sampling: PairSampling) -> list[str]:
    return screening_lines(Screening((), sampling.pairs, "pairs of ranks", 0.01, sampling=sampling))


def test_a_sample_is_stated_with_its_chance_and_what_each_rank_met() -> None:
    params = {"ranks": 1000, "rounds": 8, "seed": 5}
    found = pair_sampling(sampled_pairs(1000, seed=5, rounds=8), params)
    assert found == PairSampling(4000, 499_500, 8, 8, 5, 8, 999)
    assert found.tells_ranks and found.share == pytest.approx(4000 / 499_500)
    assert lines(found)[-1] == (
        "a sample of 4000 of 499500 pairs (0.801 %, 8 of 999 rounds, seed 5); each rank met 8 others; "
        "a single slow pair is in the sample with a chance of 0.801 %"
    )


def test_an_odd_number_of_ranks_has_one_idle_in_each_round() -> None:
    found = pair_sampling(sampled_pairs(9, seed=1, rounds=3), {"ranks": 9, "rounds": 3, "seed": 1})
    assert found is not None and (found.least_partners, found.most_partners) == (2, 3)
    assert not found.tells_ranks and "each rank met 2 to 3 others: too few to" in lines(found)[-1]


def test_all_pairs_are_no_sample() -> None:
    found = pair_sampling(sampled_pairs(4, seed=1, rounds=3), {"ranks": 4, "rounds": 3, "seed": 1})
    assert found is not None and found.share == 1.0 and not any("sample" in line for line in lines(found))


@pytest.mark.parametrize("params", [{}, {"ranks": "unknown"}, {"ranks": 1}, {"ranks": 3}])
def test_without_the_number_of_ranks_nothing_is_stated(params: dict[str, int | str]) -> None:
    assert pair_sampling([(0, 1), (2, 3)], params) is None


def test_results_of_earlier_versions_have_no_seed() -> None:
    found = pair_sampling([(0, 1), (2, 3)], {"ranks": 4, "rounds": 1})
    assert found is not None and found.seed is None and "1 of 3 rounds);" in lines(found)[-1]


def test_four_rounds_of_ten_thousand_nodes_reach_most_switches_from_each() -> None:
    met: dict[int, set[int]] = {switch: set() for switch in range(250)}
    for pair in sampled_pairs(10_000, seed=1, rounds=4):
        one, other = (rank // 40 for rank in pair)
        met[one].add(other)
        met[other].add(one)
    assert min(map(len, met.values())) > 90  # 160 draws of 249 others meet 118 on average
