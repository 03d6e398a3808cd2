"""mpi.pairs: find slow pairs of ranks, slow ranks and slow nodes.

Each pair of ranks meets in one round of a round-robin tournament (`tournament`). 1,024 ranks have 523,776 pairs, so
large runs measure a sample: `rounds` rounds, in the order of `rounds_by_spread`, with seats shuffled by `seed`. In each
round every rank has one partner (one rank is idle if their number is odd), so all ranks are measured equally often,
with near and distant partners. The record states the sample (note `sampling`), and for each measurement its round.

`at_once=1` measures one pair at a time; several pairs at once show the fabric under load. Ranks that are not being
measured sleep. If ranks share CPUs, the measured two are bound to two CPUs of different cores, the same for every
pair.
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.benchmarks.figures import duration, exactly
from seatrial.benchmarks.mpi.mpi_benchmark import (
    AWARE_RANKS,
    SLICE_S,
    WRONG_BYTES,
    bandwidth,
    exchanged_in_tournament,
    links_of_node,
    mpi_benchmark,
    rank_cpus,
    resolved_ranks,
)
from seatrial.benchmarks.mpi.tournament import Pair, all_rounds, rounds_by_spread, sampled_pairs
from seatrial.model.benchmark.benchmark import Check, Role, Skip
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

_LEAST_SWEEPS = 5
_VISITS_S = 4e-3
"""What visiting one pair takes in the program, with both sizes and what is around them."""
_SHARED_TIMES = 4.0
"""So many times that where ranks share CPUs: those in turn wait for those that wake up."""
_ALONE_TO = 16
"""Up to so many ranks `at_once=auto` visits one pair at a time."""
_MOST_ALONE = 512
_MOST_TOGETHER = 4096
"""Pairs that `rounds=auto` takes at most, one at a time and many at once."""
_LEAST_TOGETHER = 4
"""Rounds that `rounds=auto` takes at least, many pairs at once: of fewer, a slow rank looks like a slow pair."""
_MOST_RECORDED = 25_000
"""Pairs whose samples fit in a record."""


def chosen_pairs(params: Params) -> tuple[Pair, ...]:
    """The pairs that a resolved point measures, ascending."""
    return sampled_pairs(whole(params["ranks"]), whole(params["seed"]), whole(params["rounds"]))


def _prepare(machine: Machine, params: Params) -> Params:
    params = resolved_ranks(machine, params)
    ranks = whole(params["ranks"])
    if ranks < 2:
        raise Skip("a pair needs two ranks; this process may use one CPU")
    side_by_side = ranks // 2
    match params["at_once"]:
        case "auto":
            at_once = 1 if ranks <= _ALONE_TO or shares_cpus(machine, params) else side_by_side
        case "all":
            at_once = side_by_side
        case number:
            at_once = whole(number)
    if at_once > side_by_side:
        raise Skip(f"{ranks} ranks form {side_by_side} pairs at once, not {at_once}")
    match params["rounds"]:
        case "auto":
            least, most = (1, _MOST_ALONE) if at_once == 1 else (_LEAST_TOGETHER, _MOST_TOGETHER)
            rounds = min(all_rounds(ranks), max(least, most // side_by_side))
        case "all":
            rounds = all_rounds(ranks)
        case number:
            rounds = whole(number)
    if rounds > all_rounds(ranks):
        raise Skip(f"{ranks} ranks need only {all_rounds(ranks)} rounds for all pairs, not {rounds}")
    if rounds * side_by_side > _MOST_RECORDED:
        raise Skip(
            f"at most {_MOST_RECORDED} pairs fit in a record: use rounds={_MOST_RECORDED // side_by_side} or fewer"
        )
    return {**params, "rounds": rounds, "at_once": at_once}


def shares_cpus(machine: Machine, params: Params) -> bool:
    """Whether ranks have to share CPUs."""
    return not rank_cpus(machine, params)


def _rounds(params: Params) -> list[str]:
    rounds = rounds_by_spread(whole(params["ranks"]))[: whole(params["rounds"])]
    return ["--rounds", ",".join(map(str, rounds))]


def _estimate_s(params: Params) -> float:
    turns = -(-(whole(params["ranks"]) // 2) // whole(params["at_once"])) * whole(params["rounds"])
    a_sweep = turns * _VISITS_S * max(1.0, whole(params["bandwidth_B"]) / (1 << 20))
    if params["oversubscribe"]:
        a_sweep *= _SHARED_TIMES
    return 1.0 + max(SLICE_S + a_sweep, _LEAST_SWEEPS * a_sweep)


def _pairs_measured(machine: Machine, params: Params, samples: Sequence[Sample]) -> float:
    """Pairs with enough visits of both sizes, less those that have any and were not to be measured."""
    visits: dict[tuple[str, object, object], int] = {}
    for sample in samples:
        key = (sample.series, sample.point["a"], sample.point["b"])
        visits[key] = visits.get(key, 0) + 1
    wanted = set(chosen_pairs(params))
    whole_ones = sum(
        all(visits.get((series, *pair), 0) >= _LEAST_SWEEPS for series in ("latency", "bandwidth")) for pair in wanted
    )
    return whole_ones - len({(a, b) for _, a, b in visits} - wanted)


BENCHMARK = mpi_benchmark(
    __file__,
    name="mpi.pairs",
    question="Which pair of ranks, which rank or which node is slow?",
    ranks=AWARE_RANKS,
    takes_turns=False,
    words=(_rounds,),
    parameters=(
        Parameter.integer(
            "rounds",
            "auto",
            "rounds of the tournament in which every two ranks meet; auto: all, within "
            f"{_MOST_ALONE} pairs one at a time or {_MOST_TOGETHER} pairs many at once",
            ("auto", "all"),
            minimum=1,
        ),
        Parameter.integer(
            "at_once",
            "auto",
            f"pairs measured at once; all: ranks / 2; auto: 1 for up to {_ALONE_TO} ranks or if ranks share CPUs, "
            "else all",
            ("auto", "all"),
            minimum=1,
            option="--at-once",
        ),
        Parameter.integer(
            "seed",
            1,
            "shuffles the ranks in the tournament: with few rounds, another seed measures other pairs",
            option="--seed",
        ),
        Parameter.size("latency_B", 8, "message size for the latency", minimum=1, option="--latency"),
        Parameter.size("bandwidth_B", 1 << 20, "message size for the bandwidth", minimum=1, option="--bandwidth"),
    ),
    figures=(
        duration("latency", "half the round trip of a ping-pong of latency_B", "ops", role=Role.RANK_PAIRS),
        bandwidth(
            "bytes of a ping-pong of bandwidth_B, one message in flight, as counted by IMB PingPong",
            lambda machine, params, samples: links_of_node(machine, params),
        ),
    ),
    checks=(
        WRONG_BYTES,
        Check(
            "pairs_measured",
            "requested pairs with enough samples",
            exactly(lambda params: len(chosen_pairs(params))),
            _pairs_measured,
        ),
    ),
    prepare=_prepare,
    estimate_s=_estimate_s,
    between_nodes=exchanged_in_tournament,
)
