"""From points to experiments that can run: the environment is found, the programs are built, all before any repeat."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from stat import S_ISREG
from typing import Any

from seatrial.engine.devices import with_devices
from seatrial.engine.environments import Environments, absent_environment
from seatrial.engine.events import Listener
from seatrial.engine.rank_helpers import rank_helpers
from seatrial.environments.blas import HOW_TO_GET_ONE, NoBlasError, choose_blas, find_blas
from seatrial.environments.build import Built, Environment, build, introduce_with, program_key
from seatrial.environments.gpu import Gpus, NoGpuError, find_gpus, lacking_gpu
from seatrial.environments.installed import Installed, NotInstalledError, find_installed
from seatrial.environments.loader import libraries_of
from seatrial.environments.mpi import NoMpiError, lacking_mpi, mpi_of
from seatrial.environments.mpi_settings import NoSettingError, setting_variables
from seatrial.environments.variables import variables_with
from seatrial.errors import BuildError, NoCompilerError
from seatrial.model.benchmark import Benchmark, External, ImportedOnly, Native
from seatrial.model.environment_choice import EnvironmentChoice
from seatrial.model.experiment import Experiment, content_key
from seatrial.model.layout import RANKS
from seatrial.model.mpi import Mpi
from seatrial.model.outcome import Outcome, Stage
from seatrial.model.parameter import Params, Value, whole
from seatrial.model.protocol import Hello
from seatrial.plan.points import Point
from seatrial.profiler.capture.run import profiler


@dataclass(frozen=True, slots=True)
class Ready:
    """A point as an experiment that can run. `environment` describes what its environment key stands for.

    `mpi` starts its ranks; None where it is one process. `variables` are set (None: unset) where it runs.
    """

    point: Point
    experiment: Experiment
    built: Built | Installed
    environment: Mapping[str, Any] = field(default_factory=dict)
    mpi: Mpi | None = None
    variables: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """A point that cannot run here, and why. `environment` is None where none was reached."""

    point: Point
    experiment: Experiment
    outcome: Outcome
    environment: Mapping[str, Any] | None = None


def prepare(
    points: Sequence[Point], environments: Environments, machine_key: str, listener: Listener
) -> tuple[Ready | Refused, ...]:
    """Build every program once, in the order of the points; what cannot be built is refused with its reason."""
    return tuple(
        {item.experiment.id: item for item in prepared_points(points, environments, machine_key, listener)}.values()
    )


def prepared_points(
    points: Sequence[Point], environments: Environments, machine_key: str, listener: Listener, *, builds: bool = True
) -> list[Ready | Refused]:
    """The same, one for each point: two points may come out as one experiment (`auto` and what it stands for).

    Without `builds` only those programs are built that tell what identifies their experiments: none can be run.
    """
    session = _Session(environments, machine_key, listener, builds)
    return [session.prepare(point) for point in points]


def lacking(benchmark: Benchmark, environment: Environment | BuildError) -> str | None:
    """What this machine lacks to have a benchmark's program, for people; None where it has it or can build it."""
    program = benchmark.program
    if isinstance(program, ImportedOnly):
        return program.why
    if isinstance(program, Native):
        if isinstance(environment, BuildError):
            return f"a C++20 compiler: {environment.message}; {environment.todo}"
        if benchmark.ranks == "mpi" and (need := lacking_mpi()) is not None:
            return f"an MPI: {need}"
        if program.library == "gpu" and (need := lacking_gpu()) is not None:
            return f"a device: {need}"
        return f"a BLAS: {HOW_TO_GET_ONE}" if program.library == "blas" and not find_blas() else None
    try:
        found_program(program)
    except BuildError as problem:
        return f"{program.name}: {problem.message}; {problem.todo}"
    return None


def found_program(program: External) -> tuple[External, Installed]:
    """The first of a program and its alternatives that is installed. Raises NotInstalledError for the first one where
    none is, BuildError where one cannot be used."""
    try:
        return program, find_installed(program)
    except NotInstalledError:
        for candidate in program.alternatives:
            with suppress(NotInstalledError):
                return candidate, find_installed(candidate)
        raise


@dataclass(slots=True)
class _Session:
    """One preparation of many points: what they share is built, hashed and asked once."""

    environments: Environments
    machine_key: str
    listener: Listener
    builds: bool = True
    """Whether programs are built that need not be to know their experiments."""
    built: dict[tuple[str, Path], Built | BuildError] = field(default_factory=dict)
    documents: dict[Environment, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    installed: dict[str, tuple[External, Installed] | BuildError] = field(default_factory=dict)
    loaded: dict[tuple[str, EnvironmentChoice, Value], _Loaded | BuildError] = field(default_factory=dict)
    gpus: dict[str, Gpus] = field(default_factory=dict)
    started: dict[tuple[str, EnvironmentChoice], Mapping[str, str]] = field(default_factory=dict)

    def prepare(self, point: Point) -> Ready | Refused:
        """The experiment of a point, with its program built."""
        program = point.benchmark.program
        if isinstance(program, ImportedOnly):
            refusal = point.refusal or Outcome.unsupported("program", program.why)
            return Refused(point, _experiment(point, "", "", self.machine_key), refusal)
        if isinstance(program, External):
            return self._installed(point, program)
        environment = self.environments.of(point.environment, with_mpi=point.benchmark.ranks == "mpi")
        if isinstance(environment, BuildError):
            return _refused(point, absent_environment(point.environment), "", self.machine_key, environment)
        described = self._described(environment)
        key = ""
        try:
            key = program_key(environment, program.source)
            if point.refusal is not None:
                return Refused(
                    point, _experiment(point, described[0], key, self.machine_key), *(point.refusal, described[1])
                )
            if not self.builds and program.library is None:
                built = Built(Path(), key, (), Hello(point.benchmark.name, key, ""), 0.0, from_cache=False)
            else:
                built = self._build(environment, program.source, key, point)
            point, built, key = self._identified(point, program, built)
            self._helpers(point, environment.mpi)
        except BuildError as problem:
            return _refused(point, described, key, self.machine_key, problem)
        experiment = _experiment(point, described[0], key, self.machine_key)
        return Ready(point, experiment, built, described[1], environment.mpi, _changes(environment))

    def _described(self, environment: Environment) -> tuple[str, Mapping[str, Any]]:
        if environment not in self.documents:
            self.documents[environment] = (environment.key, environment.document())
        return self.documents[environment]

    def _build(self, environment: Environment, source: Path, key: str, point: Point) -> Built:
        if (key, source) not in self.built:
            try:
                self.built[key, source] = build(environment, source, lambda: self.listener.building(point))
            except BuildError as problem:
                self.built[key, source] = problem
        found = self.built[key, source]
        if isinstance(found, BuildError):
            raise found
        return found

    def _identified(self, point: Point, program: Native, built: Built) -> tuple[Point, Built, str]:
        """The point, its build, and the key of all that decides what runs: the build, the programs that it starts, the
        library that it loads, and the variables that bend these."""
        variables = variables_with(point.environment.variables)
        identity: dict[str, Any] = {"build": built.key}
        if program.library == "gpu":
            point, identity["devices"] = with_devices(point, self._gpus(built, variables))
        if program.library == "blas":
            loaded = self._library(point, program, built, variables)
            loading = replace(program, arguments=partial(_arguments_with, program, loaded.arguments))
            point = replace(
                point,
                benchmark=replace(point.benchmark, program=loading),
                parameters={**point.parameters, "blas": loaded.name},
            )
            built, identity["libraries"] = replace(built, hello=loaded.hello), loaded.identity
        if program.commands is not None:
            for name in program.commands(point.parameters):
                key = (name, point.environment)
                if key not in self.started:
                    self.started[key] = _started(name, variables)
                identity.setdefault("programs", {})[name] = self.started[key]
        if program.inputs is not None and (files := _files_among(program.inputs(point.parameters))):
            identity["files"] = files
        if is_profiled(point):
            identity["probes"] = ["mpi"]
        if len(identity) == 1:
            return point, built, built.key
        identity["variables"] = {name: variables[name] for name in program.variables if name in variables}
        return point, built, content_key(identity)

    def _helpers(self, point: Point, mpi: Mpi | None) -> None:
        """Build the helper programs of ranks, and what is loaded beside them. Raises BuildError."""
        if mpi is not None and self.builds:
            rank_helpers()
        if is_profiled(point) and self.builds:
            profiler()

    def _gpus(self, built: Built, variables: Mapping[str, str]) -> Gpus:
        """The devices that a program finds. Raises BuildError. Programs find the same; each environment may show
        others (CUDA_VISIBLE_DEVICES)."""
        key = content_key({"variables": dict(variables)})
        if key not in self.gpus:
            self.gpus[key] = find_gpus(built.path, variables)
        return self.gpus[key]

    def _library(self, point: Point, program: Native, built: Built, variables: Mapping[str, str]) -> _Loaded:
        key = (built.key, point.environment, point.parameters["blas"])
        if key not in self.loaded:
            try:
                self.loaded[key] = _with_library(str(point.parameters["blas"]), built, variables)
            except BuildError as problem:
                self.loaded[key] = problem
        found = self.loaded[key]
        if isinstance(found, BuildError):
            raise found
        return found

    def _installed(self, point: Point, program: External) -> Ready | Refused:
        if program.name not in self.installed:
            try:
                self.installed[program.name] = found_program(program)
            except BuildError as problem:
                self.installed[program.name] = problem
        answer = self.installed[program.name]
        if isinstance(answer, BuildError):
            return _refused(point, ("", None), "", self.machine_key, answer)
        chosen, found = answer
        variables = variables_with(point.environment.variables)
        mpi = mpi_of(found.path, variables) if point.benchmark.ranks == "mpi" else None
        document: dict[str, Any] = dict(found.document())
        identity: dict[str, Any] = {"program": found.key}
        try:
            self._helpers(point, mpi)
            by_settings = setting_variables(mpi, point.environment.mpi_settings) if mpi is not None else ()
        except BuildError as problem:
            return _refused(point, (found.key, document), found.key, self.machine_key, problem)
        if mpi is not None and point.environment.mpi_settings:
            document["settings"] = identity["settings"] = dict(point.environment.mpi_settings)
        if chosen_variables := (*by_settings, *point.environment.variables):
            document["variables"] = identity["variables"] = dict(chosen_variables)
        if mpi is not None:
            document["mpi"] = identity["mpi"] = mpi.document()
        if is_profiled(point):
            identity["probes"] = ["mpi"]
        changed = chosen.variables(point.parameters)
        if deviating := {
            name: variables[name] for name in chosen.sensitive_to if name in variables and name not in changed
        }:
            identity["bent_by"] = deviating
        key = content_key(identity) if len(identity) > 1 else found.key
        experiment = _experiment(point, key, found.key, self.machine_key)
        if point.refusal is not None:
            return Refused(point, experiment, point.refusal, document)
        if point.benchmark.ranks == "mpi" and (refusal := _not_of_this_mpi(point, found, mpi)) is not None:
            return Refused(point, experiment, refusal, document)
        point = replace(point, benchmark=replace(point.benchmark, program=chosen))
        changes = (
            *(mpi.variables if mpi is not None else ()),
            *by_settings,
            *changed.items(),
            *point.environment.variables,
        )
        return Ready(point, experiment, found, document, mpi, changes)


def is_profiled(point: Point) -> bool:
    """Whether a library of ours is loaded beside the program: what it measures so is another experiment."""
    return "mpi" in point.probes and point.benchmark.may_use_mpi


def _changes(environment: Environment) -> tuple[tuple[str, str | None], ...]:
    """The variables that are set where programs of an environment run: a study's own have the last word."""
    return (*(environment.mpi.variables if environment.mpi is not None else ()), *environment.variables)


def _not_of_this_mpi(point: Point, found: Installed, mpi: Mpi | None) -> Outcome | None:
    """Why an installed program cannot be started with these ranks, by the library that was chosen; None: it can."""
    wanted = point.environment.mpi
    if mpi is None and (whole(point.parameters[RANKS]) > 1 or wanted is not None):
        return Outcome.unsupported("mpi", f"{found.path} is not linked with an MPI library that is known here")
    if mpi is not None and wanted not in (None, mpi.name):
        return Outcome.unsupported("mpi", f"{found.path} is linked with {mpi.name}, not with {wanted}")
    return None


def _started(command: str, variables: Mapping[str, str]) -> dict[str, str]:
    """Name -> hash of the file behind a command ("") and of each library that the loader finds for it: the same program
    with another library is another experiment. Raises NotInstalledError where there is none that can be run."""
    found = shutil.which(command, path=variables.get("PATH"))
    if found is None:
        raise NotInstalledError(
            f"{command} cannot be run: there is no such program", "give its path, or put it on PATH"
        )
    libraries = libraries_of(Path(found), variables)
    return {"": _digest(found), **{name: _digest(path) for name, path in libraries.items()}}


_LARGEST_HASHED_B = 64 << 20


def _files_among(words: Sequence[str]) -> dict[str, str]:
    """Word -> what tells the content of the file that it names, of those that name one: a hash, or for large files,
    which would take long to read for each plan, size and time of the last change."""
    found: dict[str, str] = {}
    for word in words:
        try:
            stat = Path(word).stat()
        except (OSError, ValueError):
            continue
        if S_ISREG(stat.st_mode):
            is_large = stat.st_size > _LARGEST_HASHED_B
            found[word] = f"{stat.st_size} B of {stat.st_mtime_ns}" if is_large else _digest(word)
    return found


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A library that a program will load: its name as a parameter has it, the program's arguments for it, what the
    program then says of itself, and what tells all that is loaded from other versions."""

    name: str
    arguments: tuple[str, ...]
    hello: Hello
    identity: Mapping[str, str]


def _with_library(wanted: str, built: Built, variables: Mapping[str, str]) -> _Loaded:
    """The library that the program will load: another version of it, or another kernel forced on it, is another
    experiment. Raises NoBlasError where no library that may be taken can be loaded."""
    refused: list[str] = []
    for blas in choose_blas(wanted):
        try:
            hello = introduce_with(built.path, blas.path, variables)
        except BuildError as problem:
            refused.append(f"{blas.path}: {problem.message}")
            continue
        libraries = {name: build_id or _digest(hello.lib_paths[name]) for name, build_id in hello.libs.items()}
        return _Loaded(blas.name, tuple(blas.arguments()), hello, libraries)
    raise NoBlasError(f"no BLAS can be loaded ({'; '.join(refused)})", HOW_TO_GET_ONE)


def _arguments_with(program: Native, more: Sequence[str], params: Params) -> list[str]:
    return [*program.arguments(params), *more]


def _digest(path: str) -> str:
    """The hash of a file, "" where it cannot be read; a library's linker may have written no build id."""
    try:
        stat = Path(path).stat()
        return _hashed(path, stat.st_size, stat.st_mtime_ns)
    except OSError:
        return ""


@cache
def _hashed(path: str, size: int, mtime_ns: int) -> str:
    """The hash of a file as it was at that time."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _refused(
    point: Point, environment: tuple[str, Mapping[str, Any] | None], program: str, machine: str, problem: BuildError
) -> Refused:
    """A point whose own refusal comes first: what this machine can never run needs no compiler."""
    if isinstance(problem, NoCompilerError):
        outcome = Outcome.unsupported("compiler", str(problem))
    elif isinstance(problem, NoMpiError):
        outcome = Outcome.unsupported("mpi", str(problem))
    elif isinstance(problem, NoSettingError):
        outcome = Outcome.unsupported("setting", str(problem))
    elif isinstance(problem, NoBlasError):
        outcome = Outcome.unsupported("blas", str(problem))
    elif isinstance(problem, NoGpuError):
        outcome = Outcome.unsupported(problem.need, problem.message)
    elif isinstance(problem, NotInstalledError):
        outcome = Outcome.unsupported("program", str(problem))
    else:
        outcome = Outcome.failed(Stage.BUILD, str(problem), problem.output)
    key, document = environment
    return Refused(point, _experiment(point, key, program, machine), point.refusal or outcome, document)


def _experiment(point: Point, environment: str, program: str, machine: str) -> Experiment:
    return Experiment(point.benchmark.name, point.parameters, environment, program, machine)
