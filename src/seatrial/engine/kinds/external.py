"""Real applications and tools: run as they are in the folder of the repeat, their output read by a pure function."""

from __future__ import annotations

import platform
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from seatrial.engine.kinds.kind import Kind, Preparation
from seatrial.engine.once import Once
from seatrial.engine.ranks import placed
from seatrial.engine.ready import NotPreparedError, Ready, Refused, Runnable
from seatrial.environments.build import Environment
from seatrial.environments.installed import Installed, NotInstalledError, find_installed
from seatrial.environments.mpi import mpi_of
from seatrial.environments.mpi_settings import setting_variables
from seatrial.environments.variables import variables_with
from seatrial.errors import BuildError
from seatrial.launch.local import run
from seatrial.model.benchmark import External, InputExchange
from seatrial.model.experiment import content_key
from seatrial.model.layout import RANKS
from seatrial.model.mpi import Mpi
from seatrial.model.outcome import Outcome
from seatrial.model.parameter import Params, whole
from seatrial.model.protocol import Hello, ProgramRecord
from seatrial.plan.points import Point

_LOOK_EVERY_S = 0.01


@dataclass(frozen=True, slots=True)
class ExternalProgram(Runnable):
    """An application as it was found here."""

    declared: External
    installed: Installed

    @property
    def path(self) -> Path:
        """Where it was found."""
        return self.installed.path

    @property
    def writes_record(self) -> bool:
        """It knows nothing of ours."""
        return False

    def prepare(self, ready: Ready, directory: Path, limit_s: float) -> None:
        """Write the files that it reads, and let it make further input, one process after another."""
        params = ready.point.parameters
        for name, content in self.declared.inputs(params).items():
            (directory / name).write_bytes(content)
        variables = variables_with(ready.variables)
        for arguments in self.declared.preparation(params):
            completed = run([str(self.path), *arguments], variables, directory, limit_s, runs_in=directory)
            if completed.timed_out or completed.returncode != 0:
                how = f"did not end within {limit_s:.0f} s" if completed.timed_out else completed.died_of
                raise NotPreparedError(f"{self.path.name} {' '.join(arguments)} {how}", completed.evidence)

    def arguments(self, ready: Ready, directory: Path) -> list[str]:
        """As its declaration has them."""
        return list(self.declared.arguments(ready.point.parameters, directory))

    def runs_in(self, directory: Path) -> Path:
        """The folder of the repeat, where its input is."""
        return directory

    @contextmanager
    def served(self, ready: Ready, directory: Path) -> Iterator[None]:
        """The files of `input_exchange` are put in place as soon as the application has come so far."""
        exchange = self.declared.input_exchange
        if exchange is None:
            yield
            return
        stop = threading.Event()
        watcher = threading.Thread(
            target=_exchange, args=(exchange, ready.point.parameters, directory, stop), daemon=True
        )
        watcher.start()
        try:
            yield
        finally:
            stop.set()
            watcher.join()

    def output(self, directory: Path) -> Path:
        """The file that it leaves; one that is not there where it left none, or more than one that match."""
        if "*" not in self.declared.output:
            return directory / self.declared.output
        found = sorted(directory.glob(self.declared.output))
        return found[0] if len(found) == 1 else directory / self.declared.output

    def read(self, data: bytes, ready: Ready, directory: Path) -> ProgramRecord:
        """What its parser finds, with where its ranks were as those report that placed them."""
        record = self.declared.parse(data)
        name, key, host = self.declared.name, self.installed.key, platform.node()
        if ready.mpi is None:
            return replace(record, hello=Hello(name, key, host, cpus=tuple((cpu,) for cpu in ready.point.cpus)))
        hello, started = placed(directory, name, key, host)
        return replace(record, hello=hello, notes={**record.notes, **started})


def _exchange(asked: InputExchange, params: Params, directory: Path, stop: threading.Event) -> None:
    """Look every 10 ms, and no more once it is done: nothing of ours runs while the application is measured."""
    contents = asked.inputs(params)
    while not stop.wait(_LOOK_EVERY_S):
        try:
            has_come_so_far = asked.after in (directory / asked.file).read_bytes()
        except OSError:
            continue
        if has_come_so_far:
            for name, content in contents.items():
                fresh = directory / f"{name}.later"
                fresh.write_bytes(content)
                fresh.replace(directory / name)
            return


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


class ExternalKind(Kind[External]):
    """Each application is looked for once."""

    def __init__(self, preparation: Preparation) -> None:
        super().__init__(preparation)
        self._found: Once[str, tuple[External, Installed]] = Once()

    @staticmethod
    def missing(program: External, environment: Environment | BuildError, *, has_ranks: bool) -> str | None:
        """The application, where it is not on PATH."""
        try:
            found_program(program)
        except BuildError as problem:
            return f"{program.name}: {problem.message}; {problem.todo}"
        return None

    def identify(self, point: Point, program: External) -> Ready | Refused:
        """By its file and version, the MPI library that it is linked with, and what changes how it runs."""
        try:
            chosen, found = self._found.get(program.name, lambda: found_program(program))
        except BuildError as problem:
            return self._preparation.refused(point, ("", None), "", problem)
        variables = variables_with(point.environment.variables)
        mpi = mpi_of(found.path, variables) if point.benchmark.ranks == "mpi" else None
        try:
            self._preparation.make_helpers(point, mpi)
            by_settings = setting_variables(mpi, point.environment.mpi_settings) if mpi is not None else ()
        except BuildError as problem:
            return self._preparation.refused(point, (found.key, found.document()), found.key, problem)
        described = _described(point, found, mpi, by_settings)
        changed = chosen.variables(point.parameters)
        key = _key(point, found, described, _deviating(chosen, variables, changed))
        document = {**found.document(), **described}
        if (refusal := point.refusal or _not_of_this_mpi(point, found, mpi)) is not None:
            return self._preparation.refused(point, (key, document), found.key, refusal)
        changes = (
            *(mpi.variables if mpi is not None else ()),
            *by_settings,
            *changed.items(),
            *point.environment.variables,
        )
        experiment = self._preparation.experiment(point, key, found.key)
        return Ready(point, experiment, ExternalProgram(chosen, found), document, mpi, changes)


def _described(
    point: Point, found: Installed, mpi: Mpi | None, by_settings: tuple[tuple[str, str], ...]
) -> dict[str, Any]:
    """What the environment of an application is besides its file, as its document says it."""
    described: dict[str, Any] = {}
    if mpi is not None and point.environment.mpi_settings:
        described["settings"] = dict(point.environment.mpi_settings)
    if variables := (*by_settings, *point.environment.variables):
        described["variables"] = dict(variables)
    if mpi is not None:
        described["mpi"] = mpi.document()
    return described


def _deviating(chosen: External, variables: Mapping[str, str], changed: Mapping[str, str | None]) -> dict[str, str]:
    """The variables that the user has set, that the application is sensitive to, and that we do not set ourselves."""
    return {name: variables[name] for name in chosen.sensitive_to if name in variables and name not in changed}


def _key(point: Point, found: Installed, described: Mapping[str, Any], deviating: Mapping[str, str]) -> str:
    """The key of the environment: the file, what is described of it, and what nobody chose but makes a difference."""
    identity = {"program": found.key, **described}
    if point.is_profiled:
        identity["probes"] = ["mpi"]
    if deviating:
        identity["bent_by"] = deviating
    return content_key(identity) if len(identity) > 1 else found.key


def _not_of_this_mpi(point: Point, found: Installed, mpi: Mpi | None) -> Outcome | None:
    """Why an installed program cannot be started with these ranks, by the library that was chosen; None: it can."""
    if point.benchmark.ranks != "mpi":
        return None
    wanted = point.environment.mpi
    if mpi is None and (whole(point.parameters[RANKS]) > 1 or wanted is not None):
        return Outcome.unsupported("mpi", f"{found.path} is not linked with an MPI library that is known here")
    if mpi is not None and wanted not in (None, mpi.name):
        return Outcome.unsupported("mpi", f"{found.path} is linked with {mpi.name}, not with {wanted}")
    return None
