"""Every declaration, held to the rules that the rest of seatrial relies on."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

from made_up import made_up_machine

from seatrial.benchmarks import registry
from seatrial.model.benchmark.benchmark import Benchmark, External, ImportedOnly, Native
from seatrial.model.machine.machine import Machine
from seatrial.model.units import UNITS
from seatrial.plan.points import plan_points

BENCHMARKS = list(registry().values())


def every_benchmark(test: Callable[[Benchmark], None]) -> Callable[[], None]:
    """Run the test for each benchmark, and name those that it fails for."""

    def run() -> None:
        failed: list[str] = []
        for benchmark in BENCHMARKS:
            try:
                test(benchmark)
            except AssertionError as error:
                failed.append(f"{benchmark.name}: {error}")
        assert not failed, "\n".join(failed)

    return run


def modules_of(package: ModuleType) -> Iterator[ModuleType]:
    return (importlib.import_module(m.name) for m in pkgutil.iter_modules(package.__path__, f"{package.__name__}."))


@every_benchmark
def test_its_name_is_its_place(benchmark: Benchmark) -> None:
    """Its module is named as it is, or holds a family that it is of, or is that of the application that measures it;
    the program stands beside it. What is only imported is the `IMPORTED` of the module with its reader."""
    area, _, stem = benchmark.name.partition(".")
    is_of_an_application = area in ("apps", "imported", "io") and not isinstance(benchmark.program, Native)
    room = "applications" if is_of_an_application else f"benchmarks.{area}"
    own = f"seatrial.{room}.{(stem or area).replace('-', '_')}"
    package = importlib.import_module(f"seatrial.{room}")
    if area == "imported":
        (module,) = (m for m in modules_of(package) if getattr(m, "IMPORTED", None) is benchmark)
        assert module.READER.kind == stem
    elif importlib.util.find_spec(own) is not None:
        assert importlib.import_module(own).BENCHMARK.name == benchmark.name
    else:
        held = ((getattr(m, "BENCHMARK", None), *getattr(m, "BENCHMARKS", ())) for m in modules_of(package))
        names = [one.name for of_module in held for one in of_module if one is not None]
        assert names.count(benchmark.name) == 1
    if isinstance(benchmark.program, Native):
        assert benchmark.program.source.parts[-2] == area and benchmark.program.source.is_file()
    elif isinstance(benchmark.program, External):
        assert benchmark.program.install
    else:
        assert benchmark.program.why


@every_benchmark
def test_its_question_is_one(benchmark: Benchmark) -> None:
    assert benchmark.question.endswith("?")


@every_benchmark
def test_names_are_unique_and_units_known(benchmark: Benchmark) -> None:
    for named in (benchmark.parameters, benchmark.figures, benchmark.checks):
        names = [entry.name for entry in named]
        assert len(names) == len(set(names))
    assert all(figure.unit in UNITS and figure.work for figure in benchmark.figures)


@every_benchmark
def test_its_defaults_are_values_that_it_takes(benchmark: Benchmark) -> None:
    for parameter in benchmark.parameters:
        assert parameter.value_of(parameter.default) == parameter.default
        assert parameter.help and parameter.accepts()


IN_THE_TRIAL = ("cpu.", "memory.", "io.", "mpi.latency", "mpi.bandwidth", "mpi.allreduce", "mpi.init")
NOT_IN_THE_TRIAL = ("cpu.cg",)
"""A repeat beyond the caches takes too long."""


@every_benchmark
def test_it_has_checks_and_a_place_in_the_trial(benchmark: Benchmark) -> None:
    if isinstance(benchmark.program, ImportedOnly):
        assert not benchmark.trial
    elif isinstance(benchmark.program, Native) and benchmark.program.commands is not None:
        assert not benchmark.trial, "it measures what somebody names"
    else:
        assert benchmark.checks
        is_there = benchmark.name.startswith(IN_THE_TRIAL) and benchmark.name not in NOT_IN_THE_TRIAL
        assert bool(benchmark.trial) >= is_there


MACHINES = [
    made_up_machine(cores=2),
    made_up_machine(cores=1),
    made_up_machine(packages=2, cores=64, threads=2),
    made_up_machine(cores=4, l3_bytes=None),
]


@every_benchmark
def test_it_plans_on_any_machine(benchmark: Benchmark) -> None:
    for machine in MACHINES:
        plans_on(machine, benchmark)


def plans_on(machine: Machine, benchmark: Benchmark) -> None:
    for point in plan_points([benchmark.name], {}, machine):
        if isinstance(benchmark.program, ImportedOnly):
            assert point.cpus == ()
            continue
        if point.refusal is None:
            assert set(point.cpus) <= set(machine.allowed_cpus)
            assert point.cpus or isinstance(benchmark.program, External)
            assert len(set(point.cpus)) == len(point.cpus)
            assert point.estimate_s > 0
            arguments = (
                benchmark.program.arguments(point.parameters, Path("folder"))
                if isinstance(benchmark.program, External)
                else benchmark.program.arguments(point.parameters)
            )
            assert all(isinstance(argument, str) for argument in arguments)
            for check in benchmark.checks:
                low, high = check.bound(machine, point.parameters)
                assert low <= high
        else:
            assert point.refusal.reason
