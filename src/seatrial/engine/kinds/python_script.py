"""Libraries of Python: a script of ours runs them, in the first interpreter that has them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from msgspec.structs import replace

from seatrial.engine.kinds.external import ExternalKind, ExternalProgram
from seatrial.engine.ready import Ready, Refused
from seatrial.environments.build import Environment
from seatrial.environments.installed import Installed, find_interpreter
from seatrial.environments.loaded_libraries import files_among
from seatrial.environments.mpi import choose_mpi, lacking_mpi
from seatrial.errors import BuildError
from seatrial.model.benchmark.benchmark import External
from seatrial.model.benchmark.program import launched
from seatrial.model.benchmark.python_script import PythonScript
from seatrial.model.environment.mpi import Mpi
from seatrial.model.results.sample import Outcome
from seatrial.plan.points import Point


@dataclass(frozen=True, slots=True)
class ScriptProgram(ExternalProgram):
    """A script with the interpreter that runs it."""

    def arguments(self, ready: Ready, directory: Path) -> list[str]:
        """Those of its declaration, and the CPUs of its processes if it places them."""
        words = super(ScriptProgram, self).arguments(ready, directory)
        return [*words, ",".join(map(str, ready.point.cpus))] if _of(self.declared).takes_cpus else words


@dataclass(slots=True)
class PythonScriptKind(ExternalKind):
    """The interpreter is found by what it can import."""

    runs_in_images: ClassVar[bool] = False

    @staticmethod
    def missing(program: External, environment: Environment | BuildError, *, has_ranks: bool) -> str | None:
        """An interpreter with the library."""
        try:
            find_interpreter(_of(program).module, program.install, name=program.name)
        except BuildError as problem:
            return f"{program.name}: {problem.message}; {problem.todo}"
        return None

    def identify(self, point: Point, program: External) -> Ready | Refused:
        """By the interpreter, the version of the library, the script and the files that it reads."""
        found = super(PythonScriptKind, self).identify(point, program)
        variable = _of(program).variable_of_mpi
        if isinstance(found, Refused) or found.mpi is None or not variable:
            return found
        return replace(found, variables=(*found.variables, (variable, str(found.mpi.library))))

    def _found_for(self, point: Point, program: External) -> tuple[External, Installed, dict[str, Any]]:
        installed = find_interpreter(_of(program).module, program.install, point.environment.python, program.name)
        described: dict[str, Any] = {}
        if point.refusal is None:
            words = [*program.arguments(point.parameters, Path()), *map(str, _of(program).parts)]
            described["files"] = {Path(word).name: content for word, content in files_among(words).items()}
        return program, installed, described

    def _library_of(self, point: Point, found: Installed, variables: Mapping[str, str]) -> Mpi | None:
        """The chosen library or the first one, which the script loads; none for a single rank, unless it is asked
        for."""
        if launched(point.parameters) == 1 and point.environment.mpi is None:
            return None
        with suppress(BuildError):
            return choose_mpi(point.environment.mpi, variables)
        return None

    def _refusal(self, point: Point, found: Installed, mpi: Mpi | None, variables: Mapping[str, str]) -> Outcome | None:
        if point.benchmark.ranks == "mpi" and mpi is None and launched(point.parameters) > 1:
            return Outcome.unsupported("mpi", lacking_mpi() or "no MPI library was found")
        return None

    def _runnable(self, declared: External, found: Installed) -> ExternalProgram:
        return ScriptProgram(declared, found)


def _of(program: External) -> PythonScript:
    if not isinstance(program, PythonScript):
        raise TypeError(f"{program.name} is not a script")
    return program
