"""Short-lived folders that are the same inside and outside of a container, or on all nodes."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from seatrial.environments.private_copy import own_name, private_folder, sweep
from seatrial.places.containers.runtime import SHARED


@contextmanager
def shared_folder(prefix: str) -> Iterator[Path]:
    """A new folder of this process, removed at the end; those of killed processes of this user are removed first.
    Raises OSError."""
    sweep(SHARED, prefix, _remove_own)
    folder = SHARED / own_name(prefix)
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def folder_of_all_nodes() -> Iterator[Path]:
    """A new folder of this process in the cache, which nodes share, removed at the end. Raises CacheError, OSError."""
    folder = private_folder() / secrets.token_hex(4)
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_own(path: Path) -> None:
    """Anybody can make folders of this name there."""
    with suppress(OSError):
        if path.lstat().st_uid == os.geteuid():
            shutil.rmtree(path, ignore_errors=True)
