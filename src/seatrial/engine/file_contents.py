"""What tells the content of files, where it is part of what identifies an experiment: inputs, commands, libraries."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from stat import S_ISREG

from seatrial.engine.once import Once
from seatrial.environments.installed import NotInstalledError
from seatrial.environments.loader import libraries_of
from seatrial.model.environment_choice import EnvironmentChoice

_LARGEST_HASHED_B = 64 << 20


class Commands:
    """The programs on PATH that a program of ours starts, each looked at once in each environment."""

    def __init__(self) -> None:
        self._hashes: Once[tuple[str, EnvironmentChoice], Mapping[str, str]] = Once()

    def of(self, name: str, choice: EnvironmentChoice, variables: Mapping[str, str]) -> Mapping[str, str]:
        """Name -> hash of the file behind a command ("") and of each library that the loader finds for it: the same
        program with another library is another experiment. Raises NotInstalledError where there is none that can be
        run."""
        return self._hashes.get((name, choice), lambda: _hashes_of(name, variables))


def _hashes_of(command: str, variables: Mapping[str, str]) -> Mapping[str, str]:
    found = shutil.which(command, path=variables.get("PATH"))
    if found is None:
        raise NotInstalledError(f"{command}: command not found", "give its path, or put it on PATH")
    libraries = libraries_of(Path(found), variables)
    return {"": digest(found), **{name: digest(path) for name, path in libraries.items()}}


def files_among(words: Sequence[str]) -> dict[str, str]:
    """Word -> what tells the content of the file that it names, of those that name one: a hash, or for large files,
    which would take long to read for each plan, size and time of the last change."""
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
    """The hash of a file, "" where it cannot be read; a library's linker may have written no build id."""
    try:
        stat = Path(path).stat()
        return _hashed(path, stat.st_size, stat.st_mtime_ns)
    except OSError:
        return ""


@cache
def _hashed(path: str, size: int, mtime_ns: int) -> str:
    """The hash of a file as it was at that time."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
