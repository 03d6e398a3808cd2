"""Builds a measuring program: one compiler call for the program, and one for each part that it shares with others
(native_sources.py), each cached under the hash of all its inputs.

The cache is shared by all results folders. A build is made in a private folder and renamed into place, so that other
processes, or nodes with the same NFS home, never see half a build.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from seatrial.environments.cache import cache_folder, caches, check_folder, keep_others_from_writing, make_folder
from seatrial.environments.compiler import Compiler, Started, ask, side_by_side
from seatrial.environments.native_sources import Unit, units_of
from seatrial.environments.private_copy import private_copy
from seatrial.environments.target import Target
from seatrial.errors import BuildError, ProtocolError
from seatrial.model.experiment import content_key
from seatrial.model.mpi import Mpi
from seatrial.model.protocol import Hello, parse_record

NATIVE_HEADERS = Path(__file__).parent.parent / "native"

_BUILD_FILE = "build.json"
_COMPILE_LIMIT_S = 600.0
_LOOK_AGAIN_S = 0.05
_FLAGS = ("-std=c++20", "-O3", "-pthread")
_WARNINGS = ("-Wall", "-Wextra")
"""They do not change the code, and are not part of the key; the compiler's messages are stored with the build."""


@dataclass(frozen=True, slots=True)
class Environment:
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
        optimise = [flag for flag in _FLAGS if flag.startswith("-O")]
        settings = [f"{name}={value}" for name, value in self.settings]
        settings += [
            f"{name}={value}" if value is not None else f"without {name}"
            for name, value in self.variables
            if name not in self.by_settings
        ]
        added = {"added_flags": list(self.added_flags)} if self.added_flags else {}
        mpi = [] if self.mpi is None else [self.mpi.title]
        return {
            "name": " ".join([*mpi, self.compiler.name, *optimise, self.target.flags[0], *self.added_flags, *settings]),
            **({} if self.mpi is None else {"mpi": self.mpi.document()}),
            "compiler": {
                "path": self.compiler.identity,
                "family": self.compiler.family,
                "version": self.compiler.version,
            },
            "flags": [*_FLAGS, *self.target.flags],
            **added,
            **({"settings": dict(self.settings)} if self.settings else {}),
            **({"variables": dict(self.variables)} if self.variables else {}),
            "target": {
                "march": self.target.flags[0],
                "isa": sorted(self.target.isa),
                "resolution": self.target.resolution,
                "cpu": self.target.cpu,
            },
            "libc": self.libc,
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Environment:
        """The inverse of `document()`, without `by_settings`."""
        compiler, target = document["compiler"], document["target"]
        return cls(
            Compiler(tuple(compiler["path"].split(" ")), compiler["family"], compiler["version"]),
            Target(
                tuple(document["flags"][len(_FLAGS) :]),
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
    def key(self) -> str:
        """The content key."""
        return content_key(self.document())


@dataclass(frozen=True, slots=True)
class Built:
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


def is_built(environment: Environment, source: Path) -> bool:
    """Whether `build` would find the program in a cache. Raises CacheError."""
    return _kept(cache_folder() / "programs" / program_key(environment, source) / source.stem) is not None


def build(environment: Environment, source: Path, announce: Callable[[], None] = lambda: None) -> Built:
    """The program of `source`, from the cache or built now; `announce` is called before a build.

    Raises BuildError with the compiler's message.
    """
    own, *parts = units_of(source, NATIVE_HEADERS)
    key = _key(environment, own, *parts)
    program = cache_folder() / "programs" / key / source.stem
    objects = [_Object.of(environment, own, (f'-DSEATRIAL_BUILD="{key}"',), key)]
    objects += [_Object.of(environment, part) for part in parts]
    kept = _kept(program)
    from_cache, seconds = kept is not None, 0.0
    if kept is None:
        announce()
        start = time.perf_counter()
        side_by_side(item.make for item in objects)
        inputs = [_needed(item.path) for item in objects]
        _make(_linking(environment, inputs), program, environment, inputs=inputs)
        kept, seconds = _needed(program), time.perf_counter() - start
    path = private_copy(kept.data, kept.path)
    return Built(path, key, objects[0].command, _describe(path), seconds, from_cache, kept.path)


@dataclass(frozen=True, slots=True)
class _Object:
    """The object file of one source, cached for every program that shares it."""

    path: Path
    command: tuple[str, ...]
    environment: Environment

    @classmethod
    def of(cls, environment: Environment, unit: Unit, added: Sequence[str] = (), key: str | None = None) -> _Object:
        """Objects that do not use MPI are shared by all MPI libraries."""
        own = environment if unit.needs_mpi else replace(environment, mpi=None)
        command = (
            *_compiler_words(own),
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

    def make(self, started: Started) -> None:
        """Compile it, unless it is in the cache."""
        if _kept(self.path) is None:
            _make(self.command, self.path, self.environment, started)


def _compiler_words(environment: Environment) -> tuple[str, ...]:
    return (*environment.compiler.command, *_FLAGS, *environment.target.flags, *environment.added_flags)


def _linking(environment: Environment, objects: Sequence[_Kept]) -> tuple[str, ...]:
    libraries = () if environment.mpi is None else environment.mpi.link_flags
    return (*_compiler_words(environment), *(str(item.path) for item in objects), *libraries)


def embedding(unit: Unit) -> tuple[str, ...]:
    """The assembler's search path for files embedded in a program (native/device/embedded.hpp)."""
    return (f"-Wa,-I,{NATIVE_HEADERS}", f"-Wa,-I,{unit.source.parent}") if unit.embeds else ()


@dataclass(frozen=True, slots=True)
class _Kept:
    """A checked file of a cache: the content, and how long its build took."""

    path: Path
    data: bytes
    seconds: float


def _kept(place: Path) -> _Kept | None:
    """The build that belongs at this place of the own cache, from there or from the shared cache; None if there is
    none, or the file differs from what was built. Raises CacheError if others can change it."""
    where = place.relative_to(cache_folder()).parts
    for cache in caches():
        described, data = cache.read(*where[:-1], _BUILD_FILE), cache.read(*where)
        if described is None or data is None:
            continue
        try:
            kept = json.loads(described)
            if kept["sha256"] == hashlib.sha256(data).hexdigest():
                return _Kept(cache.path.joinpath(*where), data, float(kept["seconds"]))
        except (ValueError, KeyError, TypeError):
            continue
    return None


def _needed(place: Path) -> _Kept:
    """What was just built. Raises BuildError if it has vanished."""
    kept = _kept(place)
    if kept is None:
        raise BuildError(f"{place} vanished or was changed after it was built", "try again")
    return kept


def kept_environments() -> list[Environment]:
    """The environments of the programs in the caches, the latest build first, for machines without a compiler."""
    found: dict[str, Environment] = {}
    kept = []
    for cache in caches():
        for key in cache.names("programs"):
            if re.fullmatch("[0-9a-f]+", key) and (text := cache.read("programs", key, _BUILD_FILE)) is not None:
                kept.append((cache.path.joinpath("programs", key, _BUILD_FILE).stat().st_mtime, text))
    for _, text in sorted(kept, key=lambda item: -item[0]):
        try:
            environment = Environment.from_document(json.loads(text)["environment"])
        except (ValueError, KeyError, TypeError):
            continue
        found.setdefault(environment.key, environment)
    return list(found.values())


def _make(
    command: Sequence[str],
    place: Path,
    environment: Environment,
    started: Started = lambda process: None,
    inputs: Sequence[_Kept] = (),
) -> None:
    """Build in a private folder and rename it into place. Waits if another process of this user makes the same build.
    `inputs` are the files of the cache among the words of the command."""
    home = place.parent
    try:
        with private_folder(home) as private:
            if _kept(place) is None:
                _make_in(private, command, place, environment, started, inputs)
    finally:
        shutil.rmtree(home / "damaged", ignore_errors=True)


def _make_in(
    private: Path,
    command: Sequence[str],
    place: Path,
    environment: Environment,
    started: Started,
    inputs: Sequence[_Kept],
) -> None:
    made = private / place.name
    start = time.perf_counter()
    copies = {str(item.path): str(private_copy(item.data, item.path)) for item in inputs}
    answer = ask(
        [*(copies.get(word, word) for word in command), "-o", str(made)], limit_s=_COMPILE_LIMIT_S, started=started
    )
    kept = {
        "environment": replace(environment, variables=(), settings=(), by_settings=()).document(),
        "command": list(command),
        "warnings": answer.stderr,
        "seconds": time.perf_counter() - start,
        "sha256": hashlib.sha256(made.read_bytes()).hexdigest(),
    }
    (private / _BUILD_FILE).write_text(json.dumps(kept, indent=1), encoding="utf-8")
    keep_others_from_writing(private)
    _put_in_place(private, place.parent, place.name)


@contextmanager
def private_folder(home: Path) -> Iterator[Path]:
    """A private folder beside `home` to build in. Waits first if another process of this user builds the same, which
    may then exist. Leftovers of builds killed on this host are removed, and the folder at the end.

    Raises BuildError if it cannot be made, and for any OSError while it is in use.
    """
    private = home.with_name(f".{home.name}-{platform.node()}-{os.getpid()}")
    try:
        make_folder(home.parent)
        check_folder(home.parent)
        with _alone(home.with_name(f".{home.name}.lock")):
            _sweep(home)
            private.mkdir(mode=0o755)
            yield private
    except OSError as error:
        raise BuildError(
            f"{home.parent.name} cannot be stored in {home.parent}: {error.strerror or error}",
            "set SEATRIAL_CACHE to a writable folder",
        ) from error
    finally:
        shutil.rmtree(private, ignore_errors=True)


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Hold a lock that is released when its holder ends (flock(2)); wait at most as long as a compiler may take. On
    file systems without locks, two processes build the same, and one build is kept."""
    with lock.open("w") as file:
        until = time.monotonic() + _COMPILE_LIMIT_S
        while time.monotonic() < until:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(_LOOK_AGAIN_S)
            except OSError:
                break
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def _sweep(home: Path) -> None:
    """Remove leftovers of builds of this program that were killed on this host."""
    for path in home.parent.glob(f".{home.name}-{platform.node()}-*"):
        pid = path.name.rpartition("-")[2]
        if pid == str(os.getpid()) or (pid.isdigit() and not Path(f"/proc/{pid}").exists()):
            shutil.rmtree(path, ignore_errors=True)


def _put_in_place(private: Path, home: Path, stem: str) -> None:
    """Rename a build into the cache. A valid build that another process put there meanwhile stays: it may be
    running."""
    for _ in range(2):
        try:
            private.rename(home)
            return
        except OSError:
            if not home.exists():
                raise
        if _kept(home / stem) is not None:
            return
        home.rename(private / "damaged")


def _describe(program: Path) -> Hello:
    """The program's description of itself, without variables that change the loader's search."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LD_")}
    return _described([str(program), "--describe"], clean)


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
