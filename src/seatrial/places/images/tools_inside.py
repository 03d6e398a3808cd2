"""The compilers and MPI libraries of an image, used inside of it: programs are built there for what they will use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from seatrial.environments.asking import Reply, ask
from seatrial.environments.build import NATIVE_HEADERS, Environment
from seatrial.environments.compiler import Compiler, examined, macros_in, resolve_target
from seatrial.environments.mpi_identity import of_macros
from seatrial.environments.mpi_library import WrapperWords, parse_answer
from seatrial.errors import BuildError
from seatrial.model.environment.choice import EnvironmentChoice
from seatrial.model.environment.container import BROUGHT, INSIDE
from seatrial.model.environment.mpi import Mpi, MpiFamily
from seatrial.places.contained import Contained, started
from seatrial.places.containers.faults import last_words, not_started
from seatrial.places.containers.image import ContainerError

_COMPILERS = ("g++", "c++", "clang++", *(f"g++-{n}" for n in range(16, 10, -1)))
_WRAPPERS = {
    MpiFamily.OPENMPI: ("mpicxx.openmpi", "mpicxx"),
    MpiFamily.MPICH: ("mpicxx.mpich", "mpicxx"),
    MpiFamily.INTEL: ("mpiicpx", "mpicxx"),
    MpiFamily.CRAY: ("CC",),
}
_ANY_WRAPPER = ("mpicxx", "mpicxx.openmpi", "mpicxx.mpich", "mpiicpx", "CC")
_ASK_LIMIT_S = 60.0
_PACKAGE = NATIVE_HEADERS.parent

_INSTEAD = f"install a compiler in the image (Debian: g++), or set environment.container_build={BROUGHT}"


class ImageTools:
    """Starts the tools of an image in a container of it."""

    def __init__(self, container: Contained) -> None:
        self._container = container.bare

    def start(self, words: Sequence[str], folders: Sequence[Path]) -> tuple[Sequence[str], Mapping[str, str] | None]:
        """The command for a tool that uses these folders of the host and our sources (see `build`)."""
        start = started(None, None, self._container, (), {}, [*folders, _PACKAGE])
        # The assembler's search path is a part of a word.
        mapped = [",".join(start.words(word.split(","))) if word.startswith("-Wa,") else word for word in words]
        return [*start.before, *start.words(mapped)], start.variables

    def environment(
        self, choice: EnvironmentChoice, isa: Iterable[str], outside: Environment | BuildError, *, with_mpi: bool
    ) -> Environment:
        """The environment of programs that are built in the image for this CPU. `outside` is that of the host, whose
        launcher may start the ranks. Raises ContainerError if the image has no compiler or not the chosen MPI."""
        compiler = self._compiler(choice.compiler)
        try:
            target = resolve_target(compiler, isa, self._ask)
        except BuildError as error:
            raise ContainerError(
                f"the compiler of {self._image}: {error.message}", "install a newer one in the image"
            ) from error
        of_host = outside if isinstance(outside, Environment) else None
        mpi = self._mpi(choice.mpi, compiler, of_host.mpi if of_host is not None else None) if with_mpi else None
        settings = choice.mpi_settings if mpi is not None else ()
        if settings and (of_host is None or of_host.mpi is None):
            raise ContainerError(
                f"the settings of an MPI library are looked up on the host, which has no {mpi and mpi.family}",
                "set the variables of the library instead, such as environment.OMPI_MCA_...",
            )
        chosen = of_host.variables if settings and of_host is not None else choice.variables
        by_settings = of_host.by_settings if settings and of_host is not None else ()
        return Environment(
            compiler, target, self._libc(compiler), choice.flags, tuple(chosen), mpi, settings, by_settings
        )

    @property
    def _image(self) -> str:
        return self._container.image.given

    def _ask(self, words: Sequence[str], text: str = "") -> Reply:
        command, variables = self.start(words, [])
        return ask(command, variables, _ASK_LIMIT_S, text=text)

    def _answer(self, words: Sequence[str], text: str = "") -> str:
        return self._ask(words, text).stdout

    def _compiler(self, name: str | None) -> Compiler:
        """The compiler of this name in the image, or the first one."""
        digest = self._container.image.digest or self._image
        problem: BuildError | None = None
        for command in _COMPILERS if name is None else (name,):
            found = examined((command,), self._answer)
            if isinstance(found, Compiler):
                return replace(found, image=digest)
            problem = problem or found
        what = f"{self._image} has no C++20 compiler" if name is None else f"{self._image} has no {name}"
        why = "" if problem is None else last_words(problem.output or problem.message)
        raise ContainerError(f"{what} (environment.container_build={INSIDE}): {why}", _INSTEAD)

    def _libc(self, compiler: Compiler) -> str:
        """The C library of the image, such as "glibc 2.31"."""
        words = [*compiler.command, "-include", "features.h", "-dM", "-E", "-x", "c++", "-"]
        try:
            macros = macros_in(self._answer(words))
        except BuildError:
            return "unknown"
        return (
            f"glibc {macros['__GLIBC__']}.{macros.get('__GLIBC_MINOR__', '')}" if "__GLIBC__" in macros else "unknown"
        )

    def _mpi(self, name: str | None, compiler: Compiler, of_host: Mpi | None) -> Mpi:
        """The library of a family in the image, or the first one, with the launcher of the host if it belongs to the
        same family."""
        family = of_host.family if of_host is not None and name is not None else _family(name)
        for wrapper in _ANY_WRAPPER if family is None else _WRAPPERS.get(family, ("mpicxx",)):
            try:
                words = parse_answer(self._answer([wrapper, "-show"]))
            except BuildError:
                continue
            includes = tuple(f"-I{folder}" for folder in words.includes)
            question = [*compiler.command, *includes, "-include", "mpi.h", "-dM", "-E", "-x", "c++", "-"]
            try:
                found = of_macros(self._answer(question))
            except BuildError as error:
                raise not_started(f"the mpi.h of {self._image} does not compile", error.output) from error
            if found is not None and words.libraries and family in (None, found.family):
                launcher = of_host.launcher if of_host is not None and of_host.family is found.family else None
                return _described(found.family, found.version, words, includes, launcher)
        raise ContainerError(
            f"{self._image} has no MPI library{f' of {name}' if name else ''} to build with: looked for "
            f"{', '.join(_ANY_WRAPPER)}",
            "install it with its headers in the image (Debian: libopenmpi-dev openmpi-bin or libmpich-dev mpich), or "
            "bring the host's: environment.container_mpi=bind",
        )


def _family(name: str | None) -> MpiFamily | None:
    """The family that a name begins with; None without a name. Raises ContainerError for a path."""
    if name is None:
        return None
    for family in MpiFamily:
        if name == family.value or name.startswith(f"{family.value}-"):
            return family
    raise ContainerError(
        f"environment.mpi={name} does not name a library of the image",
        f"it takes {', '.join(family.value for family in MpiFamily)}",
    )


def _described(
    family: MpiFamily, version: str, words: WrapperWords, includes: tuple[str, ...], launcher: Path | None
) -> Mpi:
    """A library of an image: as its wrapper names it. Which file is loaded is in the record of each run."""
    flags = [f"-L{folder}" for folder in words.folders]
    for folder in words.run_folders:
        flags += ["-Xlinker", "-rpath", "-Xlinker", str(folder)]
    library = Path(next(iter(words.folders), Path("lib")), f"lib{words.libraries[0].removeprefix('-l')}.so")
    return Mpi(
        family.value, family, version, library, "", includes, (*flags, *words.libraries), launcher, found="the image"
    )
