"""mpi.pairs: its tournament, its points, a pair slowed on purpose on each MPI, and a planted fault for each check."""

from __future__ import annotations

import subprocess
from collections import Counter
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from engine.harness import make_ready, run_one
from engine.planted_faults import with_fault
from made_up import facts, made_up_machine
from usual import usually_first

from seatrial.analysis.results import all_results
from seatrial.benchmarks.mpi.mpi_benchmark import links_of_node
from seatrial.benchmarks.mpi.pairs import BENCHMARK as PAIRS
from seatrial.benchmarks.mpi.pairs import chosen_pairs
from seatrial.benchmarks.mpi.tournament import all_rounds, pairs_of_round, rounds_by_spread, sampled_pairs, seats
from seatrial.engine.ready import Ready
from seatrial.environments.mpi import find_mpis
from seatrial.model.benchmark.parameter import Params
from seatrial.model.environment.mpi import Mpi, MpiFamily
from seatrial.model.machine.limit import Basis
from seatrial.model.machine.machine import Device, DeviceKind, Machine
from seatrial.model.results.record import readings
from seatrial.model.results.sample import State
from seatrial.plan.points import Point, plan_points
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder

MPIS = [mpi.name for mpi in find_mpis()]
EIGHT = {"ranks": "8", "oversubscribe": "true"}
# Delays what ranks 3 and 5 send each other, as a bad cable would: 100 us a message.
WRAPPER = """
#include <mpi.h>
#include <time.h>
static void delay(int peer) {
  int me;
  struct timespec start, now;
  PMPI_Comm_rank(MPI_COMM_WORLD, &me);
  if (!((me == 3 && peer == 5) || (me == 5 && peer == 3)))
    return;
  clock_gettime(CLOCK_MONOTONIC, &start);
  do
    clock_gettime(CLOCK_MONOTONIC, &now);
  while ((now.tv_sec - start.tv_sec) * 1e9 + (now.tv_nsec - start.tv_nsec) < 100e3);
}
int MPI_Send(const void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) {
  delay(peer);
  return PMPI_Send(buffer, count, type, peer, tag, comm);
}
"""


def plan(machine: Machine, **settings: str) -> Point:
    (point,) = plan_points(["mpi.pairs"], {name: [value] for name, value in settings.items()}, machine)
    return point


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 8, 9, 64, 101])
@pytest.mark.parametrize("seed", [0, 1])
def test_in_all_rounds_every_two_meet_once(ranks: int, seed: int) -> None:
    assert sorted(rounds_by_spread(ranks)) == list(range(all_rounds(ranks)))
    params = {"ranks": ranks, "seed": seed, "rounds": all_rounds(ranks)}
    assert list(chosen_pairs(params)) == list(combinations(range(ranks), 2))
    for number in range(all_rounds(ranks)):
        played = [rank for pair in pairs_of_round(ranks, seed, number) for rank in pair]
        assert len(played) == len(set(played)) == ranks - ranks % 2


def test_some_rounds_hold_partners_near_and_far() -> None:
    pairs = sampled_pairs(1024, seed=1, rounds=8)
    assert set(Counter(rank for pair in pairs for rank in pair).values()) == {8}
    far = sum(b - a > 512 for a, b in pairs)
    assert 0.15 < far / len(pairs) < 0.35  # a quarter of all pairs
    assert len(set(pairs) & set(sampled_pairs(1024, seed=2, rounds=8))) < 0.05 * len(pairs)


def test_one_round_couples_a_switch_with_most_others() -> None:
    """40 nodes on each of 25 switches, numbered switch after switch: each meets 40 nodes, drawn from all switches."""
    met = {
        (switch, other)
        for pair in sampled_pairs(1000, seed=1, rounds=1)
        for switch, other in (sorted(rank // 40 for rank in pair),)
    }
    assert len(met) > 0.75 * 25 * 26 / 2


def test_ten_thousand_ranks_have_a_schedule_too() -> None:
    assert sorted(seats(10_000, 7)) == list(range(10_000))
    assert len(sampled_pairs(10_000, seed=7, rounds=4)) == 20_000


@pytest.mark.parametrize(
    ("cores", "settings", "expected"),
    [
        (2, {}, {"ranks": 2, "rounds": 1, "at_once": 1}),
        (2, EIGHT, {"ranks": 8, "rounds": 7, "at_once": 1}),
        (16, {}, {"ranks": 16, "rounds": 15, "at_once": 1}),
        (64, {}, {"ranks": 64, "rounds": 63, "at_once": 32}),
        (1024, {}, {"ranks": 1024, "rounds": 8, "at_once": 512, "seed": 1}),
        (10_000, {}, {"ranks": 10_000, "rounds": 4, "at_once": 5000}),
        (64, {"at_once": "1"}, {"ranks": 64, "rounds": 16, "at_once": 1}),
        (128, {"rounds": "all"}, {"ranks": 128, "rounds": 127, "at_once": 64}),
    ],
)
def test_the_number_of_pairs_is_bounded(cores: int, settings: dict[str, str], expected: Params) -> None:
    point = plan(made_up_machine(cores=cores), **settings)
    assert point.refusal is None and {name: point.parameters[name] for name in expected} == expected
    assert PAIRS.estimate_s(point.parameters) < 20
    assert max(map(len, PAIRS.program.arguments(point.parameters))) < 128 << 10


@pytest.mark.parametrize(
    ("cores", "settings", "reason"),
    [
        (1, {}, "a pair needs two ranks"),
        (8, {"at_once": "5"}, "8 ranks form 4 pairs at once, not 5"),
        (8, {"rounds": "8"}, "8 ranks need only 7 rounds for all pairs, not 8"),
        (1024, {"rounds": "all"}, "at most 25000 pairs fit in a record: use rounds=48"),
    ],
)
def test_what_means_nothing_is_skipped(cores: int, settings: dict[str, str], reason: str) -> None:
    refusal = plan(made_up_machine(cores=cores), **settings).refusal
    assert refusal is not None and refusal.reason.startswith(reason)


def test_links_bound_what_passes_between_hosts_only() -> None:
    def machine(*rates: float | None) -> Machine:
        known = [facts() if rate is None else facts(rate=rate) for rate in rates]
        return Machine("m", tuple(Device(f"nic-{n}", DeviceKind.NIC, f"n{n}", facts=f) for n, f in enumerate(known)))

    two = links_of_node(machine(12.5e9, 12.5e9), {"nodes": 2})
    assert (two.value, two.basis) == (25e9, Basis.PHYSICAL)
    for unknown in (machine(12.5e9, None), machine()):
        assert links_of_node(unknown, {"nodes": 2}).value is None
    assert links_of_node(machine(12.5e9), {"nodes": 1}).value is None


def wrapper(mpi: Mpi, folder: Path, cc: str) -> Path:
    """A library that slows one pair, for this MPI."""
    source, library = folder / "slow.c", folder / "slow.so"
    source.write_text(WRAPPER)
    flags = [*mpi.compile_flags, "-O2", "-shared", "-fPIC"]
    subprocess.run([cc, *flags, str(source), "-o", str(library), *mpi.link_flags], check=True)
    return library


def preloaded(ready: Ready, library: Path) -> Ready:
    return replace(ready, variables=(*ready.variables, ("LD_PRELOAD", str(library))))


@pytest.mark.real
@pytest.mark.quiet
@pytest.mark.parametrize("name", usually_first(MPIS))
def test_one_pair_slowed_on_purpose_is_named_and_only_it(name, folder, tmp_path, live_machine, need) -> None:
    """Eight ranks share the CPUs: other work may slow other pairs too, or hide this one, but hardly in each of five
    repeats."""
    mpi = make_ready(PAIRS, live_machine, folder, mpi=name, **EIGHT).mpi
    assert mpi is not None
    if mpi.family not in (MpiFamily.OPENMPI, MpiFamily.MPICH):
        pytest.skip("the wrapper is tried with Open MPI and MPICH")
    library = wrapper(mpi, tmp_path, need("cc", "apt install gcc"))
    named: list[set[tuple[str, str]]] = []
    for attempt in range(5):
        own = ResultsFolder.create(tmp_path / f"{attempt}")
        ready = preloaded(make_ready(PAIRS, live_machine, own, mpi=name, **EIGHT), library)
        record = run_one(ready, live_machine, own)
        assert record.outcome.is_ok, record.outcome
        found = readings(PAIRS, live_machine, ready.point.parameters, record.samples)
        assert Counter(reading.figure.name for reading in found) == {"latency": 28, "bandwidth": 28}
        (result,) = all_results(read_contents(own))
        assert result.screening is not None and result.screening.n == 28
        named.append({(one.what, one.figure) for one in result.screening.outliers})
        if {what for what, _ in named[-1]} == {"pair 3-5"} and ("pair 3-5", "latency") in named[-1]:
            return
    pytest.fail(f"named: {named}")


FAULTS = {
    "other data": (
        "mpi::fill({buffers_.sent, kind.bytes}, mine)",
        "mpi::fill({buffers_.sent, kind.bytes}, mine + (PLANTED ? 4 : 0))",
        "wrong_bytes",
    ),
    "a byte less": (
        "MPI_Send(buffers_.sent, bytes_,",
        "MPI_Send(buffers_.sent, bytes_ - (PLANTED ? 1 : 0),",
        "wrong_bytes",
    ),
    "pairs left out": ("first += at_once)", "first += (PLANTED ? 2 : 1) * at_once)", "pairs_measured"),
    "too few visits": ("(program, min_sweeps", "(program, PLANTED ? 1 : min_sweeps", "pairs_measured"),
}


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault, folder, tmp_path, live_machine, monkeypatch) -> None:
    if not MPIS:
        pytest.skip("needs an MPI (apt install openmpi-bin libopenmpi-dev)")
    faults = {name: {"pairs.cpp": (text, replacement)} for name, (text, replacement, _) in FAULTS.items()}
    broken = with_fault(PAIRS, fault, faults, tmp_path, monkeypatch)
    settings = {"ranks": "4", "oversubscribe": "true"}
    record = run_one(make_ready(broken, live_machine, folder, mpi=MPIS[0], **settings), live_machine, folder)
    assert record.outcome.state is State.INVALID
    assert record.outcome.reason.startswith(f"{FAULTS[fault][2]}: "), record.outcome


@pytest.mark.real
@pytest.mark.parallel
def test_many_pairs_at_once(folder, live_machine) -> None:
    if not MPIS:
        pytest.skip("needs an MPI (apt install openmpi-bin libopenmpi-dev)")
    ready = make_ready(PAIRS, live_machine, folder, mpi=MPIS[0], ranks="5", oversubscribe="true", at_once="all")
    record = run_one(ready, live_machine, folder)
    assert record.outcome.is_ok, record.outcome
    pairs = {(sample.point["a"], sample.point["b"]) for sample in record.samples}
    assert pairs == set(combinations(range(5), 2))


@pytest.mark.real
@pytest.mark.parallel
def test_the_record_states_the_sample_and_the_round_of_each_pair(folder, live_machine) -> None:
    if not MPIS:
        pytest.skip("needs an MPI (apt install openmpi-bin libopenmpi-dev)")
    settings = {"ranks": "7", "oversubscribe": "true", "rounds": "3", "seed": "9"}
    record = run_one(make_ready(PAIRS, live_machine, folder, mpi=MPIS[0], **settings), live_machine, folder)
    assert record.outcome.is_ok, record.outcome
    measured: dict[int, set[object]] = {}
    for sample in record.samples:
        measured.setdefault(sample.extra["round"], set()).add((sample.point["a"], sample.point["b"]))
    rounds = rounds_by_spread(7)[:3]
    assert measured == {number: set(pairs_of_round(7, 9, number)) for number in rounds}
    assert record.seen["notes"]["sampling"] == {
        **{"seed": 9, "rounds": 3, "of_rounds": 7, "pairs": 9, "of_pairs": 21},
        **{"least_partners": 2, "most_partners": 3},
    }
