"""From points to experiments that can run: the environment is found, the programs are built, all before any repeat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seatrial.engine.events import Listener
from seatrial.environments.build import Built, Environment, build, libc_version, program_key
from seatrial.environments.compiler import first_compiler
from seatrial.environments.target import resolve_target
from seatrial.errors import BuildError, NoCompilerError
from seatrial.model.experiment import Experiment
from seatrial.model.machine import DeviceKind, Machine
from seatrial.model.outcome import Outcome, Stage
from seatrial.plan.points import Point


@dataclass(frozen=True, slots=True)
class Ready:
    """A point as an experiment that can run."""

    point: Point
    experiment: Experiment
    built: Built


@dataclass(frozen=True, slots=True)
class Refused:
    """A point that cannot run here, and why."""

    point: Point
    experiment: Experiment
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Preparation:
    """All experiments of a run, in the order of the plan, and the environment that they share."""

    experiments: tuple[Ready | Refused, ...]
    environment: Environment | None = None

    @property
    def ready(self) -> tuple[Ready, ...]:
        """Those that can run."""
        return tuple(item for item in self.experiments if isinstance(item, Ready))


def native_environment(machine: Machine) -> Environment:
    """The environment that is used when nobody chooses: the first compiler, building for this machine's CPU.

    Raises NoCompilerError, or BuildError where the compiler cannot build for this CPU.
    """
    compiler = first_compiler()
    packages = machine.of_kind(DeviceKind.PACKAGE)
    isa = (packages[0].facts.text("isa") or "").split() if packages else []
    return Environment(compiler, resolve_target(compiler, isa), libc_version())


def prepare(points: Sequence[Point], machine: Machine, machine_key: str, listener: Listener) -> Preparation:
    """Build every program once; a point that cannot be built is refused with its reason."""
    try:
        environment = native_environment(machine)
    except BuildError as problem:
        refused = (
            Refused(
                point,
                Experiment(point.benchmark.name, point.parameters, "", "", machine_key),
                point.refusal or _refusal(problem),
            )
            for point in points
        )
        return Preparation(tuple(refused))
    return Preparation(tuple(_prepare(point, environment, machine_key, listener) for point in points), environment)


def _prepare(point: Point, environment: Environment, machine_key: str, listener: Listener) -> Ready | Refused:
    source = point.benchmark.program.source
    key = ""
    try:
        key = program_key(environment, source)
        built = None
        if point.refusal is None:
            listener.building(point)
            built = build(environment, source)
        refusal = point.refusal
    except BuildError as problem:
        built, refusal = None, point.refusal or _refusal(problem)
    experiment = Experiment(point.benchmark.name, point.parameters, environment.key, key, machine_key)
    if built is None or refusal is not None:
        return Refused(point, experiment, refusal or Outcome.skipped("it was not built"))
    return Ready(point, experiment, built)


def _refusal(problem: BuildError) -> Outcome:
    if isinstance(problem, NoCompilerError):
        return Outcome.unsupported("compiler", str(problem))
    return Outcome.failed(Stage.BUILD, str(problem), problem.output)
