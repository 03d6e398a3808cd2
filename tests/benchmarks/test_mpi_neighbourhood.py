"""mpi.neighbor-*: the grid and its sizes, the program for real on each MPI, and planted faults."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from engine.harness import make_ready, run_one, tampered
from made_up import facts, made_up_machine
from usual import usually, usually_first

from seatrial.benchmarks import benchmark_named
from seatrial.benchmarks.mpi.neighbourhood import BENCHMARKS
from seatrial.environments.mpi import find_mpis
from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import Benchmark
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord
from seatrial.model.results.sample import State
from seatrial.plan.points import plan_points
from seatrial.store.folder import ResultsFolder

MPIS = [mpi.name for mpi in find_mpis()]
NAMES = [benchmark.name for benchmark in BENCHMARKS]
ALLTOALL = benchmark_named("mpi.neighbor-alltoall")
two_cpus = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two ranks want two CPUs")


def arguments(machine: Machine, **settings: str) -> dict[str, str]:
    (point,) = plan_points([ALLTOALL.name], {name: [value] for name, value in settings.items()}, machine)
    words = point.benchmark.program.arguments(point.parameters)
    return dict(zip(words[::2], words[1::2], strict=True))


def test_the_program_is_told_operation_dimensions_and_sizes() -> None:
    told = arguments(made_up_machine(), dims="3", largest_B="4B")
    assert (told["--operation"], told["--dimensions"], told["--sizes"]) == ("neighbor-alltoall", "3", "1,2,4")


def test_a_sweep_ends_where_half_of_the_memory_does() -> None:
    machine = replace(made_up_machine(cores=4), facts=facts(memory_total=2**24))
    # Four ranks, each with a block to and from each of 2 x 2 neighbours: 32 B for each byte of 8 MiB.
    assert arguments(machine)["--sizes"].split(",")[-1] == str(2**18)
    assert arguments(machine, dims="1")["--sizes"].split(",")[-1] == str(2**19)


def test_a_grid_has_few_dimensions() -> None:
    with pytest.raises(UsageError, match="dims=17"):
        arguments(made_up_machine(), dims="17")


def run(benchmark: Benchmark, folder: ResultsFolder, machine: Machine, mpi: str, **settings: str) -> RepeatRecord:
    return run_one(make_ready(benchmark, machine, folder, mpi=mpi, **settings), machine, folder)


@two_cpus
@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize(
    ("benchmark", "mpi"),
    usually(product(BENCHMARKS, MPIS), lambda case: case[1] == MPIS[0] or case[0] is BENCHMARKS[0]),
    ids=lambda case: case if isinstance(case, str) else case.name,
)
def test_neighbours_get_what_they_must(
    benchmark: Benchmark, mpi: str, folder: ResultsFolder, live_machine: Machine
) -> None:
    record = run(benchmark, folder, live_machine, mpi, largest_B="16B", dims="1")
    assert record.outcome.is_ok, record.outcome
    assert record.checks["wrong_data"] == 0 and record.seen["notes"]["grid"] == [2]


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize("mpi", usually_first(MPIS))
@pytest.mark.parametrize(("settings", "grid"), [({"ranks": "3", "dims": "1"}, [3]), ({"ranks": "4"}, [2, 2])])
def test_grids_of_more_ranks_than_cpus(
    settings: dict[str, str], grid: list[int], mpi: str, folder: ResultsFolder, live_machine: Machine
) -> None:
    two = replace(live_machine, allowed_cpus=live_machine.allowed_cpus[:2])
    settings = {**settings, "size_B": "1000B", "oversubscribe": "true", "call": "nonblocking"}
    record = run(ALLTOALL, folder, two, mpi, **settings)
    assert record.outcome.is_ok or record.outcome.reason.startswith("computed_share: "), record.outcome
    assert record.checks["wrong_data"] == 0 and record.seen["notes"]["grid"] == grid


@two_cpus
@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.skipif(not MPIS, reason="needs an MPI library (apt install libopenmpi-dev openmpi-bin)")
def test_planted_faults_are_found(
    folder: ResultsFolder, live_machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both blocks at one place where each has its own, and a byte less where there are no places."""
    text = "const auto& message = kept.message;\n    const auto* counts"
    edits = {
        "neighbourhood.cpp": (text, text.replace(";", ";\n    const_cast<int&>(message.count) -= 1;", 1)),
        "mpi/collective_layout.hpp": ("addresses.push_back(at);", "addresses.push_back(0 * at);"),
    }
    broken = tampered(ALLTOALL, tmp_path, edits, monkeypatch)
    for name in ("mpi.neighbor-alltoall", "mpi.neighbor-alltoallw"):
        own = benchmark_named(name)
        program = replace(own.program, source=broken.program.source)
        record = run(replace(own, program=program), folder, live_machine, MPIS[0], size_B="8B")
        assert record.outcome.state is State.INVALID, (name, record.outcome)
        assert record.outcome.reason.startswith("wrong_data: "), (name, record.outcome)
