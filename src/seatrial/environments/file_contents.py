"""Hashes of files that are part of an experiment's identity: inputs, commands, libraries."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from stat import S_ISREG

from seatrial.environments.installed import NotInstalledError
from seatrial.environments.loader import libraries_of
from seatrial.environments.once import Once
from seatrial.model.environment_choice import EnvironmentChoice

_LARGEST_HASHED_B = 64 << 20


class Commands:
    """The programs on PATH that our programs start, each hashed once per environment."""

    def __init__(self) -> None:
        self._hashes: Once[tuple[str, EnvironmentChoice], Mapping[str, str]] = Once()

    def of(self, name: str, choice: EnvironmentChoice, variables: Mapping[str, str]) -> Mapping[str, str]:
        """Name -> hash, of a command's file (name "") and of each library that the loader finds for it: with another
        library it is another experiment. Raises NotInstalledError if the command is not found."""
        return self._hashes.get((name, choice), lambda: _hashes_of(name, variables))


def _hashes_of(command: str, variables: Mapping[str, str]) -> Mapping[str, str]:
    found = shutil.which(command, path=variables.get("PATH"))
    if found is None:
        raise NotInstalledError(f"{command}: command not found", "give its path, or put it on PATH")
    libraries = libraries_of(Path(found), variables)
    return {"": digest(found), **{name: digest(path) for name, path in libraries.items()}}


def files_among(words: Sequence[str]) -> dict[str, str]:
    """Word -> content id, of the words that name a file: a hash, or size and modification time for large files, which
    take too long to read for each plan."""
    found: dict[str, str] = {}
    for word in words:
        try:
            stat = Path(word).stat()
        except (OSError, ValueError):
            continue
        if S_ISREG(stat.st_mode):
            is_large = stat.st_size > _LARGEST_HASHED_B
            found[word] = f"{stat.st_size} B of {stat.st_mtime_ns}" if is_large else digest(word)
    return found


def digest(path: str) -> str:
    """The hash of a file, for libraries without a build id; "" if it cannot be read."""
    try:
        stat = Path(path).stat()
        return _hashed(path, stat.st_size, stat.st_mtime_ns)
    except OSError:
        return ""


@cache
def _hashed(path: str, size: int, mtime_ns: int) -> str:
    """Cached until size or modification time change."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
