"""Ranks that die, hang, are started by the wrong launcher or bound elsewhere: on both Debian MPIs, with real runs."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from engine.harness import make_ready, run_one
from usual import usually_first

from seatrial.benchmarks.mpi.latency import BENCHMARK as LATENCY
from seatrial.engine import repeat
from seatrial.engine.kinds.external import ExternalProgram
from seatrial.engine.ready import Ready
from seatrial.environments.installed import find_installed
from seatrial.environments.mpi import choose_mpi
from seatrial.errors import BuildError
from seatrial.launch import ranks
from seatrial.launch.local import run_together
from seatrial.model.benchmark.benchmark import Benchmark, Better, External, Figure, Native, elapsed
from seatrial.model.benchmark.program import Hello, Layout, ProgramRecord
from seatrial.model.environment.choice import EnvironmentChoice
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord
from seatrial.model.results.sample import Sample, Stage, State
from seatrial.store.folder import ResultsFolder

pytestmark = [pytest.mark.real, pytest.mark.parallel]

MPIS = ["openmpi", "mpich"]

# What becomes of rank 1 is what --fate says; rank 0 waits for it.
SOURCE = r"""
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <csignal>
#include <unistd.h>
#include "mpi/program.hpp"

using namespace seatrial;

namespace {
struct Settings { std::string fate; };

Settings prepare(Arguments& arguments) { return {std::string(arguments.required("--fate"))}; }

void wait_for_the_other(int rank) {
  int word = 0;
  MPI_Recv(&word, 1, MPI_INT, 1 - rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void measure(mpi::Program& program, const Settings& settings) {
  program.at("the storm");
  const auto& fate = settings.fate;
  if (fate == "deadlock")
    wait_for_the_other(program.rank);
  if (program.rank == 1) {
    program.at("the reef");
    if (fate == "segv") *const_cast<volatile int*>(static_cast<int*>(nullptr)) = 1;
    if (fate == "abort") std::abort();
    if (fate == "exit") std::exit(1);
    if (fate == "silent") _exit(3);
    if (fate == "kill") raise(SIGKILL);
    if (fate == "throw") throw std::runtime_error("no \"wind\"");
    if (fate == "hang") for (;;) pause();
    if (fate == "stop") raise(SIGSTOP);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  program.add(sample_event("one_way", 0, 1e-6));
}
}

int main(int argc, char** argv) { return mpi::run_program("fate", argc, argv, prepare, measure); }
"""

FIGURE = Figure("one_way", "s", Better.LOWER, elapsed, "nothing")


@pytest.fixture(scope="session")
def fate_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("fate") / "fate.cpp"
    source.write_text(SOURCE)
    return source


def fated(source: Path, fate: str) -> Benchmark:
    return replace(LATENCY, program=Native(source, lambda params: ["--fate", fate]), figures=(FIGURE,), checks=())


@pytest.fixture
def start(fate_source: Path, live_machine: Machine, tmp_path: Path) -> Callable[..., RepeatRecord]:
    """Runs the program with a fate; `change` does something to what was made ready before."""
    if len(live_machine.allowed_cpus) < 2:
        pytest.skip("needs two CPUs")

    def run(fate: str, mpi: str, change: Callable[[Ready], Ready] = lambda ready: ready) -> RepeatRecord:
        folder = ResultsFolder.create(tmp_path / "results")
        try:
            ready = make_ready(fated(fate_source, fate), live_machine, folder, mpi=mpi)
        except BuildError as problem:
            pytest.skip(f"needs {mpi}: {problem}")
        return run_one(change(ready), live_machine, folder)

    return run


def test_the_time_to_launch_is_known_on_a_busy_machine_too(
    start: Callable[..., RepeatRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The launcher starts late, and all of its program takes less time than that."""

    def late(*given: Any, **named: Any) -> Any:
        time.sleep(2)
        return run_together(*given, **named)

    monkeypatch.setattr(repeat, "run_together", late)
    record = start("none", MPIS[0])
    assert record.outcome.is_ok and record.seen["program_s"] < 2 < record.seen["launch_s"] < record.wall_s


@pytest.mark.parametrize("mpi", MPIS)
def test_ranks_that_succeed(mpi: str, start: Callable[..., RepeatRecord]) -> None:
    record = start("none", mpi)
    assert record.outcome.is_ok, record.outcome.reason
    assert 0 < record.seen["launch_s"] < record.wall_s
    assert record.seen["notes"]["mpi_init_s"] > 0
    assert sorted(map(tuple, record.seen["affinity"])) == sorted({tuple(mask) for mask in record.seen["affinity"]})


@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize(
    ("fate", "how"),
    [
        ("segv", 'rank 1 killed by SIGSEGV at "the reef"'),
        ("abort", 'rank 1 killed by SIGABRT at "the reef"'),
        ("exit", 'rank 1 exited at "the reef"'),
        ("throw", 'rank 1 failed (no "wind") at "the reef"'),
        ("kill", "rank 1 killed by SIGKILL, according to the launcher"),
        ("silent", "rank 1 ended with exit status 3, according to the launcher"),
    ],
)
def test_a_rank_that_dies_is_reported_with_its_phase(
    fate: str, how: str, mpi: str, start: Callable[..., RepeatRecord]
) -> None:
    outcome = start(fate, mpi).outcome
    assert outcome.state is State.FAILED and outcome.stage is Stage.RUN
    assert how in outcome.reason and "rank 0 killed" not in outcome.reason


@pytest.mark.parametrize("mpi", usually_first(MPIS))
@pytest.mark.parametrize(
    ("fate", "doing"),
    [
        ("hang", 'rank 1 at "the reef", outside of MPI; rank 0 at "the storm", in MPI_Barrier, waiting'),
        ("stop", 'rank 1 at "the reef", outside of MPI; rank 0 at "the storm", in MPI_Barrier, waiting'),
        ("deadlock", 'ranks 0-1 at "the storm", in MPI_Recv; all are waiting for each other'),
    ],
)
def test_a_rank_that_hangs_is_distinguished_from_those_that_wait(
    fate: str, doing: str, mpi: str, start: Callable[..., RepeatRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeat, "time_limit_s", lambda ready: 4.0)
    outcome = start(fate, mpi).outcome
    assert outcome.state is State.TIMED_OUT
    assert doing in outcome.reason


@pytest.mark.parametrize(("mpi", "other"), [("openmpi", "mpich"), ("mpich", "openmpi")])
def test_a_launcher_of_another_library_is_named(mpi: str, other: str, start: Callable[..., RepeatRecord]) -> None:
    try:
        stranger = choose_mpi(other)
    except BuildError as problem:
        pytest.skip(f"needs {other}: {problem}")

    def change(ready: Ready) -> Ready:
        assert ready.mpi is not None
        return replace(ready, mpi=replace(ready.mpi, family=stranger.family, launcher=stranger.launcher))

    outcome = start("none", mpi, change).outcome
    assert outcome.state is State.FAILED and outcome.stage is Stage.LAUNCH
    assert "each rank has an MPI_COMM_WORLD of size 1, but 2 ranks were started" in outcome.reason
    assert {"openmpi": "Open MPI", "mpich": "MPICH"}[mpi] in outcome.reason and str(stranger.launcher) in outcome.reason


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def launched_by(launcher: Path) -> Callable[[Ready], Ready]:
    def change(ready: Ready) -> Ready:
        assert ready.mpi is not None
        return replace(ready, mpi=replace(ready.mpi, launcher=launcher))

    return change


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, whom it refuses")
def test_an_mpirun_that_refuses_root(start: Callable[..., RepeatRecord], tmp_path: Path) -> None:
    mpirun = shutil.which("mpirun.openmpi")
    without = "exec env -u OMPI_ALLOW_RUN_AS_ROOT -u OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"
    outcome = start("none", "openmpi", launched_by(script(tmp_path / "mpirun", f'{without} {mpirun} "$@"'))).outcome
    assert outcome.stage is Stage.LAUNCH and "refuses to start ranks for root" in outcome.reason


@pytest.mark.parametrize("mpi", MPIS)
def test_a_launcher_that_is_missing_or_no_program(mpi: str, start: Callable[..., RepeatRecord], tmp_path: Path) -> None:
    outcome = start("none", mpi, launched_by(tmp_path / "no-mpirun")).outcome
    assert outcome.stage is Stage.LAUNCH and "no-mpirun cannot be started: No such file" in outcome.reason
    plain = tmp_path / "plain"
    plain.write_text("not a program")
    shutil.rmtree(tmp_path / "results")
    outcome = start("none", mpi, launched_by(plain)).outcome
    assert outcome.stage is Stage.LAUNCH and "plain cannot be started: Permission denied" in outcome.reason


def test_too_few_slots(
    start: Callable[..., RepeatRecord], live_machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = len(live_machine.allowed_cpus) + 1

    def change(ready: Ready) -> Ready:
        monkeypatch.setattr("seatrial.engine.starting.rank_layout", lambda point: Layout(many))
        return ready

    outcome = start("none", "openmpi", change).outcome
    assert outcome.stage is Stage.LAUNCH and "fewer slots than ranks" in outcome.reason


@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_ranks_run_where_they_were_placed_in_any_order(
    order: tuple[int, int], mpi: str, start: Callable[..., RepeatRecord], live_machine: Machine
) -> None:
    cpus = tuple(live_machine.allowed_cpus[k] for k in order)
    record = start("none", mpi, lambda ready: replace(ready, point=replace(ready.point, cpus=cpus)))
    assert record.outcome.is_ok, record.outcome.reason
    assert record.seen["affinity"] == [[cpu] for cpu in cpus]


@pytest.mark.parametrize("mpi", MPIS)
def test_ranks_bound_to_other_cpus_are_detected(
    mpi: str, start: Callable[..., RepeatRecord], live_machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = live_machine.allowed_cpus[:2]
    swapped = Layout(2, ((second,), (first,)))
    monkeypatch.setattr("seatrial.engine.starting.rank_layout", lambda point: swapped)
    outcome = start("none", mpi).outcome
    assert outcome.state is State.INVALID and outcome.check == "affinity"
    assert f"bound to CPUs {second}; {first} instead of {first}; {second}" in outcome.reason


@pytest.mark.parametrize("mpi", MPIS)
def test_a_study_can_disable_binding(mpi: str, start: Callable[..., RepeatRecord], live_machine: Machine) -> None:
    unbound = EnvironmentChoice(mpi=mpi, mpi_settings=(("binding", "none"),))
    record = start("none", mpi, lambda ready: replace(ready, point=replace(ready.point, environment=unbound)))
    assert record.outcome.is_ok, record.outcome.reason
    assert record.seen["affinity"] == [sorted(live_machine.allowed_cpus)] * 2
    assert not {"--oversubscribe", "OMPI_MCA_mpi_yield_when_idle"} & set(record.seen["command"])


def parse(data: bytes) -> ProgramRecord:
    sample = Sample("one_way", 0, 1e-6, {}, 0, {}, {})
    return ProgramRecord(samples=(sample,), ended=b"end" in data)


@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("threads", [1, 2])
def test_an_application_is_bound_and_watched_like_our_own_programs(
    mpi: str, threads: int, live_machine: Machine, fate_source: Path, tmp_path: Path
) -> None:
    """Two ranks of a CPU each, and one rank of two."""
    if len(live_machine.allowed_cpus) < 2:
        pytest.skip("needs two CPUs")
    try:
        library = choose_mpi(mpi)
    except BuildError as problem:
        pytest.skip(f"needs {mpi}: {problem}")
    echo = External("echo", "", "stdout", lambda params, directory: ["end"], parse, version=())
    benchmark = replace(LATENCY, program=echo, figures=(FIGURE,), checks=())
    folder = ResultsFolder.create(tmp_path / "results")
    template = make_ready(fated(fate_source, "none"), live_machine, folder, mpi=mpi)
    second, first = live_machine.allowed_cpus[:2]
    parameters = {**template.point.parameters, "ranks": 2 // threads, "threads": threads}
    point = replace(template.point, benchmark=benchmark, parameters=parameters, cpus=(first, second))
    ready = replace(template, point=point, program=ExternalProgram(echo, find_installed(echo)), mpi=library)
    record = run_one(ready, live_machine, folder)
    assert record.outcome.is_ok, record.outcome.reason
    wanted = [[first], [second]] if threads == 1 else [sorted((first, second))]
    assert record.seen["affinity"] == wanted and record.seen["launch_s"] > 0


def test_the_placement_of_ranks_is_compared_with_the_plan() -> None:
    here = "n1"

    def seen(layout: Layout, cpus: list[tuple[int, ...]], hosts: list[str]) -> str | None:
        hello = Hello("p", "b", here, cpus=tuple(cpus), hosts=tuple(hosts))
        outcome = ranks.misplaced(layout, hello, (0, 1, 2, 3), here)
        return None if outcome is None else outcome.check

    local = Layout(2, ((1,), (0,)))
    assert seen(local, [(1,), (0,)], [here, here]) is None
    assert seen(local, [(0,), (1,)], [here, here]) == "affinity"
    assert seen(local, [(1,)], [here]) == "ranks"
    assert seen(local, [(1,), (0,)], [here, "n2"]) == "hosts"
    wide = Layout(1, ((2, 3),))
    assert seen(wide, [(2, 3)], [here]) is None and seen(wide, [(2,)], [here]) == "affinity"
    free = Layout(2)
    assert seen(free, [(0, 1, 2, 3)] * 2, [here] * 2) is None
    assert seen(free, [(0, 1, 2, 3), (1,)], [here] * 2) == "affinity"
    two = Layout(4, ((0,), (1,), (0,), (1,)), ("a", "b"))
    cpus: list[tuple[int, ...]] = [(0,), (1,), (0,), (1,)]
    assert seen(two, cpus, ["a.x", "a.x", "b.x", "b.x"]) is None
    assert seen(two, cpus, ["a.x", "b.x", "a.x", "b.x"]) == "hosts"
    assert seen(two, cpus, ["a.x"] * 4) == "hosts"
    assert seen(two, cpus, ["b.x", "b.x", "a.x", "a.x"]) == "hosts", "in another order"
    assert seen(two, cpus, ["ib-b", "ib-b", "ib-a", "ib-a"]) is None, "host names that the list does not have"


def test_ends_of_many_ranks_are_grouped() -> None:
    ends = [ranks.RankEnd(rank, None, "round 1", "MPI_Bcast", True) for rank in (0, 1, 2, 4)]
    ends.append(ranks.RankEnd(3, None, None, None, False))
    text = ranks._at_timeout(ends, SimpleNamespace(ranks=6))
    assert text == (
        'rank 5 never returned from MPI_Init; rank 3 left no report; ranks 0-2,4 at "round 1", in MPI_Bcast, waiting'
    )
