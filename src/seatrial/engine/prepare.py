"""From points to experiments that can run: the environment is found, the programs are built, all before any repeat."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from seatrial.engine.events import Listener
from seatrial.environments.blas import HOW_TO_GET_ONE, NoBlasError, choose_blas, find_blas
from seatrial.environments.build import (
    Built,
    Environment,
    build,
    introduce_with,
    kept_environments,
    libc_version,
    program_key,
)
from seatrial.environments.compiler import first_compiler
from seatrial.environments.installed import Installed, NotInstalledError, find_installed
from seatrial.environments.target import DECISIVE_FEATURES, resolve_target
from seatrial.errors import BuildError, NoCompilerError
from seatrial.model.benchmark import Elsewhere, External, Native
from seatrial.model.experiment import Experiment, content_key
from seatrial.model.machine import DeviceKind, Machine
from seatrial.model.outcome import Outcome, Stage
from seatrial.model.parameter import Params
from seatrial.plan.points import Point


@dataclass(frozen=True, slots=True)
class Ready:
    """A point as an experiment that can run."""

    point: Point
    experiment: Experiment
    built: Built | Installed


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
    # Two points may come out as one: `auto` and the name of what it stands for.
    prepared = (_prepare(point, environment, machine_key, listener) for point in points)
    return tuple({item.experiment.id: item for item in prepared}.values())


def lacking(program: Native | External | Elsewhere, environment: Environment | BuildError) -> str | None:
    """What this machine lacks to have the program at all, for people; None where it has it or can build it."""
    if isinstance(program, Elsewhere):
        return program.why
    if isinstance(program, Native):
        if isinstance(environment, BuildError):
            return f"a C++20 compiler: {environment.message}; {environment.todo}"
        return f"a BLAS: {HOW_TO_GET_ONE}" if program.library == "blas" and not find_blas() else None
    try:
        find_installed(program)
    except BuildError as problem:
        return f"{program.name}: {problem.message}; {problem.todo}"
    return None


def _prepare(
    point: Point, environment: Environment | BuildError, machine_key: str, listener: Listener
) -> Ready | Refused:
    program = point.benchmark.program
    if isinstance(program, Elsewhere):
        refusal = point.refusal or Outcome.unsupported("program", program.why)
        return Refused(point, _experiment(point, "", "", machine_key), refusal)
    if isinstance(program, External):
        return _prepare_installed(point, program, machine_key)
    if isinstance(environment, BuildError):
        return _refused(point, "", "", machine_key, environment)
    source = program.source
    key = ""
    try:
        key = program_key(environment, source)
        if point.refusal is not None:
            return Refused(point, _experiment(point, environment.key, key, machine_key), point.refusal)
        built = build(environment, source, lambda: listener.building(point))
        if program.library is not None:
            point, built, key = _with_library(point, program, built)
    except BuildError as problem:
        return _refused(point, environment.key, key, machine_key, problem)
    return Ready(point, _experiment(point, environment.key, key, machine_key), built)


def _with_library(point: Point, program: Native, built: Built) -> tuple[Point, Built, str]:
    """The point with the library that its program will load, that build with all that it then has loaded, and the key
    of both: another version of the library, or another kernel forced on it, is another experiment.

    Raises NoBlasError where no library that may be taken can be loaded.
    """
    refused: list[str] = []
    for blas in choose_blas(str(point.parameters["blas"])):
        try:
            hello = introduce_with(built.path, blas.path)
        except BuildError as problem:
            refused.append(f"{blas.path}: {problem.message}")
            continue
        loading = replace(program, arguments=partial(_arguments_with, program, blas.arguments()))
        chosen = replace(
            point,
            benchmark=replace(point.benchmark, program=loading),
            parameters={**point.parameters, "blas": blas.name},
        )
        identity = {
            "build": built.key,
            "libraries": {name: build_id or _digest(hello.lib_paths[name]) for name, build_id in hello.libs.items()},
            "variables": {name: os.environ[name] for name in program.variables if name in os.environ},
        }
        return chosen, replace(built, hello=hello), content_key(identity)
    raise NoBlasError(f"no BLAS can be loaded ({'; '.join(refused)})", HOW_TO_GET_ONE)


def _arguments_with(program: Native, more: Sequence[str], params: Params) -> list[str]:
    return [*program.arguments(params), *more]


def _digest(path: str) -> str:
    """The hash of a library whose linker wrote no build id."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


def _prepare_installed(point: Point, program: External, machine_key: str) -> Ready | Refused:
    try:
        found = find_installed(program)
    except BuildError as problem:
        return _refused(point, "", "", machine_key, problem)
    experiment = _experiment(point, found.key, found.key, machine_key)
    return Ready(point, experiment, found) if point.refusal is None else Refused(point, experiment, point.refusal)


def _refused(point: Point, environment: str, program: str, machine: str, problem: BuildError) -> Refused:
    """A point whose own refusal comes first: what this machine can never run needs no compiler."""
    if isinstance(problem, NoCompilerError):
        outcome = Outcome.unsupported("compiler", str(problem))
    elif isinstance(problem, NoBlasError):
        outcome = Outcome.unsupported("blas", str(problem))
    elif isinstance(problem, NotInstalledError):
        outcome = Outcome.unsupported("program", str(problem))
    else:
        outcome = Outcome.failed(Stage.BUILD, str(problem), problem.output)
    return Refused(point, _experiment(point, environment, program, machine), point.refusal or outcome)


def _experiment(point: Point, environment: str, program: str, machine: str) -> Experiment:
    return Experiment(point.benchmark.name, point.parameters, environment, program, machine)
