"""Installed applications and tools: run unmodified in the folder of the repeat; a pure function parses their output."""

from __future__ import annotations

import math
import platform
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from msgspec.structs import replace

from seatrial.engine.kinds.kind import ProgramKind
from seatrial.engine.ready import NotPreparedError, Ready, Refused, Runnable
from seatrial.environments.build import Environment
from seatrial.environments.cached_files import private_top
from seatrial.environments.chosen import absent_environment
from seatrial.environments.compiler import variables_with
from seatrial.environments.installed import Installed, NotInstalledError, NotLoadedError, find_installed
from seatrial.environments.loaded_libraries import Once
from seatrial.environments.mpi import choose_mpi, mpi_of
from seatrial.environments.mpi_settings import setting_variables
from seatrial.errors import BuildError, ProtocolError, UsageError
from seatrial.launch.local import run
from seatrial.launch.ranks import placed
from seatrial.model.benchmark.benchmark import External, InputExchange
from seatrial.model.benchmark.declaration import WALL
from seatrial.model.benchmark.parameter import Params, whole
from seatrial.model.benchmark.program import RANKS, UNREADABLE, Hello, ProgramRecord
from seatrial.model.environment.mpi import Mpi
from seatrial.model.results.record import content_key
from seatrial.model.results.sample import Outcome, Sample
from seatrial.places.contained import Contained, started
from seatrial.places.containers.fitted import Containers
from seatrial.places.images.programs_inside import ProgramInside, find_in_image, for_program
from seatrial.places.rank_helpers import inside_probe
from seatrial.plan.points import Point
from seatrial.plan.site_in_force import site_in_force

_LOOK_EVERY_S = 0.01
_MOST_FILES = 64
_LARGEST_FILE_B = 16 << 20


@dataclass(frozen=True, slots=True)
class ExternalProgram(Runnable):
    """An installed application."""

    writes_record: ClassVar[bool] = False
    runs_in_its_folder: ClassVar[bool] = True
    declared: External
    installed: Installed

    @property
    def path(self) -> Path:
        """The file of the application."""
        return self.installed.path

    @property
    def is_of_image(self) -> bool:
        """As it was found."""
        return bool(self.installed.image)

    @contextmanager
    def prepared(self, ready: Ready, directory: Path, limit_s: float) -> Iterator[None]:
        """Write its files, run its preparation commands in sequence, and replace the files of `input_exchange` when the
        application reaches their mark."""
        params = ready.point.parameters
        for name, content in self.declared.inputs(params).items():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_bytes(content)
        folders = [directory, *([private_top(inside_probe())] if self.is_of_image else [])]
        preparing = partial(started, None, None, ready.container, ready.variables, {}, folders, works_in=directory)
        for arguments in self.declared.preparation(params):
            start, command = preparing(), self._preparing(arguments)
            words = [*start.before, *start.words(command)]
            completed = run(words, start.variables, directory, limit_s, runs_in=directory)
            if completed.timed_out or completed.returncode != 0:
                with suppress(ProtocolError):
                    said = self.declared.parse(completed.evidence.encode())
                    if said.skip and said.need:
                        raise NotPreparedError(said.skip, completed.evidence, said.need)
                how = f"did not finish within {limit_s:.0f} s" if completed.timed_out else completed.died_of
                said_to = " ".join((Path(command[0]).name, *command[1:]))
                raise NotPreparedError(f"{said_to} {how}", completed.evidence)
        with ExitStack() as stack:
            if self.declared.input_exchange is not None:
                stop = threading.Event()
                exchange = (self.declared.input_exchange, params, directory, stop)
                watcher = threading.Thread(target=_exchange, args=exchange, daemon=True)
                watcher.start()
                stack.callback(watcher.join)
                stack.callback(stop.set)
            yield

    def _preparing(self, words: Sequence[str]) -> list[str]:
        """A command of the preparation: that of a companion, or of the program itself."""
        companion = self.installed.companions.get(words[0]) if words else None
        return [str(self.path), *words] if companion is None else [str(companion), *words[1:]]

    def arguments(self, ready: Ready, directory: Path) -> list[str]:
        """The arguments of its declaration."""
        return list(self.declared.arguments(ready.point.parameters, directory))

    def output(self, directory: Path) -> Path:
        """The file that it leaves; a nonexistent path if none, or more than one, matches."""
        if "*" not in self.declared.output:
            return directory / self.declared.output
        found = sorted(directory.glob(self.declared.output))
        return found[0] if len(found) == 1 else directory / self.declared.output

    def read(self, data: bytes, ready: Ready, directory: Path) -> ProgramRecord:
        """The parsed output, with the placement that the placing helpers reported."""
        record = self.declared.parse(data)
        if record.ended and record.skip is None:
            if self.declared.files:
                record = self.declared.complete(record, _contents(directory, self.declared.files))
            if self.declared.is_timed:  # it ends when its time is known
                record = replace(record, samples=(*record.samples, Sample(WALL, 0, math.nan)), ended=False)
        name, key, host = self.declared.name, self.installed.key, platform.node()
        if ready.mpi is None:
            cpus = ready.point.cpus  # a single rank has all of them
            of_all = (cpus,) if ready.point.benchmark.ranks == "mpi" else tuple((cpu,) for cpu in cpus)
            return replace(record, hello=Hello(name, key, host, cpus=of_all))
        hello, started = placed(directory, name, key, host)
        return replace(record, hello=hello, notes={**record.notes, **started})

    def timed(self, record: ProgramRecord, wall_s: float) -> ProgramRecord:
        """The same record, with the time of the whole run, launcher included, if the declaration wants it."""
        if not self.declared.is_timed or not any(sample.series == WALL for sample in record.samples):
            return record
        others = (sample for sample in record.samples if sample.series != WALL)
        return replace(record, samples=(*others, Sample(WALL, 0, wall_s)), ended=True)


def _contents(directory: Path, patterns: Sequence[str]) -> dict[str, bytes]:
    """The files of these patterns, by their paths in the folder. Raises ProtocolError for too many or too large ones,
    OSError."""
    contents: dict[str, bytes] = {}
    for path in sorted({path for pattern in patterns for path in directory.glob(pattern) if path.is_file()}):
        if len(contents) == _MOST_FILES or path.stat().st_size > _LARGEST_FILE_B:
            raise ProtocolError(
                f"more than {_MOST_FILES} files of {', '.join(patterns)}, or one above {_LARGEST_FILE_B} bytes"
            )
        contents[path.relative_to(directory).as_posix()] = path.read_bytes()
    return contents


def _exchange(asked: InputExchange, params: Params, directory: Path, stop: threading.Event) -> None:
    """Poll every 10 ms, and stop when done: nothing of ours may run while the application is measured."""
    contents = asked.inputs(params)
    while not stop.wait(_LOOK_EVERY_S):
        try:
            is_reached = asked.after in (directory / asked.file).read_bytes()
        except OSError:
            continue
        if is_reached:
            for name, content in contents.items():
                fresh = directory / f"{name}.later"
                fresh.write_bytes(content)
                fresh.replace(directory / name)
            return


def found_program(program: External) -> tuple[External, Installed]:
    """The first installed one of a program and its alternatives, before all those that the site file names. If none is
    installed, raises NotLoadedError for the first one that is in a module, else NotInstalledError for the first one;
    BuildError if one cannot be used."""
    of_site = {*site_in_force().programs, *site_in_force().modules}
    candidates = sorted((program, *program.alternatives), key=lambda candidate: candidate.name not in of_site)
    missing: list[NotInstalledError] = []
    for candidate in candidates:
        try:
            return candidate, find_installed(candidate)
        except NotInstalledError as error:
            missing.append(error)
    raise next((error for error in missing if isinstance(error, NotLoadedError)), missing[0])


@dataclass(slots=True)
class ExternalKind(ProgramKind[External]):
    """Each application is looked up once."""

    runs_in_images: ClassVar[bool] = True
    """Whether it can be an application of an image."""

    _found: Once[str, tuple[External, Installed]] = field(default_factory=Once)
    _containers: Containers = field(default_factory=Containers)
    _in_images: Once[Any, ProgramInside] = field(default_factory=Once)

    @staticmethod
    def missing(program: External, environment: Environment | BuildError, *, has_ranks: bool) -> str | None:
        """The application, if it is not on PATH."""
        try:
            found_program(program)
        except BuildError as problem:
            return f"{program.name}: {problem.message}; {problem.todo}"
        return None

    def installed_programs(self, point: Point, program: External) -> Iterator[Path]:
        """The application, unless it is in an image."""
        if point.environment.container is not None:
            return
        with suppress(BuildError):
            yield self._found.get(program.name, lambda: found_program(program))[1].path

    def identify(self, point: Point, program: External) -> Ready | Refused:
        """By its file and version, the MPI library that it is linked with, and settings that affect its run."""
        try:
            chosen, found, described = self._found_for(point, program)
        except BuildError as problem:
            return self.refused(point, problem, absent_environment(point.environment))
        variables = variables_with((*found.changes, *point.environment.variables))
        container: Contained | None = None
        try:
            if point.environment.container is None:
                mpi = self._library_of(point, found, variables) if point.benchmark.ranks == "mpi" else None
            else:
                mpi, container = self._placed_in_image(point, program)
                described |= {"container": container.document()}
            self.make_helpers(point, mpi)
            by_settings = setting_variables(mpi, point.environment.mpi_settings) if mpi is not None else ()
        except BuildError as problem:
            return self.refused(point, problem, (found.key, found.document()), found.key)
        if mpi is not None and point.environment.mpi_settings:
            described["settings"] = dict(point.environment.mpi_settings)
        if chosen_variables := (*by_settings, *point.environment.variables):
            described["variables"] = dict(chosen_variables)
        if mpi is not None:
            described["mpi"] = mpi.document()
        identity = {
            "program": found.key,
            **described,
            **({"probes": probes} if (probes := point.identifying_probes) else {}),
        }
        of_defaults = {name: value for name, value in chosen.defaults.items() if name not in variables}
        ours = {**of_defaults, **_set_by(chosen, point)}
        if deviating := {n: variables[n] for n in chosen.sensitive_to if n in variables and n not in ours}:
            identity["bent_by"] = deviating
        key = content_key(identity) if len(identity) > 1 else found.key
        document = {**found.document(), **described}
        if (refusal := self._refusal(point, found, mpi, variables)) is not None:
            wanted = {"mpi": point.environment.mpi}  # not the experiment of the library that it is linked with
            key = content_key({**identity, "wanted": wanted}) if wanted["mpi"] is not None else key
            return self.refused(point, refusal, (key, {**document, "wanted": wanted}), found.key)
        if point.refusal is None and (why := chosen.why_not(found.answer, point.parameters)):
            return self.refused(point, Outcome.skipped(why), (key, document), found.key)
        if point.refusal is not None:
            return self.refused(point, point.refusal, (key, document), found.key)
        of_mpi = mpi.variables if mpi is not None else ()
        changes = (*found.changes, *of_mpi, *by_settings, *ours.items(), *point.environment.variables)
        experiment = self.experiment(point, key, found.key)
        return Ready(point, experiment, self._runnable(chosen, found), document, mpi, changes, container)

    def _in_image(self, point: Point, program: External) -> ProgramInside:
        """The application of the image of a point. Raises BuildError."""
        choice = point.environment
        key = (program.name, choice.container, choice.container_runtime, choice.variables)
        container = self._containers.alone(point)
        return self._in_images.get(key, lambda: find_in_image(container, program, choice.variables))

    def _placed_in_image(self, point: Point, program: External) -> tuple[Mpi | None, Contained]:
        """The MPI library that starts the ranks of an application of an image, and its container. Raises BuildError."""
        found = self._in_image(point, program)
        if point.benchmark.ranks != "mpi" or found.family is None:
            return None, for_program(self._containers.alone(point))
        wanted = point.environment.mpi
        point = replace(point, environment=replace(point.environment, mpi=wanted or found.family.value))
        fitted = self._containers.of_ranks(point, self.environments, found.family)
        starter = fitted.environment.mpi
        return None if starter is None else found.mpi(starter, fitted.container), for_program(fitted.container)

    def _found_for(self, point: Point, program: External) -> tuple[External, Installed, dict[str, Any]]:
        """The declaration of the program that was found, the program, and what else identifies its experiments. Raises
        BuildError."""
        if point.environment.container is not None:
            found = self._in_image(point, program)
            return found.declared, found.installed, {}
        return *self._found.get(program.name, lambda: found_program(program)), {}

    def _library_of(self, point: Point, found: Installed, variables: Mapping[str, str]) -> Mpi | None:
        """The MPI library of a program; None if it has none that is known. A script that starts a program (NVIDIA's
        hpl.sh, a wrapper of the site) is linked with none: the one that the user names starts its ranks."""
        wanted = point.environment.mpi
        mpi = mpi_of(found.path, variables)
        if mpi is None and wanted is not None and _is_script(found.path):
            with suppress(BuildError, UsageError):
                return choose_mpi(wanted, variables)
        return mpi

    def _refusal(self, point: Point, found: Installed, mpi: Mpi | None, variables: Mapping[str, str]) -> Outcome | None:
        """Why the program cannot run at this point, with the chosen MPI library and ranks; None if it can."""
        if point.benchmark.ranks != "mpi" or (mpi is not None and point.environment.container is not None):
            return None
        wanted = point.environment.mpi
        if mpi is None and (whole(point.parameters[RANKS]) > 1 or wanted is not None):
            why = f"{found.path} is not linked with a known MPI library"
            todo = "; set environment.mpi to the one of the program that it starts" if _is_script(found.path) else ""
            return Outcome.unsupported("mpi", why + todo)
        if mpi is not None and wanted is not None and not _is_named(mpi, wanted, variables):
            linked = f"{found.path} is linked with {mpi.name} ({mpi.library}), not with {wanted}"
            return Outcome.unsupported("mpi", f"{linked}: an installed program cannot exchange its MPI library")
        return None

    def _runnable(self, declared: External, found: Installed) -> ExternalProgram:
        return ExternalProgram(declared, found)


def _is_script(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return stream.read(2) == b"#!"
    except OSError:
        return False


def _is_named(mpi: Mpi, name: str, variables: Mapping[str, str]) -> bool:
    """Whether `name` selects this library; it may be its family, version or path."""
    if name == mpi.name:
        return True
    try:
        return choose_mpi(name, variables).library == mpi.library
    except (BuildError, UsageError):
        return False


def _set_by(chosen: External, point: Point) -> Mapping[str, str | None]:
    """The variables that a program sets by its parameters. Those of a point that does not fit this machine may still be
    words (`threads: auto`)."""
    try:
        return chosen.variables(point.parameters)
    except UNREADABLE:
        if point.refusal is None:
            raise
        return {}
