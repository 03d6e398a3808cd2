"""Builds a measuring program: one compiler call for the program, and one for each part that it shares with others
(native_sources.py), each cached under the hash of all its inputs (cached_files.py)."""

from __future__ import annotations

import json
import os
import platform
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.environments.asking import Started, ask, side_by_side
from seatrial.environments.cached_files import (
    BUILD_FILE,
    KeptFile,
    Start,
    as_it_is,
    kept_file,
    make_file,
    needed_file,
    private_copy,
    private_top,
)
from seatrial.environments.compiled import Unit, standard_headers, units_of, with_headers
from seatrial.environments.compiler import Compiler, Target
from seatrial.errors import BuildError, ProtocolError
from seatrial.model.benchmark.program import Hello, parse_record
from seatrial.model.environment.mpi import Mpi
from seatrial.model.frozen import Frozen
from seatrial.model.results.record import content_key
from seatrial.store.cache import cache_folder, caches

NATIVE_HEADERS = Path(__file__).parent.parent / "native"

BASE_FLAGS = ("-std=c++20", "-O3", "-pthread")
"""The flags of every build."""
_WARNINGS = ("-Wall", "-Wextra")
"""They do not change the code, and are not part of the key; the compiler's messages are stored with the build."""


class Environment(Frozen):
    """The environment that programs are built and run in: compiler, flags, C library, MPI. `key` identifies it in
    records.

    `added_flags` follow ours; `variables` are set (None: unset) when programs run, and do not affect builds. `mpi` and
    its chosen `settings` are only set for programs with ranks; `by_settings` names those of the `variables` that apply
    the settings.
    """

    compiler: Compiler
    target: Target
    libc: str
    added_flags: tuple[str, ...] = ()
    variables: tuple[tuple[str, str | None], ...] = ()
    mpi: Mpi | None = None
    settings: tuple[tuple[str, str], ...] = ()
    by_settings: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """The JSON document of `environments/<key>.json`."""
        optimise = [flag for flag in BASE_FLAGS if flag.startswith("-O")]
        settings = [f"{name}={value}" for name, value in self.settings]
        settings += [
            f"{name}={value}" if value is not None else f"without {name}"
            for name, value in self.variables
            if name not in self.by_settings
        ]
        mpi = [] if self.mpi is None else [self.mpi.title]
        compiler = {
            "path": self.compiler.identity,
            "family": self.compiler.family,
            "version": self.compiler.version,
            "image": self.compiler.image,
        }
        document = {
            "name": " ".join([*mpi, self.compiler.name, *optimise, self.target.flags[0], *self.added_flags, *settings]),
            "mpi": None if self.mpi is None else self.mpi.document(),
            "compiler": {name: text for name, text in compiler.items() if name != "image" or text},
            "flags": [*BASE_FLAGS, *self.target.flags],
            "added_flags": list(self.added_flags),
            "settings": dict(self.settings),
            "variables": dict(self.variables),
            "target": {
                "march": self.target.flags[0],
                "isa": sorted(self.target.isa),
                "resolution": self.target.resolution,
                "cpu": self.target.cpu,
            },
            "libc": self.libc,
        }
        return {name: part for name, part in document.items() if part}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Environment:
        """The inverse of `document()`, without `by_settings`."""
        compiler, target = document["compiler"], document["target"]
        return cls(
            Compiler(
                tuple(compiler["path"].split(" ")), compiler["family"], compiler["version"], compiler.get("image", "")
            ),
            Target(
                tuple(document["flags"][len(BASE_FLAGS) :]),
                frozenset(target["isa"]),
                target["resolution"],
                target["cpu"],
            ),
            document["libc"],
            tuple(document.get("added_flags", ())),
            tuple(document.get("variables", {}).items()),
            Mpi.from_document(document["mpi"]) if "mpi" in document else None,
            tuple(document.get("settings", {}).items()),
        )

    @property
    def of_all(self) -> tuple[tuple[str, str | None], ...]:
        """The variables of its MPI library, then its own, which override them."""
        return (*(self.mpi.variables if self.mpi is not None else ()), *self.variables)

    @property
    def key(self) -> str:
        """The content key."""
        return content_key(self.document())


class Built(Frozen):
    """A program that is ready to run: `path` is a private copy of the file `kept` in a cache. `command` compiles its
    own source. `hello` is its description in a clean loader environment, with the libraries that it was built with."""

    path: Path
    key: str
    command: tuple[str, ...]
    hello: Hello
    seconds: float
    from_cache: bool
    kept: Path = Path()


def libc_version() -> str:
    """The C library and its version, such as "glibc 2.36"."""
    return " ".join(part for part in platform.libc_ver() if part) or "unknown"


def program_key(environment: Environment, source: Path) -> str:
    """The key of a build: its sources, the compiler's identity, resolved target, flags and libc."""
    return _key(environment, *units_of(source, NATIVE_HEADERS))


def _key(environment: Environment, *units: Unit) -> str:
    sources = {name: digest for unit in units for name, digest in unit.digests}
    return content_key({"environment": _for_builds(environment).document(), "sources": sources})


def _for_builds(environment: Environment) -> Environment:
    """Only what affects a build: not the launcher and the settings."""
    mpi = None if environment.mpi is None else environment.mpi.for_builds()
    return replace(environment, variables=(), settings=(), mpi=mpi)


def _document_of_build(environment: Environment) -> dict[str, Any]:
    """What is stored beside a build: `kept_environments` reads it."""
    return replace(environment, variables=(), settings=(), by_settings=()).document()


def is_built(environment: Environment, source: Path) -> bool:
    """Whether `build` would find the program in a cache. Raises CacheError."""
    return kept_file(cache_folder() / "programs" / program_key(environment, source) / source.stem) is not None


def build(
    environment: Environment, source: Path, announce: Callable[[], None] = lambda: None, start: Start = as_it_is
) -> Built:
    """The program of `source`, from the cache or built now; `announce` is called before a build. `start` is how the
    compiler and the program are started.

    Raises BuildError with the compiler's message.
    """
    own, *parts = units_of(source, NATIVE_HEADERS)
    key = _key(environment, own, *parts)
    program = cache_folder() / "programs" / key / source.stem
    objects = [_Object.of(environment, own, (f'-DSEATRIAL_BUILD="{key}"',), key)]
    # The linker keeps the first copy of an inline function: it must not be one with less optimisation.
    objects += [_Object.of(environment, part) for part in sorted(parts, key=lambda part: part.optimisation != "")]
    kept = kept_file(program)
    from_cache, seconds = kept is not None, 0.0
    if kept is None:
        announce()
        began_s = time.perf_counter()
        headers = _headers(environment, objects) if start is as_it_is else None
        side_by_side(partial(item.make, headers, start) for item in objects)
        inputs = [needed_file(item.path) for item in objects]
        libraries = () if environment.mpi is None else environment.mpi.link_flags
        made = (*_compiler_words(environment), *(str(item.path) for item in inputs), *libraries)
        make_file(made, program, _document_of_build(environment), inputs=inputs, start=start)
        kept, seconds = needed_file(program), time.perf_counter() - began_s
    path = private_copy(kept.data, kept.path)
    return Built(path, key, objects[0].command, _describe(path, start), seconds, from_cache, kept.path)


class _Object(Frozen):
    """The object file of one source, cached for every program that shares it."""

    path: Path
    command: tuple[str, ...]
    environment: Environment

    @classmethod
    def of(cls, environment: Environment, unit: Unit, added: Sequence[str] = (), key: str | None = None) -> _Object:
        """Objects that do not use MPI are shared by all MPI libraries."""
        own = environment if unit.needs_mpi else replace(environment, mpi=None)
        command = (
            *_compiler_words(own, unit),
            *_WARNINGS,
            *added,
            "-I",
            str(NATIVE_HEADERS),
            *embedding(unit),
            *(() if own.mpi is None else own.mpi.compile_flags),
            "-c",
            str(unit.source),
        )
        home = cache_folder() / "objects" / (key or _key(own, unit))
        return cls(home / f"{unit.source.stem}.o", command, own)

    @property
    def is_made(self) -> bool:
        """Whether it is in the cache."""
        return kept_file(self.path) is not None

    def make(self, headers: KeptFile | None, start: Start, started: Started) -> None:
        """Compile it, unless it is in the cache."""
        if self.is_made:
            return
        document = _document_of_build(self.environment)
        if headers is not None:
            command = with_headers(self.command, headers, len(self.environment.compiler.command))
            with suppress(BuildError):
                make_file(command, self.path, document, started, (headers,), start)
                return
        make_file(self.command, self.path, document, started, start=start)


def _headers(environment: Environment, objects: Sequence[_Object]) -> KeptFile | None:
    """Those of the standard library, if GCC compiles as many of the objects as make them pay off; None without a
    writable cache, too."""
    if environment.compiler.family != "gcc":
        return None
    own = _for_builds(replace(environment, mpi=None))
    missing = sum(not item.is_made for item in objects)
    try:
        return standard_headers(NATIVE_HEADERS / "standard.hpp", _compiler_words(own), own.document(), missing)
    except (BuildError, OSError):
        return None


def _compiler_words(environment: Environment, unit: Unit | None = None) -> tuple[str, ...]:
    """What the user adds comes last, and so wins."""
    optimisation = (unit.optimisation,) if unit is not None and unit.optimisation else ()
    own = (*environment.target.flags, *environment.added_flags)
    return (*environment.compiler.command, *BASE_FLAGS, *optimisation, *own)


def embedding(unit: Unit) -> tuple[str, ...]:
    """The assembler's search path for files embedded in a program (native/device/embedded.hpp)."""
    return (f"-Wa,-I,{NATIVE_HEADERS}", f"-Wa,-I,{unit.source.parent}") if unit.embeds else ()


def kept_environments() -> list[Environment]:
    """The environments of the programs in the caches, the latest build first, for machines without a compiler; without
    those of programs for an image."""
    found: dict[str, Environment] = {}
    kept = []
    for cache in caches():
        for key in cache.names("programs"):
            if re.fullmatch("[0-9a-f]+", key) and (text := cache.read("programs", key, BUILD_FILE)) is not None:
                kept.append((cache.path.joinpath("programs", key, BUILD_FILE).stat().st_mtime, text))
    for _, text in sorted(kept, key=lambda item: -item[0]):
        try:
            environment = Environment.from_document(json.loads(text)["environment"])
        except (ValueError, KeyError, TypeError):
            continue
        if not environment.compiler.image:
            found.setdefault(environment.key, environment)
    return list(found.values())


def _describe(program: Path, start: Start) -> Hello:
    """The program's description of itself, without variables that change the loader's search."""
    command, variables = start([str(program), "--describe"], [private_top(program)])
    given = os.environ if variables is None else variables
    return _described(command, {name: value for name, value in given.items() if not name.startswith("LD_")})


def describe_with(program: Path, library: Path, variables: Mapping[str, str] | None = None) -> Hello:
    """The same with a library that the program loads at run time, and with that library's dependencies.

    The loader's search is that of the user, since modules set LD_LIBRARY_PATH. Raises BuildError if the library cannot
    be loaded.
    """
    environment = os.environ if variables is None else variables
    return _described([str(program), "--describe", str(library)], environment)


def _described(command: Sequence[str], environment: Mapping[str, str]) -> Hello:
    try:
        hello = parse_record(ask(command, environment=environment).stdout.encode()).hello
    except ProtocolError as error:
        raise BuildError(f"{command[0]} does not describe itself: {error}") from error
    if hello is None:
        raise BuildError(f"{command[0]} does not describe itself")
    return hello
