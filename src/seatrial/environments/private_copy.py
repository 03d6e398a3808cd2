"""Private copies of what is run, in folders that belong to one process.

What is run is so what was checked, also if a launcher starts it by its path on another node, whatever happens to the
cache meanwhile. The folder is in the own cache, which nodes share, and is removed when the process ends; those of
killed processes are removed by later ones.

Folders that belong to one process and are removed with it: by itself, or, if it was killed, by a later one.

The name says which process: host, kernel and process namespace, id, start.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import platform
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from seatrial.environments.cache import check_folder, make_folder, own_cache
from seatrial.errors import BuildError
from seatrial.store.claim import kernel_and_namespace, process_start

_OWNER = re.compile(r".*-([0-9a-f]{8})-([0-9]+)-([0-9]+)-[0-9a-f]{8}")
_LEFTOVER_S = 30 * 86400.0


def own_name(prefix: str = "") -> str:
    """A new name for a folder of this process."""
    owner = f"{platform.node()}-{kernel_and_namespace()}-{os.getpid()}-{process_start(os.getpid())}"
    return f"{prefix}{owner}-{secrets.token_hex(4)}"


def sweep(top: Path, prefix: str = "", remove: Callable[[Path], None] | None = None) -> None:
    """Remove the folders in `top` whose names begin with `prefix` and whose processes are dead; of other hosts only
    what is very old. What cannot be removed stays."""
    remove = remove or (lambda path: shutil.rmtree(path, ignore_errors=True))
    with suppress(OSError):
        for path in top.iterdir():
            if not path.name.startswith(prefix):
                continue
            match = _OWNER.fullmatch(path.name)
            if match and match[1] == kernel_and_namespace():
                is_over = process_start(int(match[2])) != int(match[3])
            else:
                is_over = time.time() - path.lstat().st_mtime > _LEFTOVER_S
            if is_over:
                remove(path)


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
