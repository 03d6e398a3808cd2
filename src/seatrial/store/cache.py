"""The caches of programs, libraries and MPI wheels: where they are, and what of them may be run (docs/adr/0020).

Whoever can write there can have us run anything. So a file counts only if every folder on the way to it, and it itself,
belongs to this user or root (in a shared cache: to its named owner or root) and can be written by nobody else. Each
part is opened in the folder before it, never through a link inside the cache, and checked by its descriptor (openat(2),
O_NOFOLLOW, fstat(2)); the bytes that are used are read from the checked descriptor.
"""

from __future__ import annotations

import errno
import os
import pwd
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from seatrial.errors import BuildError, UsageError
from seatrial.model.frozen import Frozen

SHARED = "SEATRIAL_SHARED_CACHE"

_MOST_LINKS = 40
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class CacheError(UsageError):
    """Something in a cache may have been changed by another user."""


class Cache(Frozen):
    """A cache: its folder, and the users besides root whose files in it are used."""

    path: Path
    owner: int
    is_ours: bool = True

    def read(self, *parts: str) -> bytes | None:
        """The content of a file; None if it does not exist. Raises CacheError if others can change it."""
        with self._opened(parts, os.O_RDONLY) as descriptor:
            if descriptor is None or not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            with os.fdopen(os.dup(descriptor), "rb") as stream:
                return stream.read()

    def names(self, *parts: str) -> list[str]:
        """The names in a folder, sorted; [] if it does not exist. Raises CacheError if others can change it."""
        with self._opened(parts, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
            return [] if descriptor is None else sorted(os.listdir(descriptor))  # noqa: PTH208 - of a descriptor

    def check_tree(self, *parts: str) -> None:
        """Check a folder with everything in it. Links in it must lead to its own files. Raises CacheError."""
        with self._opened(parts, os.O_RDONLY | os.O_DIRECTORY) as top:
            if top is None:
                return
            home = self.path.joinpath(*parts)
            for folder, folders, files, descriptor in os.fwalk(".", dir_fd=top, follow_symlinks=False):
                for name in (*folders, *files):
                    path = home / folder / name
                    found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                    if stat.S_ISLNK(found.st_mode):
                        target = os.readlink(name, dir_fd=descriptor)
                        if target.startswith("/") or ".." in target.split("/"):
                            raise self._error(path, f"is a link to {target}")
                    elif (why := _why_not(found, {0, self.owner})) is not None:
                        raise self._error(path, why)

    @contextmanager
    def _opened(self, parts: Sequence[str], flags: int) -> Iterator[int | None]:
        """A part of the cache, opened and checked; None if it does not exist."""
        try:
            descriptor = self._open_root()
        except FileNotFoundError:
            yield None
            return
        try:
            path = self.path
            for place, name in enumerate(parts):
                path /= name
                how = flags if place == len(parts) - 1 else os.O_RDONLY | os.O_DIRECTORY
                try:
                    inner = os.open(name, how | _FLAGS, dir_fd=descriptor)
                except FileNotFoundError:
                    yield None
                    return
                except OSError as error:
                    if error.errno in (errno.ELOOP, errno.ENOTDIR):
                        raise self._error(path, _kind_of(name, descriptor)) from error
                    raise self._unusable(path, error.strerror or str(error)) from error
                os.close(descriptor)
                descriptor = inner
                self._check(path, os.fstat(descriptor))
            yield descriptor
        finally:
            os.close(descriptor)

    def _open_root(self) -> int:
        """The folder of the cache. On the way to it, links of trusted users are followed. Raises FileNotFoundError,
        CacheError."""
        left, links = [*reversed(self.path.absolute().parts[1:])], 0
        path = Path("/")
        descriptor = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            while left:
                name = left.pop()
                inner = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
                found = os.fstat(inner)
                if stat.S_ISLNK(found.st_mode):
                    links += 1
                    target = os.readlink("", dir_fd=inner)
                    os.close(inner)
                    if found.st_uid not in self._above or links > _MOST_LINKS:
                        raise self._error(path / name, f"is a link of {_user(found.st_uid)}")
                    left += reversed([part for part in target.split("/") if part not in ("", ".")])
                    if target.startswith("/"):
                        os.close(descriptor)
                        path, descriptor = Path("/"), os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
                    continue
                os.close(descriptor)
                descriptor, path = inner, path.parent if name == ".." else path / name
                if not stat.S_ISDIR(found.st_mode):
                    raise self._unusable(path, "not a folder")
                if left and (why := _why_not(found, self._above, may_be_sticky=True)) is not None:
                    raise self._error(path, why)
            opened = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=descriptor)
        except PermissionError as error:
            raise self._unusable(path, error.strerror or str(error)) from error
        finally:
            os.close(descriptor)
        try:
            self._check(self.path, os.fstat(opened))
        except CacheError:
            os.close(opened)
            raise
        return opened

    @property
    def _above(self) -> set[int]:
        """The users who may own the folders above the cache."""
        return {0, os.geteuid(), self.owner, *_unmapped()}

    def _check(self, path: Path, found: os.stat_result) -> None:
        if (why := _why_not(found, {0, self.owner})) is not None:
            raise self._error(path, why)

    def _unusable(self, path: Path, why: str) -> BuildError:
        name = "SEATRIAL_CACHE" if self.is_ours else SHARED
        return BuildError(f"the cache of programs cannot be used: {path}: {why}", f"set {name} to another folder")

    def _error(self, path: Path, why: str) -> CacheError:
        if not self.is_ours:
            todo = f"ask {_user(self.owner)} to correct it (chmod -R go-w), or unset {SHARED}"
        else:
            todo = (
                f"remove {path} if it is not yours or you do not know who wrote there; what is missing is built again. "
                f"Else: chmod go-w; or set SEATRIAL_CACHE to another folder"
            )
        return CacheError(f"the cache of programs cannot be trusted: {path} {why}", todo)


def cache_folder() -> Path:
    """The build cache: $SEATRIAL_CACHE, else $XDG_CACHE_HOME/seatrial, else ~/.cache/seatrial."""
    named = os.environ.get("SEATRIAL_CACHE")
    if named:
        return Path(named).absolute()
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError as error:
        raise BuildError("no home folder to store programs in", "set SEATRIAL_CACHE to a folder") from error
    return Path(base).absolute() / "seatrial"


def own_cache() -> Cache:
    """The cache of this user, which new builds go into."""
    return Cache(cache_folder(), os.geteuid())


def caches() -> tuple[Cache, ...]:
    """The cache of this user, then the shared one, which is only read. Raises UsageError if $SEATRIAL_SHARED_CACHE is
    not OWNER:FOLDER."""
    named = os.environ.get(SHARED)
    if not named:
        return (own_cache(),)
    owner, _, folder = named.partition(":")
    try:
        number = int(owner) if owner.isdecimal() else pwd.getpwnam(owner).pw_uid
    except KeyError:
        raise UsageError(f"{SHARED}={named}: no user {owner!r}", _how_shared()) from None
    if not folder.startswith("/"):
        raise UsageError(f"{SHARED}={named} names no folder", _how_shared())
    return own_cache(), Cache(Path(folder), number, is_ours=False)


def _how_shared() -> str:
    return f"write it as {SHARED}=OWNER:/FOLDER, where OWNER is the user whose programs you trust"


def make_folder(path: Path) -> None:
    """Make a folder of the own cache, and those above it, so that nobody else can write there whatever the umask is.
    Raises OSError."""
    missing = []
    while not os.path.lexists(path):
        missing.append(path)
        path = path.parent
    for folder in reversed(missing):
        folder.mkdir(mode=0o755, exist_ok=True)


def check_folder(path: Path) -> None:
    """Check a folder of the own cache. Raises CacheError."""
    own = own_cache()
    own.names(*path.relative_to(own.path).parts)


def keep_others_from_writing(folder: Path) -> None:
    """Take the right to write from everybody but the owner, for what a tool made in a private folder."""
    for name, folders, files in os.walk(folder):
        for path in (Path(name), *(Path(name) / other for other in (*folders, *files))):
            mode = path.lstat().st_mode
            if mode & _OTHERS_WRITE and not stat.S_ISLNK(mode):
                path.chmod(stat.S_IMODE(mode) & ~_OTHERS_WRITE)


def _why_not(found: os.stat_result, owners: set[int], *, may_be_sticky: bool = False) -> str | None:
    """Why a file or folder may have been changed by somebody else; None if it cannot have been."""
    if found.st_uid not in owners:
        return f"belongs to {_user(found.st_uid)}"
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        return "is neither a file nor a folder"
    if found.st_mode & _OTHERS_WRITE and not (may_be_sticky and found.st_mode & stat.S_ISVTX):
        who = "everybody" if found.st_mode & stat.S_IWOTH else "its group"
        return f"can be written by {who} (mode {stat.S_IMODE(found.st_mode):04o})"
    return None


def _kind_of(name: str, folder: int) -> str:
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        return f"is a link to {os.readlink(name, dir_fd=folder)}" if stat.S_ISLNK(mode) else "is not a folder"
    except OSError:
        return "cannot be read"


def _user(number: int) -> str:
    try:
        return f"user {pwd.getpwuid(number).pw_name} (uid {number})"
    except KeyError:
        return f"uid {number}"


@cache
def _unmapped() -> frozenset[int]:
    """The user that stands for all without a number in this user namespace, root of the host among them
    (user_namespaces(7)); none outside of one."""
    try:
        mapped = Path("/proc/self/uid_map").read_text(encoding="ascii").split()
        if len(mapped) == 3 and int(mapped[2]) >= 2**32 - 1:
            return frozenset()
        return frozenset({int(Path("/proc/sys/kernel/overflowuid").read_text(encoding="ascii"))})
    except (OSError, ValueError):
        return frozenset()
