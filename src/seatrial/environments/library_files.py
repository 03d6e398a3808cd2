"""Where the shared libraries of a machine are, in the order in which a user expects them to be taken."""

from __future__ import annotations

import fnmatch
import platform
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from seatrial.environments.remembered import ask_once
from seatrial.errors import BuildError

_BELOW_ROOT = ("lib", "lib64", "lib/intel64")
_FOLDERS = ("/usr/local/lib64", "/usr/local/lib", "/usr/lib64", "/usr/lib", "/opt/intel/oneapi/mkl/latest/lib")
_CACHED = re.compile(r"^\s+\S+ \([^)]*\) => (/.*)$", re.MULTILINE)


def library_files(
    names: Sequence[str], roots: Sequence[str], variables: Mapping[str, str], alternatives: Sequence[str] = ()
) -> Iterator[tuple[Path, str]]:
    """(file that has one of the names, where it was found), best first; a file may appear more than once.

    First the folders of LD_LIBRARY_PATH, then those below the variables in `roots` (set by modules), then the loader's
    cache and the usual folders, with the folders in them that match `alternatives`. `names` may have wildcards; the
    first ones are preferred within a folder.
    """
    for folder in filter(None, variables.get("LD_LIBRARY_PATH", "").split(":")):
        yield from ((path, "LD_LIBRARY_PATH") for path in _in_folder(Path(folder), names))
    for root in filter(variables.get, roots):
        for below in _BELOW_ROOT:
            yield from ((path, root) for path in _in_folder(Path(variables[root]) / below, names))
    cached = _in_loader_cache()
    for name in names:
        matches = re.compile(f".*/{fnmatch.translate(name)}").match
        yield from ((Path(path), "the loader's cache") for path in cached if matches(path))
    for usual in _usual_folders():
        yield from ((path, str(usual)) for path in _in_folder(usual, names))
        for alternative in alternatives:
            for beside in sorted(usual.glob(alternative)):
                yield from ((path, str(beside)) for path in _in_folder(beside, names))


def _usual_folders() -> Iterator[Path]:
    """The default library folders, Debian's for this architecture first."""
    yield from map(Path, (f"/usr/lib/{platform.machine()}-linux-gnu", *_FOLDERS))


def _in_folder(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    for name in names:
        yield from sorted(folder.absolute().glob(name))


def _in_loader_cache() -> list[str]:
    """The files that `ldconfig -p` lists (ldconfig(8)); none without such a cache."""
    ldconfig = shutil.which("ldconfig") or shutil.which("ldconfig", path="/sbin:/usr/sbin")
    if ldconfig is None:
        return []
    try:
        return _CACHED.findall(ask_once([ldconfig, "-p"]).stdout)
    except BuildError:
        return []
