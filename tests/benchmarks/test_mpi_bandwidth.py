"""mpi.bandwidth, mpi.bidirectional, mpi.multi-pair: the program for real on each MPI, and planted faults for its check.

Also messages that need more elements than MPI counts in an int, in a small program of its own.
"""

from __future__ import annotations

import os
import subprocess
from itertools import product
from pathlib import Path

import pytest
from engine.harness import make_ready, run_one
from engine.planted_faults import with_fault
from made_up import made_up_machine
from usual import usually, usually_first

from seatrial.benchmarks import benchmark_named
from seatrial.engine.repeat import command_of, variables_of
from seatrial.environments.mpi import find_mpis
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import readings
from seatrial.model.results.sample import Sample, State
from seatrial.plan.points import plan_points
from seatrial.store.folder import ResultsFolder

MPIS = [mpi.name for mpi in find_mpis()]
two_cpus = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two ranks want two CPUs")


def test_a_rate_that_another_tool_told_is_read_as_it_is() -> None:
    benchmark = benchmark_named("mpi.bandwidth")
    told = Sample("bandwidth", 0, 1.0, {"bytes": 12e9}, point={"size_B": 1 << 20})
    (reading,) = readings(benchmark, made_up_machine(), {}, [told])
    assert reading.value == 12e9


def test_the_rates_of_many_pairs() -> None:
    benchmark = benchmark_named("mpi.multi-pair")
    (point,) = plan_points(["mpi.multi-pair"], {"pairs": ["2"]}, made_up_machine(cores=4))
    all_pairs = Sample("bandwidth", 0, 1e-3, {"bytes": 2048.0, "ops": 256.0}, point={"size_B": 8})
    slowest = Sample("slowest_pair", 0, 2e-3, {"bytes": 1024.0, "ops": 128.0}, point={"size_B": 8})
    found = readings(benchmark, made_up_machine(), point.parameters, [all_pairs, slowest])
    assert {r.figure.name: r.value for r in found} == pytest.approx(
        {"bandwidth": 2.048e6, "message_rate": 256e3, "slowest_pair": 512e3}
    )
    assert benchmark.figure("slowest_pair").is_there(point.parameters)
    assert not benchmark.figure("slowest_pair").is_there({**point.parameters, "pairs": 1})


@two_cpus
@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize(
    ("name", "mpi"),
    usually(
        product(["mpi.bandwidth", "mpi.bidirectional", "mpi.multi-pair"], MPIS),
        lambda case: case[1] == MPIS[0] or case[0] == "mpi.bandwidth",
    ),
)
def test_every_size_has_its_rate(name: str, mpi: str, folder: ResultsFolder, live_machine: Machine) -> None:
    settings = {"largest_B": "8", "window": "5"} | ({"pairs": "1"} if name == "mpi.multi-pair" else {})
    ready = make_ready(benchmark_named(name), live_machine, folder, mpi=mpi, **settings)
    record = run_one(ready, live_machine, folder)
    assert record.outcome.is_ok, record.outcome
    assert [s.point["size_B"] for s in record.samples if s.i == 0] == [1, 2, 4, 8]
    for sample in record.samples:
        messages = sample.work["ops"]
        assert messages % (10 if name == "mpi.bidirectional" else 5) == 0  # whole windows
        assert sample.work["bytes"] == messages * int(sample.point["size_B"])


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("mpi", usually_first(MPIS))
def test_two_pairs_on_shared_cpus(mpi: str, folder: ResultsFolder, live_machine: Machine) -> None:
    settings = {"pairs": "2", "oversubscribe": "true"}  # which only means something where there are fewer CPUs
    benchmark = benchmark_named("mpi.multi-pair")
    ready = make_ready(benchmark, live_machine, folder, mpi=mpi, size_B="64", window="4", **settings)
    record = run_one(ready, live_machine, folder)
    assert record.outcome.is_ok, record.outcome
    for whole, slowest in zip(
        (s for s in record.samples if s.series == "bandwidth"),
        (s for s in record.samples if s.series == "slowest_pair"),
        strict=True,
    ):
        assert whole.work["ops"] == 2 * slowest.work["ops"]
        assert slowest.elapsed_s >= whole.elapsed_s  # a mean is at most the slowest


FAULTS = {
    "a byte turned over by the receiver": (
        "mpi.bandwidth",
        "      wrong_ += memory_.wrong(",
        "      memory_.received()[message.bytes / 2] ^= std::byte(PLANTED), wrong_ += memory_.wrong(",
    ),
    "a byte less sent": (
        "mpi.bandwidth",
        "MPI_Isend(memory_.sent(), message.count,",
        "MPI_Isend(memory_.sent(), message.count - (PLANTED ? 1 : 0),",
    ),
    "one way of two gone astray": (
        "mpi.bidirectional",
        "memory_.fill_sent(message.bytes, seed_of(rank_));",
        "memory_.fill_sent(message.bytes, seed_of(0));",
    ),
}


@two_cpus
@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize(("fault", "mpi"), list(product(FAULTS, MPIS[:1])))
def test_a_planted_fault_is_found(
    fault: str,
    mpi: str,
    folder: ResultsFolder,
    live_machine: Machine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    faults = {name: {"bandwidth.cpp": (text, replacement)} for name, (_, text, replacement) in FAULTS.items()}
    broken = with_fault(benchmark_named(FAULTS[fault][0]), fault, faults, tmp_path, monkeypatch)
    ready = make_ready(broken, live_machine, folder, mpi=mpi, size_B="8", window="4")
    record = run_one(ready, live_machine, folder)
    assert record.outcome.state is State.INVALID and record.outcome.reason.startswith("wrong_bytes: ")


GREAT_MESSAGES = r"""
#include <cstddef>
#include <cstdio>
#include <vector>

#include "mpi/message.hpp"
#include "mpi/pattern.hpp"

using namespace seatrial;

// The number of elements and bytes of a message as reported by MPI.
void print_sizes(MPI_Datatype element, std::size_t bytes) {
  const mpi::Message message(element, bytes);
  MPI_Count each = 0;
  MPI_Type_size_x(message.type, &each);
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  MPI_Type_get_extent(message.type, &lower, &extent);
  std::printf("%zu %d %lld %lld\n", bytes, message.count, static_cast<long long>(each),
              static_cast<long long>(extent));
}

void print_all_sizes() {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{24}, std::size_t{2147483640}, (std::size_t{1} << 31),
                                  (std::size_t{1} << 33) + 24})
    print_sizes(MPI_CHAR, bytes);
  print_sizes(MPI_DOUBLE, (std::size_t{1} << 34) + 24);
}

// A message of blocks, sent for real: it is small, since a small limit of elements is passed.
void send_blocks() {
  constexpr std::size_t bytes = 1000;
  const mpi::Message message(MPI_CHAR, bytes, 64, 96);
  std::vector<std::byte> sent(bytes), received(bytes);
  mpi::fill(sent, 1);
  mpi::poison(received, 1);
  const auto before = mpi::wrong_bytes(received, 1);
  MPI_Sendrecv(sent.data(), message.count, message.type, 0, 0, received.data(), message.count, message.type, 0, 0,
               MPI_COMM_SELF, MPI_STATUS_IGNORE);
  std::printf("%zu %zu\n", before, mpi::wrong_bytes(received, 1));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  print_all_sizes();
  send_blocks();
  MPI_Finalize();
}
"""


@two_cpus
@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("mpi", usually_first(MPIS))
def test_messages_of_more_elements_than_an_int_counts(
    mpi: str, folder: ResultsFolder, live_machine: Machine, tmp_path: Path
) -> None:
    """By the sizes that MPI reports for the types, and by sending one whose blocks are made small."""
    ready = make_ready(benchmark_named("mpi.bandwidth"), live_machine, folder, mpi=mpi)
    source, program = tmp_path / "great.cpp", tmp_path / "great"
    source.write_text(GREAT_MESSAGES, encoding="utf-8")
    of_benchmark = str(benchmark_named("mpi.bandwidth").program.source)
    command = [str(source) if word == of_benchmark else word for word in ready.program.built.command if word != "-c"]
    assert ready.mpi is not None
    subprocess.run([*command, "-o", str(program), *ready.mpi.link_flags], check=True)
    started = command_of(ready, tmp_path)
    before = started[: started.index(str(ready.program.path))]
    done = subprocess.run(
        [*before, str(program)], env=variables_of(ready, tmp_path), check=True, capture_output=True, text=True
    )
    lines = [line.split() for line in done.stdout.splitlines()]  # those of launchers are words
    rows = [tuple(map(int, words)) for words in lines if all(word.isdigit() for word in words)]
    sizes = [row for row in rows if len(row) == 4]
    assert len(sizes) == 12  # two ranks, each of six
    for bytes_, count, each, extent in sizes:
        assert count * each == count * extent == bytes_
    assert [row for row in rows if len(row) == 2] == [(1000, 0)] * 2
