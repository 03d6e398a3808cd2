"""Measuring programs that are compiled inside an image, by its compiler and against its libraries."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from seatrial.environments.asking import Started, ask, side_by_side
from seatrial.environments.build import BASE_FLAGS, NATIVE_HEADERS
from seatrial.environments.compiled import Unit, units_of
from seatrial.environments.compiler import Compiler, resolve_target
from seatrial.errors import BuildError, ImageError
from seatrial.model.environment.image import ImageProgram
from seatrial.model.frozen import Frozen
from seatrial.model.results.record import content_key
from seatrial.places.images.entries import entry_of
from seatrial.places.images.tools import inside, inside_environment
from seatrial.places.images.tree import EntryKind, Tree, folder
from seatrial.places.images.write import write_folder

PROGRAMS = "opt/seatrial"
"""Where they are in the image: below it, the command that compiled for an MPI, or `serial`, then the program."""
_COMPILERS = ("g++", "clang++")
_MPI_COMPILERS = ("mpicxx.openmpi", "mpicxx.mpich")
_MPI_USUAL = "mpicxx"
_PLACES = ("usr/local/bin", "usr/bin", "bin")
_WORK = "seatrial-build"
_PACKAGE = Path(NATIVE_HEADERS).parent
_NATIVE = "native"
_LIMIT_S = 1800.0
_MOST_LINES = 12


class WantedProgram(Frozen):
    """A benchmark whose program is wanted, and its source."""

    benchmark: str
    source: Path


def add_built(
    tree: Tree,
    wanted: Sequence[WantedProgram],
    march: str,
    isa: Callable[[], Iterable[str]],
    work: Path,
    announce: Callable[[str], None],
) -> tuple[ImageProgram, ...]:
    """Compile the programs inside a copy of the tree in `work`, and add them to the tree. `isa` gives the features of
    this CPU (/proc/cpuinfo), for which `native` is resolved.

    Raises ImageError if the image has no compiler or MPI, or a program does not compile.
    """
    compiler = _found(tree, _COMPILERS)
    if compiler is None:
        raise ImageError("the image has no C++ compiler to build with", "add g++ to `packages`")
    root = work / "root"
    write_folder(tree, root, with_owners=False)
    into = root / _WORK
    into.mkdir(mode=0o755)
    _copy_sources(into)
    before = inside(root)
    try:
        version = ask([*before, compiler, "--version"], inside_environment()).stdout.partition("\n")[0].strip()
        found = Compiler((*before, compiler), "clang" if "clang" in version else "gcc", version)
        flags = (f"-march={march}",) if march != "native" else resolve_target(found, isa()).flags
    except BuildError as error:
        raise ImageError(f"the compiler of the image cannot be used: {error.message}", error.todo) from error
    builder = _Builder(tree, root, before, compiler, version, flags)
    made = []
    for one in wanted:
        announce(f"compiling the program of {one.benchmark} inside the image")
        made += list(builder.build(one))
    shutil.rmtree(into / "src", ignore_errors=True)
    return tuple(made)


class _Builder(Struct):
    """Compiles inside one root; objects are shared by programs."""

    tree: Tree
    root: Path
    before: tuple[str, ...]
    compiler: str
    version: str
    flags: tuple[str, ...]

    def build(self, wanted: WantedProgram) -> Iterator[ImageProgram]:
        """The program for each MPI of the image, or one without MPI."""
        units = units_of(wanted.source, NATIVE_HEADERS)
        if not any(unit.needs_mpi for unit in units):
            yield self._program(wanted, units, None)
            return
        wrappers = [name for name in _MPI_COMPILERS if _found(self.tree, [name])]
        wrappers = wrappers or [name for name in [_MPI_USUAL] if _found(self.tree, [name])]
        if not wrappers:
            todo = "add libopenmpi-dev and openmpi-bin, or libmpich-dev and mpich, to `packages`"
            raise ImageError(f"{wanted.benchmark} needs an MPI to compile with, and the image has none", todo)
        for wrapper in wrappers:
            yield self._program(wanted, units, wrapper)

    def _program(self, wanted: WantedProgram, units: Sequence[Unit], mpi: str | None) -> ImageProgram:
        own, *parts = units
        sources = {name: digest for unit in units for name, digest in unit.digests}
        key = content_key({"compiler": self.version, "flags": list(self.flags), "mpi": mpi, "sources": sources})
        objects = [self._object(own, mpi, key)]
        objects += [self._object(part, mpi) for part in sorted(parts, key=lambda part: part.optimisation != "")]
        # Those that are missing, as many at once as there are CPUs.
        missing = [command for path, command in objects if not (self.root / path.lstrip("/")).exists()]
        self._run(wanted.benchmark, missing)
        place = f"{PROGRAMS}/{mpi or 'serial'}/{wanted.source.stem}"
        made = self.root / place
        made.parent.mkdir(parents=True, exist_ok=True)
        compiler = mpi or self.compiler
        self._run(wanted.benchmark, [[compiler, *BASE_FLAGS, *self.flags, *(o for o, _ in objects), "-o", f"/{place}"]])
        entry = replace(entry_of(made, self.tree.mtime_s), mode=0o755, uid=0, gid=0)
        if entry.kind is not EntryKind.FILE:
            raise ImageError(f"the compiler of the image made no program for {wanted.benchmark}")
        self.tree.add(PROGRAMS, folder(self.tree.mtime_s))
        self.tree.add(place, entry)
        with made.open("rb") as stream:
            digest = f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"
        march = " ".join(self.flags[:1])
        return ImageProgram(wanted.benchmark, f"/{place}", mpi, self.version, march, objects[0][1], digest)

    def _object(self, unit: Unit, mpi: str | None, key: str = "") -> tuple[str, tuple[str, ...]]:
        """The path inside of a compiled source, and the command that compiles it."""
        source = f"/{_WORK}/src/{unit.source.relative_to(_PACKAGE)}"
        compiler = mpi if mpi is not None and unit.needs_mpi else self.compiler
        name = f"{unit.source.relative_to(_PACKAGE)}.{compiler}.{key}.o".replace("/", "-")
        native = f"/{_WORK}/src/{_NATIVE}"
        command = (
            *(compiler, *BASE_FLAGS, *([unit.optimisation] if unit.optimisation else []), *self.flags),
            *([f'-DSEATRIAL_BUILD="{key}"'] if key else []),
            *("-I", native),
            *((f"-Wa,-I,{native}", f"-Wa,-I,{source.rpartition('/')[0]}") if unit.embeds else ()),
            *("-c", source, "-o", f"/{_WORK}/{name}"),
        )
        return f"/{_WORK}/{name}", command

    def _run(self, what: str, commands: Iterable[Sequence[str]]) -> None:
        def job(command: Sequence[str], started: Started) -> None:
            ask([*self.before, *command], inside_environment(), _LIMIT_S, started)

        try:
            side_by_side(partial(job, command) for command in commands)
        except BuildError as error:
            lines = "".join(f"\n    {line[:400]}" for line in error.output.splitlines()[-_MOST_LINES:])
            raise ImageError(f"the program of {what} does not compile inside the image:{lines}", error.todo) from error


def _found(tree: Tree, names: Sequence[str]) -> str | None:
    """The first of these commands that the image has."""
    for name in names:
        for place in _PLACES:
            if tree.resolved(f"{place}/{name}") in tree:
                return name
    return None


def _copy_sources(into: Path) -> None:
    """Our sources, without Python."""

    def ignored(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if name.endswith((".py", ".pyc")) or name == "__pycache__"]

    for part in (_NATIVE, "benchmarks"):
        shutil.copytree(_PACKAGE / part, into / "src" / part, ignore=ignored)
