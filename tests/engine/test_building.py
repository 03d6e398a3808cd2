"""Building ahead: every program once in each environment that points need, whatever becomes of others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from made_up import made_up_machine

from seatrial.engine import prepare as building
from seatrial.engine.prepare import build_points
from seatrial.environments.build import Built, Environment
from seatrial.environments.chosen import Environments
from seatrial.environments.compiler import Compiler, Target
from seatrial.errors import BuildError
from seatrial.model.benchmark.program import Hello
from seatrial.model.environment.choice import EnvironmentChoice
from seatrial.model.results.sample import State
from seatrial.plan.points import plan_points

ENVIRONMENT = Environment(Compiler(("g++",), "gcc", "g++ 12.2.0"), Target((), frozenset(), "", ""), "libc")


class MadeUp(Environments):
    """The compiler clang++ is not here."""

    def of(self, choice: EnvironmentChoice, *, with_mpi: bool = False) -> Environment | BuildError:
        if choice.compiler == "clang++":
            return BuildError("there is no clang++")
        return replace(ENVIRONMENT, added_flags=choice.flags, libc="with MPI" if with_mpi else "libc")


def test_each_program_is_built_once_and_a_failure_stops_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[tuple[str, str, tuple[str, ...]]] = []

    def build(environment: Environment, source: Path, announce: object) -> Built:
        built.append((source.name, environment.libc, environment.added_flags))
        if source.name == "peak.cpp":
            raise BuildError("it does not compile")
        return Built(Path("p"), "k", (), Hello("p", "k", "h"), 1.0, from_cache=False)

    monkeypatch.setattr(building, "build", build)
    settings = {
        "environment.compiler": ["clang++", "g++"],
        "environment.flags": ["-O2"],
        "environment.OMP_WAIT_POLICY": ["active", "passive"],
        "environment.transport": ["shm", "tcp"],
        "threads": ["1", "2", "99"],
    }
    points = plan_points(
        ["cpu.peak", "memory.stream", "mpi.latency", "mpi.allreduce", "mpi.bcast", "io.file"],
        settings,
        made_up_machine(cores=2),
    )
    assert any(point.refusal is not None and point.refusal.state is State.SKIPPED for point in points)
    results = list(build_points(points, MadeUp(made_up_machine()), lambda name: None))
    assert built == [
        ("peak.cpp", "libc", ("-O2",)),
        ("stream.cpp", "libc", ("-O2",)),
        ("latency.cpp", "with MPI", ("-O2",)),
        ("collectives.cpp", "with MPI", ("-O2",)),
    ]
    assert [isinstance(item.result, BuildError) for item in results] == [
        True,
        True,
        True,
        False,
        True,
        False,
        True,
        False,
    ]
    assert ("mpi.allreduce", "mpi.bcast") in {item.benchmarks for item in results}
