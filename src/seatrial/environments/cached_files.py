"""Files that a compiler makes, in the cache under the hash of all their inputs, and private copies of what is run.

The cache is shared by all results folders. A file is made once, and checked when read: in a private folder, renamed
into place, so that other processes, or nodes with the same NFS home, never see half of one.

What is run is so what was checked, also if a launcher starts it by its path on another node, whatever happens to the
cache meanwhile. The folder of the copies is in the own cache, which nodes share, and is removed when the process ends;
those of killed processes are removed by later ones: the name says which process it is of, by host, kernel and process
namespace, id and start.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from seatrial.environments.asking import Started, ask
from seatrial.errors import BuildError
from seatrial.model.frozen import Frozen
from seatrial.processes.file_lock import lock
from seatrial.processes.own_folder import own_folder, own_name, sweep
from seatrial.store.cache import (
    cache_folder,
    caches,
    check_folder,
    keep_others_from_writing,
    make_folder,
    own_cache,
)


def remove_folder(path: Path) -> None:
    """Remove a folder whatever the permissions in it are, as far as its owner can."""

    def retry(function: Callable[[str], object], name: str, error: object) -> None:
        with suppress(OSError):
            above = os.path.dirname(name)  # noqa: PTH120 - rmtree gives text
            os.chmod(above, stat.S_IRWXU)  # noqa: PTH101
            if os.path.isdir(name) and not os.path.islink(name):  # noqa: PTH112, PTH114
                os.chmod(name, stat.S_IRWXU)  # noqa: PTH101
                shutil.rmtree(name, ignore_errors=True)
            else:
                os.unlink(name)  # noqa: PTH108

    shutil.rmtree(path, onerror=retry)


_FOLDER = "running"

_folders: dict[tuple[int, Path], Path] = {}
_copies: dict[tuple[int, Path, Path, str], Path] = {}
_origins: dict[str, str] = {}
_digests: dict[str, str] = {}


def private_copy(data: bytes, origin: Path) -> Path:
    """A file of this process with this content, which was read from `origin`; the same one each time. `origin` itself
    if the own cache cannot be written: then nobody but its owner can change it either. Raises CacheError."""
    key = (os.getpid(), own_cache().path, origin, hashlib.sha256(data).hexdigest())
    made = _copies.get(key)
    if made is not None and made.exists():
        return made
    try:
        made = fresh_folder() / origin.name
        with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o500), "wb") as stream:
            stream.write(data)
    except OSError:
        return origin
    _copies[key] = made
    _origins[str(made)] = str(origin)
    _digests[str(made)] = key[3]
    return made


_trees: dict[tuple[int, Path, str], Path] = {}


def private_tree(top: Path, files: Iterable[Path]) -> Path:
    """A folder of this process with copies of these files below `top`, at the same paths there; the same one each time.
    Raises CacheError, BuildError if it cannot be made or a file cannot be read."""
    try:
        contents = {file.relative_to(top): file.read_bytes() for file in sorted(files)}
    except OSError as error:
        raise BuildError(
            f"{error.filename} cannot be read: {error.strerror or error}", "install seatrial again"
        ) from error
    digest = hashlib.sha256()
    for name, content in contents.items():
        digest.update(b"%d %d %s" % (len(os.fsencode(name)), len(content), os.fsencode(name) + content))
    key = (os.getpid(), own_cache().path, digest.hexdigest())
    if key not in _trees or not _trees[key].exists():
        made = private_space()
        for name, content in contents.items():
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            (made / name).write_bytes(content)
            (made / name).chmod(0o400)
            _origins[str(made / name)] = str(top / name)
        _trees[key] = made
    return _trees[key]


def fresh_folder() -> Path:
    """A new folder of this process in the cache, which nodes share. Raises CacheError, OSError."""
    folder = private_folder() / secrets.token_hex(4)
    folder.mkdir(mode=0o700)
    return folder


def private_space() -> Path:
    """The same. Raises CacheError, BuildError if it cannot be made."""
    try:
        return fresh_folder()
    except OSError as error:
        raise BuildError(
            f"the cache {own_cache().path} cannot be written: {error.strerror or error}",
            "set SEATRIAL_CACHE to a writable folder",
        ) from error


def origins(command: Iterable[str]) -> list[str]:
    """A command as it is recorded: with the files of the cache in place of their copies."""
    return [_origins.get(word, word) for word in command]


def private_top(path: Path) -> Path:
    """The folder with all copies of this process if `path` is one of them, else its own folder."""
    return path.parents[1] if str(path) in _digests else path.parent


def copies() -> Mapping[str, str]:
    """Path -> SHA-256 of the copies that this process has made."""
    return _digests


def private_folder() -> Path:
    """The folder of this process in the own cache, which nodes share; removed when the process ends. Raises CacheError,
    OSError."""
    top = own_cache().path / _FOLDER
    key = (os.getpid(), top)
    if key not in _folders or not _folders[key].exists():
        make_folder(top)
        check_folder(top)
        sweep(top, "", lambda path: shutil.rmtree(path, ignore_errors=True))
        folder = top / own_name()
        folder.mkdir(mode=0o700)
        _folders[key] = folder
    return _folders[key]


@atexit.register
def _remove() -> None:
    """Not by a forked child, which has the folders of its parent."""
    for (pid, _), folder in _folders.items():
        if pid == os.getpid():
            shutil.rmtree(folder, ignore_errors=True)


BUILD_FILE = "build.json"
"""Beside each file: how it was made, and its hash."""
_COMPILE_LIMIT_S = 600.0


Start = Callable[[Sequence[str], Sequence[Path]], tuple[Sequence[str], Mapping[str, str] | None]]
"""How a command is started that uses these folders: (command, its variables; None: those of this process)."""


def as_it_is(command: Sequence[str], folders: Sequence[Path]) -> tuple[Sequence[str], Mapping[str, str] | None]:
    """On this machine."""
    return command, None


class KeptFile(Frozen):
    """A checked file of a cache: the content, and how long its build took."""

    path: Path
    data: bytes
    seconds: float


def kept_file(place: Path) -> KeptFile | None:
    """The build with this path in the own cache, from there or from the shared cache; None if there is
    none, or the file differs from what was built. Raises CacheError if others can change it."""
    where = place.relative_to(cache_folder()).parts
    for cache in caches():
        described, data = cache.read(*where[:-1], BUILD_FILE), cache.read(*where)
        if described is None or data is None:
            continue
        try:
            kept = json.loads(described)
            if kept["sha256"] == hashlib.sha256(data).hexdigest():
                return KeptFile(cache.path.joinpath(*where), data, float(kept["seconds"]))
        except (ValueError, KeyError, TypeError):
            continue
    return None


def needed_file(place: Path) -> KeptFile:
    """What was just built. Raises BuildError if it has vanished."""
    kept = kept_file(place)
    if kept is None:
        raise BuildError(f"{place} vanished or was changed after it was built", "try again")
    return kept


def make_file(
    command: Sequence[str],
    place: Path,
    environment: Mapping[str, Any],
    started: Started = lambda process: None,
    inputs: Sequence[KeptFile] = (),
    start: Start = as_it_is,
) -> None:
    """Build in a private folder and rename it into place. Waits if another process of this user makes the same build.
    `environment` is the document that is stored beside it; `inputs` are the files of the cache among the words of the
    command, `start` is how it is started. Raises BuildError."""
    try:
        with building_folder(place.parent) as private:
            if kept_file(place) is not None:
                return
            made = private / place.name
            began_s = time.perf_counter()
            copies = {str(item.path): private_copy(item.data, item.path) for item in inputs}
            folders = dict.fromkeys([private, *map(private_top, copies.values())])
            # GCC adds the ending to what is included.
            given = (str(copies.get(word, word)).removesuffix(".gch") for word in command)
            words, variables = start([*given, "-o", str(made)], list(folders))
            if variables is None:
                variables = {**os.environ, "TMPDIR": str(private)}  # killed compilers leave files there
            answer = ask(words, variables, _COMPILE_LIMIT_S, started)
            kept = {
                "environment": environment,
                "command": list(command),
                "warnings": answer.stderr,
                "seconds": time.perf_counter() - began_s,
                "sha256": hashlib.sha256(made.read_bytes()).hexdigest(),
            }
            (private / BUILD_FILE).write_text(json.dumps(kept, indent=1), encoding="utf-8")
            keep_others_from_writing(private)
            _put_in_place(private, place.parent, place.name)
    finally:
        shutil.rmtree(place.parent / "damaged", ignore_errors=True)


@contextmanager
def building_folder(home: Path) -> Iterator[Path]:
    """A private folder beside `home` to build in. Waits first if another process of this user builds the same, which
    may then exist. Leftovers of builds killed on this host are removed, and the folder at the end.

    Raises BuildError if it cannot be made, and for any OSError while it is in use.
    """
    try:
        make_folder(home.parent)
        check_folder(home.parent)
        with (
            _alone(home.with_name(f".{home.name}.lock")),
            own_folder(home.parent, f".{home.name}-", mode=0o755) as private,
        ):
            yield private
    except OSError as error:
        raise BuildError(
            f"{home.parent.name} cannot be stored in {home.parent}: {error.strerror or error}",
            "set SEATRIAL_CACHE to a writable folder",
        ) from error


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold a lock; wait at most as long as a compiler may take. On file systems without locks, two processes build the
    same, and one build is kept."""
    with path.open("w") as file:
        lock(file, wait_s=_COMPILE_LIMIT_S)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


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
        if kept_file(home / stem) is not None:
            return
        home.rename(private / "damaged")
