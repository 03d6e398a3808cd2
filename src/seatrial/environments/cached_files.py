"""Files that a compiler makes, in the cache under the hash of all their inputs: made once, and checked when read.

The cache is shared by all results folders. A file is made in a private folder and renamed into place, so that other
processes, or nodes with the same NFS home, never see half of one.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seatrial.environments.asking import Started, ask
from seatrial.environments.cache import cache_folder, caches, check_folder, keep_others_from_writing, make_folder
from seatrial.environments.private_copy import private_copy, private_top
from seatrial.errors import BuildError
from seatrial.model.frozen import Frozen

BUILD_FILE = "build.json"
"""Beside each file: how it was made, and its hash."""
_COMPILE_LIMIT_S = 600.0
_LOOK_AGAIN_S = 0.05


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
    """The build that belongs at this place of the own cache, from there or from the shared cache; None if there is
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
    home = place.parent
    try:
        with private_folder(home) as private:
            if kept_file(place) is None:
                _make_in(private, command, place, environment, started, inputs, start)
    finally:
        shutil.rmtree(home / "damaged", ignore_errors=True)


def _make_in(
    private: Path,
    command: Sequence[str],
    place: Path,
    environment: Mapping[str, Any],
    started: Started,
    inputs: Sequence[KeptFile],
    start: Start,
) -> None:
    made = private / place.name
    began_s = time.perf_counter()
    copies = {str(item.path): private_copy(item.data, item.path) for item in inputs}
    folders = dict.fromkeys([private, *map(private_top, copies.values())])
    given = (str(copies.get(word, word)).removesuffix(".gch") for word in command)  # GCC adds it to what is included
    words, variables = start([*given, "-o", str(made)], list(folders))
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
        if kept_file(home / stem) is not None:
            return
        home.rename(private / "damaged")
