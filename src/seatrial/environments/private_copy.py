"""Private copies of what is run: the bytes that were checked in a cache, in a folder of this process alone.

What is run is so what was checked, also if a launcher starts it by its path on another node, whatever happens to the
cache meanwhile. The folder is in the own cache, which nodes share, and is removed when the process ends; those of
killed processes are removed by later ones.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from seatrial.environments.cache import check_folder, make_folder, own_cache
from seatrial.environments.owned_folders import own_name, sweep
from seatrial.errors import BuildError

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
        folder = private_folder() / secrets.token_hex(4)
        folder.mkdir(mode=0o700)
        made = folder / origin.name
        with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o500), "wb") as stream:
            stream.write(data)
    except OSError:
        return origin
    _copies[key] = made
    _origins[str(made)] = str(origin)
    _digests[str(made)] = key[3]
    return made


def private_space() -> Path:
    """A new folder of this process, beside its copies. Raises CacheError, BuildError if it cannot be made."""
    try:
        folder = private_folder() / secrets.token_hex(4)
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise BuildError(
            f"the cache {own_cache().path} cannot be written: {error.strerror or error}",
            "set SEATRIAL_CACHE to a writable folder",
        ) from error
    return folder


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
        sweep(top)
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
