"""Libraries of Python: a script of ours runs them, in the first interpreter that has them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.engine.kinds.external import ExternalKind, ExternalProgram
from seatrial.engine.ready import Ready, Refused
from seatrial.environments.build import Environment
from seatrial.environments.cached_files import private_tree
from seatrial.environments.compiler import variables_with
from seatrial.environments.installed import Installed, find_interpreter
from seatrial.environments.loaded_libraries import files_among
from seatrial.environments.mpi import choose_mpi, lacking_mpi
from seatrial.errors import BuildError
from seatrial.model.benchmark.benchmark import External
from seatrial.model.benchmark.parameter import whole
from seatrial.model.benchmark.python_script import PythonScript
from seatrial.model.environment.container import OUTSIDE
from seatrial.model.environment.mpi import Mpi
from seatrial.model.results.sample import Outcome
from seatrial.places.contained import Contained, container_choice
from seatrial.places.containers.image import ContainerError
from seatrial.places.containers.runtime import Mount
from seatrial.places.images.programs_inside import ProgramInside, find_interpreter_in_image, for_program
from seatrial.plan.points import Point


@dataclass(frozen=True, slots=True)
class ScriptProgram(ExternalProgram):
    """A script with the interpreter that runs it. A container gets copies of the files of the script."""

    def arguments(self, ready: Ready, directory: Path) -> list[str]:
        """Those of its declaration, and the CPUs of its processes if it places them."""
        words = self._reached(super(ScriptProgram, self).arguments(ready, directory))
        return [*words, ",".join(map(str, ready.point.cpus))] if _of(self.declared).takes_cpus else words

    def _preparing(self, words: Sequence[str]) -> list[str]:
        return super(ScriptProgram, self)._preparing(self._reached(words))

    def _reached(self, words: Sequence[str]) -> list[str]:
        if not self.is_of_image:
            return list(words)
        copies = _copied(self.declared)
        return [copies.mapped(word) for word in words]


@dataclass(slots=True)
class PythonScriptKind(ExternalKind):
    """The interpreter is found by what it can import."""

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
        if point.environment.container is not None:
            installed = self._in_image(point, program).installed
            _copied(program)
        else:
            installed = find_interpreter(_of(program).module, program.install, point.environment.python, program.name)
        described: dict[str, Any] = {}
        if point.refusal is None:
            words = [*program.arguments(point.parameters, Path()), *map(str, _of(program).parts)]
            described["files"] = {Path(word).name: content for word, content in files_among(words).items()}
        return program, installed, described

    def _in_image(self, point: Point, program: External) -> ProgramInside:
        choice = point.environment
        key = (program.name, container_choice(choice), choice.python, choice.variables)
        container = self._containers.alone(point)
        return self._in_images.get(
            key, lambda: find_interpreter_in_image(container, _of(program), choice.python, choice.variables)
        )

    def _placed_in_image(self, point: Point, program: External) -> tuple[Mpi | None, Contained]:
        """On several nodes, a launcher outside starts a container on each, whose processes find each other."""
        container = for_program(self._containers.alone(point))
        if point.benchmark.ranks != "mpi" or _launched(point) == 1:
            return None, container
        if _of(program).variable_of_mpi:
            raise ContainerError(
                f"ranks of {program.name} in a container were never tried", "use one rank, or leave out the container"
            )
        if not container.runtime.ranks_outside:
            raise ContainerError(
                f"a launcher does not reach the processes of {container.runtime.title} on several nodes",
                "choose another environment.container_runtime",
            )
        wanted = point.environment.mpi
        mpi = choose_mpi(wanted, variables_with(point.environment.variables))
        placed = replace(container, placement=OUTSIDE)
        return mpi, replace(placed, facts={**placed.facts, **placed.document()})

    def _library_of(self, point: Point, found: Installed, variables: Mapping[str, str]) -> Mpi | None:
        """The chosen library or the first one, which the script loads; none for a single rank, unless it is asked
        for."""
        if _launched(point) == 1 and point.environment.mpi is None:
            return None
        with suppress(BuildError):
            return choose_mpi(point.environment.mpi, variables)
        return None

    def _refusal(self, point: Point, found: Installed, mpi: Mpi | None, variables: Mapping[str, str]) -> Outcome | None:
        if point.benchmark.ranks == "mpi" and mpi is None and _launched(point) > 1:
            return Outcome.unsupported("mpi", lacking_mpi() or "no MPI library was found")
        return None

    def _runnable(self, declared: External, found: Installed) -> ExternalProgram:
        return ScriptProgram(declared, found)


def _copied(program: External) -> Mount:
    """Where the files of a script are copied to, in a folder that containers get. Raises CacheError, BuildError."""
    parts = _of(program).parts
    top = Path(os.path.commonpath([part.parent for part in parts]))
    return Mount(top, private_tree(top, parts))


def _launched(point: Point) -> int:
    return whole(point.parameters[point.benchmark.program.launched])


def _of(program: External) -> PythonScript:
    if not isinstance(program, PythonScript):
        raise TypeError(f"{program.name} is not a script")
    return program
