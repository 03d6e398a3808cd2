"""From points to experiments that can run: the environment is found, the programs are built, all before any repeat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seatrial.engine.events import Listener
from seatrial.environments.build import (
    Built,
    Environment,
    build,
    kept_environments,
    libc_version,
    program_key,
)
from seatrial.environments.compiler import first_compiler
from seatrial.environments.target import DECISIVE_FEATURES, resolve_target
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


def native_environment(machine: Machine) -> Environment:
    """The environment that is used when nobody chooses: the first compiler, building for this machine's CPU.

    Without a compiler it is that of the programs that were built ahead. Raises NoCompilerError, BuildError where the
    compiler cannot build for this CPU, UsageError for a wrong $CXX.
    """
    packages = machine.of_kind(DeviceKind.PACKAGE)
    isa = (packages[0].facts.text("isa") or "").split() if packages else []
    try:
        compiler = first_compiler()
    except NoCompilerError:
        kept = _built_ahead(frozenset(isa))
        if kept is None:
            raise
        return kept
    return Environment(compiler, resolve_target(compiler, isa), libc_version())


def _built_ahead(isa: frozenset[str]) -> Environment | None:
    """The environment of programs that `seatrial build` made for such a CPU and C library, or None."""
    return next(
        (
            environment
            for environment in kept_environments()
            if environment.target.isa == isa & DECISIVE_FEATURES and environment.libc == libc_version()
        ),
        None,
    )


def prepare(
    points: Sequence[Point], environment: Environment | BuildError, machine_key: str, listener: Listener
) -> tuple[Ready | Refused, ...]:
    """Build every program once, in the order of the points; what cannot be built is refused with its reason.

    `environment` is the reason itself where there is none.
    """
    if isinstance(environment, BuildError):
        return tuple(_refused(point, "", "", machine_key, environment) for point in points)
    return tuple(_prepare(point, environment, machine_key, listener) for point in points)


def _prepare(point: Point, environment: Environment, machine_key: str, listener: Listener) -> Ready | Refused:
    source = point.benchmark.program.source
    key = ""
    try:
        key = program_key(environment, source)
        if point.refusal is not None:
            return Refused(point, _experiment(point, environment.key, key, machine_key), point.refusal)
        built = build(environment, source, lambda: listener.building(point))
    except BuildError as problem:
        return _refused(point, environment.key, key, machine_key, problem)
    return Ready(point, _experiment(point, environment.key, key, machine_key), built)


def _refused(point: Point, environment: str, program: str, machine: str, problem: BuildError) -> Refused:
    """A point whose own refusal comes first: what this machine can never run needs no compiler."""
    if isinstance(problem, NoCompilerError):
        outcome = Outcome.unsupported("compiler", str(problem))
    else:
        outcome = Outcome.failed(Stage.BUILD, str(problem), problem.output)
    return Refused(point, _experiment(point, environment, program, machine), point.refusal or outcome)


def _experiment(point: Point, environment: str, program: str, machine: str) -> Experiment:
    return Experiment(point.benchmark.name, point.parameters, environment, program, machine)
