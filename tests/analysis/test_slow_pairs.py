"""Who is slow among pairs of ranks: a pair, a rank, a node; and that nobody is named where all are alike."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import pytest
from made_up import made_up_machine

from seatrial.analysis.pairs import FALSE_ALARM_RATE, Pair, screened_pairs
from seatrial.benchmarks.mpi.pairs import BENCHMARK as PAIRS
from seatrial.benchmarks.mpi.pairs import chosen_pairs
from seatrial.model.results.figure_result import Screening
from seatrial.model.results.record import Experiment, RepeatRecord
from seatrial.model.results.sample import Outcome, Sample

Noise = Callable[[], float]
VISITS = 5


def screened(
    slowdown: Callable[[Pair], float],
    noise: Noise,
    *,
    ranks: int = 8,
    repeats: int = 6,
    at_once: int = 1,
    rounds: int | None = None,
    hosts: Sequence[str] = (),
    cpus: Sequence[int] = (),
    shared: Sequence[Sequence[str]] = (),
) -> Screening:
    """The screening of made-up repeats: each pair takes 1 us times its slowdown times noise of each visit."""
    params = {"ranks": ranks, "at_once": at_once, "rounds": rounds or ranks - 1 + ranks % 2, "nodes": 1, "seed": 1}
    records = []
    for number in range(repeats):
        samples = []
        for a, b in chosen_pairs(params):
            for visit in range(VISITS):
                for series in ("latency", "bandwidth"):
                    elapsed_s = 1e-6 * slowdown((a, b)) * noise()
                    work = {"ops": 1.0, "bytes": 8e3}
                    extra = {"best_s": elapsed_s, "bursts": 5}
                    samples.append(Sample(series, visit, elapsed_s, work, 0, {"a": a, "b": b}, extra))
        seen = {"hosts": list(hosts), "affinity": [[cpu] for cpu in cpus], "shared_cpus": shared}
        record = RepeatRecord("e", number, number, float(number), 1.0, Outcome.ok(), tuple(samples), {}, seen)
        records.append(record)
    experiment = Experiment("mpi.pairs", params, "e", "p", "m")
    found = screened_pairs(PAIRS, experiment, made_up_machine(packages=2, cores=8), records)
    assert found is not None
    return found


def alike(pair: Pair) -> float:
    return 1.0


def slow(*pairs: Pair, by: float = 2.0) -> Callable[[Pair], float]:
    return lambda pair: by if pair in pairs else 1.0


def slow_rank(*ranks: int, by: float = 2.0) -> Callable[[Pair], float]:
    return lambda pair: by if set(pair) & set(ranks) else 1.0


def quiet(seed: int, share: float = 0.05) -> Noise:
    source = random.Random(seed)
    return lambda: math.exp(abs(source.gauss(0, share)))


def two_levels(seed: int, often: float = 0.4, apart: float = 3.0) -> Noise:
    """A visit takes `apart` times as long where the scheduler was against it."""
    source = random.Random(seed)
    return lambda: (apart if source.random() < often else 1.0) * math.exp(abs(source.gauss(0, 0.05)))


def names(screening: Screening) -> set[str]:
    return {one.what for one in screening.outliers}


@pytest.mark.parametrize("noise", [quiet, two_levels])
@pytest.mark.parametrize("at_once", [1, 4])
def test_the_slow_pair_is_named_and_only_it(noise: Callable[[int], Noise], at_once: int) -> None:
    by = 2.0 if noise is quiet or at_once == 1 else 20.0
    for seed in range(10):
        found = screened(slow((3, 5), by=by), noise(seed), at_once=at_once)
        assert names(found) == {"pair 3-5"}, seed
    latency = next(one for one in found.outliers if one.figure == "latency")
    bandwidth = next(one for one in found.outliers if one.figure == "bandwidth")
    assert latency.ratio == pytest.approx(by, rel=0.5) and bandwidth.ratio == pytest.approx(1 / latency.ratio, rel=0.5)
    assert (latency.parameters["a"], latency.parameters["b"], latency.n) == (3, 5, 28)
    assert latency.sureness > 1 - FALSE_ALARM_RATE


@pytest.mark.parametrize("noise", [quiet, two_levels])
@pytest.mark.parametrize("at_once", [1, 4])
def test_where_all_are_alike_nobody_is_named(noise: Callable[[int], Noise], at_once: int) -> None:
    tries = 60
    alarms = sum(bool(screened(alike, noise(1000 + seed), at_once=at_once).outliers) for seed in range(tries))
    assert alarms <= 3  # 0.6 are expected; 4 or more come with probability 0.4 %


def test_what_is_fast_is_no_fault() -> None:
    assert not screened(slow((3, 5), by=0.4), quiet(1)).outliers


def test_a_little_slower_is_not_worth_a_name() -> None:
    assert not screened(slow((3, 5), by=1.08), quiet(1, 0.005)).outliers
    assert names(screened(slow((3, 5), by=1.2), quiet(1, 0.005))) == {"pair 3-5"}


def test_a_pair_that_was_slow_in_one_repeat_only_is_not_slow() -> None:
    calls = iter(range(10**9))

    def first_repeat_only(pair: Pair) -> float:
        return 50.0 if pair == (3, 5) and next(calls) < 2 * VISITS else 1.0

    assert not screened(first_repeat_only, quiet(1)).outliers


def test_a_slow_rank_is_named_in_place_of_its_pairs() -> None:
    found = screened(slow_rank(2), quiet(3))
    assert names(found) == {"rank 2"} and {one.figure for one in found.outliers} == {"latency", "bandwidth"}
    assert found.outliers[0].parameters["rank"] == 2


def test_a_slow_rank_hides_no_slow_pair_of_others() -> None:
    def both(pair: Pair) -> float:
        return 4.0 if pair == (3, 5) else slow_rank(2)(pair)

    assert names(screened(both, quiet(3), ranks=12)) == {"rank 2", "pair 3-5"}


def test_a_node_is_named_where_all_its_ranks_are_slow_across_hosts() -> None:
    hosts = [f"n{rank // 2}" for rank in range(16)]

    def slow_link(pair: Pair) -> float:
        a, b = (hosts[rank] for rank in pair)
        return 0.3 if a == b else 2.0 if "n3" in (a, b) else 1.0

    found = screened(slow_link, quiet(5), ranks=16, hosts=hosts)
    assert names(found) == {"node n3"}
    assert all(one.parameters["host"] == "n3" for one in found.outliers)


def test_ranks_alone_on_their_hosts_are_told_with_the_host() -> None:
    hosts = [f"n{rank}" for rank in range(8)]
    assert names(screened(slow_rank(4), quiet(5), hosts=hosts)) == {"rank 4 on n4"}
    assert names(screened(slow((1, 2)), quiet(5), hosts=hosts)) == {"pair 1-2 on n1 and n2"}


def test_nodes_that_share_a_cpu_have_no_slow_pair() -> None:
    hosts = [f"n{rank}" for rank in range(8)]
    slow_ones = slow((0, 2), (1, 3), by=40.0)
    assert names(screened(slow_ones, quiet(5), hosts=hosts)) == {"pair 0-2 on n0 and n2", "pair 1-3 on n1 and n3"}
    assert not screened(slow_ones, quiet(5), hosts=hosts, shared=[["n0", "n2"], ["n1", "n3"]]).outliers


def test_pairs_are_held_against_pairs_of_their_own_kind() -> None:
    """Two packages: across them takes 3 times as long, and that is no fault; one pair on a package that does is."""
    cpus = list(range(16))

    def by_distance(pair: Pair) -> float:
        return 3.0 if pair == (1, 2) or (pair[0] < 8) != (pair[1] < 8) else 1.0

    assert names(screened(by_distance, quiet(6), ranks=16, cpus=cpus)) == {"pair 1-2"}


def test_of_few_pairs_nothing_is_told() -> None:
    found = screened(slow((0, 1), by=9.0), quiet(1), ranks=2)
    assert (
        not found.outliers
        and found.is_inconclusive
        and "at least 3 pairs of a kind" in found.why_not
        and "(pairs: 1)" in found.why_not
    )


def test_some_rounds_of_many_ranks_are_enough() -> None:
    params = {"ranks": 64, "rounds": 4, "seed": 1}
    pair = chosen_pairs(params)[77]
    found = screened(slow(pair), quiet(2), ranks=64, rounds=4, at_once=32)
    assert found.n == 128 and names(found) == {f"pair {pair[0]}-{pair[1]}"}
