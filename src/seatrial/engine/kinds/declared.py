"""Programs that users declare in files: what they need is built and copied, and their declaration reads their outputs.

One without ranks is started and timed by the program of the benchmark `command`, one with ranks by an MPI launcher.
"""

from __future__ import annotations

import platform
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from msgspec.structs import replace

from seatrial.benchmarks.declared import program_of, timed
from seatrial.benchmarks.declared_output import LARGEST_OUTPUT_B, Outputs, read_checks, read_figures
from seatrial.engine.kinds.external import ExternalKind, ExternalProgram
from seatrial.engine.kinds.native import NativeKind, NativeProgram
from seatrial.engine.ready import Ready, Refused
from seatrial.environments.build import Built, Environment
from seatrial.environments.compiler import variables_with
from seatrial.environments.installed import Installed, find_command
from seatrial.environments.loaded_libraries import Once, digest
from seatrial.environments.mpi import choose_mpi, lacking_mpi, mpi_of
from seatrial.errors import BuildError, ProtocolError
from seatrial.launch.local import run
from seatrial.launch.ranks import placed
from seatrial.model.benchmark.benchmark import External, Native
from seatrial.model.benchmark.declaration import WALL, Declaration, filled_in
from seatrial.model.benchmark.program import Hello, ProgramRecord
from seatrial.model.environment.mpi import Mpi
from seatrial.model.results.record import content_key
from seatrial.model.results.sample import Outcome, Sample
from seatrial.places.contained import Contained
from seatrial.plan.points import Point
from seatrial.processes.own_folder import temporary_folder

_BUILD_LIMIT_S = 3600.0


def _outputs(directory: Path) -> Outputs:
    """The outputs in the folder of a repeat; links are not followed out of it."""

    def read(file: str) -> bytes | None:
        path = directory / file
        try:
            if not path.resolve().is_relative_to(directory.resolve()) or not path.is_file():
                return None
            with path.open("rb") as stream:
                return stream.read(LARGEST_OUTPUT_B + 1)
        except OSError as error:
            raise ProtocolError(f"{file} cannot be read: {error.strerror or error}") from error

    return Outputs(read)


@contextmanager
def _with_files(
    program: DeclaredCommandProgram | DeclaredRanksProgram, ready: Ready, directory: Path, limit_s: float
) -> Iterator[None]:
    """Copy its files. Raises OSError."""
    for name in program.declaration.files:
        source, target = program.folder / name, directory / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copy2(source, target)
    yield


def _with_figures(record: ProgramRecord, declaration: Declaration, directory: Path) -> ProgramRecord:
    """The record with the samples and checks of the declaration. Raises ProtocolError."""
    outputs = _outputs(directory)
    checks = {**record.checks, **read_checks(declaration, outputs)}
    return replace(record, samples=(*record.samples, *read_figures(declaration, outputs)), checks=checks)


@dataclass(frozen=True, slots=True)
class DeclaredCommandProgram(NativeProgram):
    """The program of `command`, with a user's program."""

    runs_in_its_folder: ClassVar[bool] = True
    declaration: Declaration = field(kw_only=True)
    folder: Path = field(kw_only=True)

    prepared = _with_files

    def read(self, data: bytes, ready: Ready, directory: Path) -> ProgramRecord:
        """The record of `command`, and what the declaration finds in the outputs if the program succeeded."""
        record = super(DeclaredCommandProgram, self).read(data, ready, directory)
        if not record.ended or record.checks.get("exit_status") != self.declaration.exit_status:
            return record
        made = _with_figures(record, self.declaration, directory)
        wall_s = next((sample.elapsed_s for sample in record.samples), 0.0)
        return replace(made, samples=timed(made.samples, wall_s))


@dataclass(frozen=True, slots=True)
class DeclaredRanksProgram(ExternalProgram):
    """A user's program with MPI ranks."""

    declaration: Declaration = field(kw_only=True)
    folder: Path = field(kw_only=True)

    prepared = _with_files

    def read(self, data: bytes, ready: Ready, directory: Path) -> ProgramRecord:
        """What the declaration finds in the outputs; the record has not ended before it is timed."""
        record = _with_figures(ProgramRecord(), self.declaration, directory)
        name, key, host = self.declaration.full_name, self.installed.key, platform.node()
        if ready.mpi is None:
            return replace(record, hello=Hello(name, key, host, cpus=tuple((cpu,) for cpu in ready.point.cpus)))
        hello, started = placed(directory, name, key, host)
        return replace(record, hello=hello, notes=started)

    def timed(self, record: ProgramRecord, wall_s: float) -> ProgramRecord:
        """The time of the whole run, with its launcher."""
        samples = (Sample(WALL, 0, wall_s), *timed(record.samples, wall_s))
        return replace(record, samples=samples, ended=True)


def _build(declaration: Declaration, folder: Path, variables: Mapping[str, str]) -> None:
    """Run its build commands. Raises BuildError."""
    for words in declaration.build:
        with temporary_folder("build") as output:
            try:
                completed = run(words, variables, output, _BUILD_LIMIT_S, runs_in=folder)
            except OSError as error:
                raise BuildError(
                    f"{declaration.full_name}: the build command {words[0]} cannot be started: {error.strerror}",
                    "correct `build` in its declaration",
                ) from error
        if completed.timed_out or completed.returncode != 0:
            how = f"did not finish within {_BUILD_LIMIT_S:.0f} s" if completed.timed_out else completed.died_of
            raise BuildError(
                f"{declaration.full_name}: `{' '.join(words)}` {how}", "run it by hand", output=completed.evidence
            )


def _files_of(declaration: Declaration, folder: Path) -> dict[str, str]:
    """Name -> hash of its files. Raises BuildError for one that is missing."""
    found: dict[str, str] = {}
    for name in declaration.files:
        path = folder / name
        if not path.exists():
            raise BuildError(f"{declaration.full_name}: {path} is missing", "correct `files` in its declaration")
        inner = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        found |= {str(p.relative_to(folder)): digest(str(p)) for p in inner}
    return found


_Builds = Once[tuple[str, Path], None]
"""Each declaration is built once."""


def _identity(
    point: Point, declaration: Declaration, folder: Path, builds: _Builds | None
) -> tuple[dict[str, Any], Mapping[str, str]]:
    """What identifies its experiments besides the program, and the variables that it runs with. It is built if it may
    be. Raises BuildError."""
    variables = variables_with(point.environment.variables)
    if builds is not None:
        builds.get((declaration.name, folder), lambda: _build(declaration, folder, variables))
    own = {name: filled_in(text, point.parameters) for name, text in declaration.variables}
    return {"declaration": declaration.identity(), "files": _files_of(declaration, folder)}, own


@dataclass(slots=True)
class DeclaredCommandKind(NativeKind):
    """Declared programs without ranks."""

    _own_builds: _Builds = field(default_factory=Once)

    def identify(self, point: Point, program: Native) -> Ready | Refused:
        """As for `command`, with the declaration, its files and its variables."""
        declaration, folder = _of(program)
        try:
            _, own = _identity(point, declaration, folder, self._own_builds if self.builds else None)
        except BuildError as problem:
            return _described(self.refused(point, problem), declaration, {})
        return _described(super(DeclaredCommandKind, self).identify(point, program), declaration, own)

    def _identified(
        self, point: Point, program: Native, built: Built, container: Contained | None
    ) -> tuple[Point, NativeProgram, str]:
        declaration, folder = _of(program)
        more, _ = _identity(point, declaration, folder, None)
        point, runnable, key = super(DeclaredCommandKind, self)._identified(point, program, built, container)
        made = DeclaredCommandProgram(
            runnable.declared, runnable.built, runnable.library_arguments, declaration=declaration, folder=folder
        )
        return point, made, content_key({"command": key, **more})


def _of(program: Any) -> tuple[Declaration, Path]:
    """The declaration and the folder of a program of these kinds."""
    return program.declaration, program.folder


def _described(found: Ready | Refused, declaration: Declaration, own: Mapping[str, str]) -> Ready | Refused:
    """With the declaration in its environment, and its variables, which those of a study override."""
    document = {**(found.environment or {}), "declaration": declaration.stored()}
    experiment = replace(found.experiment, environment=content_key(document))
    if isinstance(found, Refused):
        return replace(found, experiment=experiment, environment=document)
    variables = (*own.items(), *found.variables)
    return replace(found, experiment=experiment, environment=document, variables=variables)


@dataclass(slots=True)
class DeclaredRanksKind(ExternalKind):
    """Declared programs with MPI ranks."""

    runs_in_images: ClassVar[bool] = False
    _own_builds: _Builds = field(default_factory=Once)

    @staticmethod
    def missing(program: External, environment: Environment | BuildError, *, has_ranks: bool) -> str | None:
        """An MPI library. Whether the program is there is known only with its parameters."""
        need = lacking_mpi()
        return None if need is None else f"an MPI: {need}"

    def installed_programs(self, point: Point, program: External) -> Iterator[Path]:
        """The program."""
        with suppress(BuildError):
            yield _installed(point, *_of(program)).path

    def identify(self, point: Point, program: External) -> Ready | Refused:
        """As for installed applications, with the declaration, its files and its variables."""
        declaration, _ = _of(program)
        return _described(super(DeclaredRanksKind, self).identify(point, program), declaration, {})

    def _found_for(self, point: Point, program: External) -> tuple[External, Installed, dict[str, Any]]:
        declaration, folder = _of(program)
        more, own = _identity(point, declaration, folder, self._own_builds if self.builds else None)
        return replace(program, variables=lambda params: own), _installed(point, declaration, folder), more

    def _library_of(self, point: Point, found: Installed, variables: Mapping[str, str]) -> Mpi | None:
        """The library that it is linked with; for others (scripts), the chosen or first one."""
        linked = mpi_of(found.path, variables)
        if linked is not None:
            return linked
        with suppress(BuildError):
            return choose_mpi(point.environment.mpi, variables)
        return None

    def _refusal(self, point: Point, found: Installed, mpi: Mpi | None, variables: Mapping[str, str]) -> Outcome | None:
        if mpi is None:
            return Outcome.unsupported("mpi", lacking_mpi() or "no MPI library was found")
        is_linked = mpi_of(found.path, variables) is not None
        return super(DeclaredRanksKind, self)._refusal(point, found, mpi, variables) if is_linked else None

    def _runnable(self, declared: External, found: Installed) -> ExternalProgram:
        declaration, folder = _of(declared)
        return DeclaredRanksProgram(declared, found, declaration=declaration, folder=folder)


def _installed(point: Point, declaration: Declaration, folder: Path) -> Installed:
    """The program by its path or on PATH. Raises NotInstalledError, BuildError."""
    name = program_of(declaration, folder, point.parameters)
    return find_command(name, f"correct `argv` in the declaration of {declaration.full_name}")
