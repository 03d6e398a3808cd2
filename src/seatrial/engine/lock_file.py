"""The files by which measuring processes of one host see each other (docs/adr/0018).

A process that measures has one file in each common folder, and a write lock on it (fcntl(2), F_SETLK). Only the owner
of a file can open it for writing, so nobody can lock a file in another user's name: the user is the file's owner, the
time its last change (st_ctime) and the process id what the kernel says (F_GETLK). The lock ends with its process,
however that ends, and other namespaces see it wherever they see the file. Nothing at such a name counts without a write
lock, or if it is not a plain file which only its owner can write.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import pwd
import secrets
import stat
import struct
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from seatrial.errors import UsageError
from seatrial.model.frozen import Frozen
from seatrial.model.secrets import masked_words
from seatrial.model.units import duration
from seatrial.places.cluster.shape import FOLDER as CLUSTER_FOLDER
from seatrial.places.cluster.shape import own_cluster
from seatrial.printable import printable
from seatrial.probes.system import file_system_of

FOLDER = "SEATRIAL_LOCK"
"""Names one more folder, for containers that share none of the usual ones."""
HOST = "SEATRIAL_HOST"
"""Names the host that this process counts as; without it, each node of a cluster of one machine is its own host."""

_COMMON = tuple(map(Path, ("/run/lock", "/dev/shm", "/tmp", "/var/tmp")))  # noqa: S108 - shared on purpose
_SHARED_BY_HOSTS = (
    *("nfs", "lustre", "gpfs", "beegfs", "ceph", "cifs", "smb", "9p", "fuse", "afs", "orangefs", "panfs"),
    *("pvfs", "virtiofs", "wekafs", "daos", "glusterfs", "ocfs2", "gfs2"),
)
"""The first letters of file systems that several hosts may share."""
_LOCK = struct.Struct("@hhqqi0q")
"""struct flock: type, whence, start, length, process id."""
_LONGEST_TEXT = 200
_LONGEST_S = 1e8
_LARGEST_B = 4096
_LEFTOVER_S = 60.0
_TRIES = 3
_MOST_NAMED = 3


class Told(Frozen):
    """What a process states when it takes the lock: its results folder ("": none) and how long it expects to hold it at
    most, in seconds."""

    results: str = ""
    lasts_s: float | None = None


_NOTHING_TOLD = Told()


class Holder(Frozen):
    """A process that holds the lock. `pid` is 0 if it is in a process namespace that this process cannot see into;
    `since_s` is in seconds since the epoch; `command` is "" if unknown. `told` is what it states about itself."""

    uid: int
    pid: int
    since_s: float
    command: str
    file: Path
    told: Told = Told()

    @property
    def user(self) -> str:
        """The name of its user, or the number if it has no name here."""
        try:
            return pwd.getpwuid(self.uid).pw_name
        except KeyError:
            return str(self.uid)

    def text(self) -> str:
        """Who it is, since when, for how long, how long it may still take, its results folder and its command."""
        pid = f"pid {self.pid}" if self.pid else "a process of another container"
        started = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.since_s))
        command = f", command: {self.command}" if self.command else ", command unknown"
        for_s = time.time() - self.since_s
        left = "" if self.told.lasts_s is None else f" ({_left(self.told.lasts_s, for_s)})"
        folder = f", results folder: {self.told.results}" if self.told.results else ""
        return f"user {self.user}, {pid}, since {started}, for {duration(for_s)}{left}{folder}{command}"


def _left(lasts_s: float, for_s: float) -> str:
    """How long it still takes, as it expected itself."""
    if for_s < lasts_s:
        return f"expects at most {duration(lasts_s - for_s)} more"
    return f"longer than the {duration(lasts_s)} that it expected"


class OwnFiles(Struct):
    """The files of this process, locked; empty if it could make none."""

    files: dict[Path, int] = {}
    inodes: set[tuple[int, int]] = set()

    @classmethod
    def make(cls, places: Collection[Path], told: Told = _NOTHING_TOLD) -> OwnFiles:
        """A file in each folder that allows it."""
        own, text = cls(), _description(told)
        try:
            for place in places:
                own._add(place, text)
        except BaseException:
            own.remove()
            raise
        return own

    def _add(self, place: Path, text: bytes) -> None:
        for _ in range(_TRIES):  # somebody may put a read lock on the new file before we lock it
            token = secrets.token_hex(8)
            private, path = place / f".{_prefix()}{token}.lock", place / f"{_prefix()}{token}.lock"
            try:
                descriptor = os.open(private, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
            except OSError:
                return
            self.files[private] = descriptor
            try:
                os.fchmod(descriptor, 0o644)
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                with suppress(OSError):  # a full disk: the lock counts without it
                    os.write(descriptor, text)
                private.rename(path)  # at this name it is locked from its beginning
            except OSError:
                self._remove(private)
                continue
            del self.files[private]
            self.files[path] = descriptor
            found = os.fstat(descriptor)
            self.inodes.add((found.st_dev, found.st_ino))
            return

    def remove(self) -> None:
        """Remove all, which ends the locks."""
        for path in list(self.files):
            self._remove(path)
        self.inodes.clear()

    def _remove(self, path: Path) -> None:
        with suppress(OSError):
            path.unlink()
        os.close(self.files.pop(path))


def lock_places() -> tuple[Path, ...]:
    """The folders of the files: $SEATRIAL_LOCK, and every common folder of this host that is safe and not shared with
    other hosts. Raises UsageError if $SEATRIAL_LOCK cannot be used."""
    places = [place for place in _COMMON if _unsafe(place) is None and not _is_shared_by_hosts(place)]
    named = os.environ.get(FOLDER)
    if named:
        if (why := _unsafe(Path(named))) is not None:
            raise UsageError(f"{FOLDER}={named} cannot hold the lock of this host: {why}", f"correct or unset {FOLDER}")
        places.insert(0, Path(named))
    inodes: dict[tuple[int, int], Path] = {}
    for place in places:
        found = place.stat()
        inodes.setdefault((found.st_dev, found.st_ino), place)
    return tuple(inodes.values())


def holders(places: Collection[Path], own: OwnFiles, past: Collection[int] = ()) -> tuple[Holder, ...]:
    """The other processes that hold the lock, each once, but for those of the users `past`, the longest first. Removes
    files that killed processes of this user left."""
    found: dict[tuple[int, int, bytes], Holder] = {}
    for holder, text in (held for place in places for held in _held_in(place, own)):
        key = (holder.uid, holder.pid, b"" if holder.pid else text)  # a process has the same text in each folder
        if holder.uid not in past and (key not in found or holder.since_s < found[key].since_s):
            found[key] = holder
    return tuple(sorted(found.values(), key=lambda holder: holder.since_s))


def holders_text(found: Sequence[Holder]) -> str:
    """The holders for a message; of many, the first."""
    more = f"; and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    return "; ".join(holder.text() for holder in found[:_MOST_NAMED]) + more


def _held_in(place: Path, own: OwnFiles) -> Iterator[tuple[Holder, bytes]]:
    try:
        with os.scandir(place) as entries:
            names = [entry.name for entry in entries if entry.name.endswith(".lock") and _prefix() in entry.name]
    except OSError:
        return
    for name in names:
        if name.startswith((_prefix(), f".{_prefix()}")):
            held = _examine(place / name, own)
            if held is not None and not name.startswith("."):
                yield held


def _examine(path: Path, own: OwnFiles) -> tuple[Holder, bytes] | None:
    """The process that holds this file, if any, and its text; a leftover of this user is removed."""
    try:
        before = path.lstat()
        # Closing any descriptor of an own file would end its lock (fcntl(2)): it is not even opened.
        if (before.st_dev, before.st_ino) in own.inodes or not _is_plain(before):
            return None
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(descriptor)
        if (found.st_dev, found.st_ino) != (before.st_dev, before.st_ino) or not _is_plain(found):
            return None
        # Would a read lock have to wait? Only for a write lock, which only the owner can have.
        asked = _LOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = _LOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
        if kind != fcntl.F_WRLCK:
            is_new = path.name.startswith(".") and time.time() - found.st_ctime < _LEFTOVER_S
            if found.st_uid == os.geteuid() and not is_new:
                path.unlink()
            return None
        text = os.pread(descriptor, _LARGEST_B, 0)
        command, told = _described(text)
        return Holder(found.st_uid, max(pid, 0), found.st_ctime, _command(pid) or command, path, told), text
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _is_plain(found: os.stat_result) -> bool:
    return stat.S_ISREG(found.st_mode) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _prefix() -> str:
    """The beginning of the names of this host's files."""
    named = os.environ.get(HOST) or _cluster_node(os.environ.get(CLUSTER_FOLDER), platform.node())
    return f"seatrial-{'host' if not named else hashlib.sha256(named.encode()).hexdigest()[:12]}-"


@lru_cache(maxsize=8)
def _cluster_node(folder: str | None, node: str) -> str:
    """The name as a host of a node of the cluster in this folder; "" if this process is on none."""
    state = None if folder is None else own_cluster({CLUSTER_FOLDER: folder})
    is_node = state is not None and any(one.name == node for one in state.shape.nodes)
    return f"{state.name} {node}" if state is not None and is_node else ""


def _description(told: Told) -> bytes:
    command = _printable(" ".join(masked_words(("seatrial", *sys.argv[1:]))))
    described = {"pid": os.getpid(), "host": platform.node(), "since_s": time.time(), "command": command}
    return json.dumps({**described, "results": _printable(told.results), "lasts_s": told.lasts_s}).encode()


def _command(pid: int) -> str:
    """The command of a process; "" if it cannot be seen."""
    if pid <= 0:
        return ""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    return _printable(" ".join(masked_words([word.decode("utf-8", "replace") for word in words if word])))


def _described(text: bytes) -> tuple[str, Told]:
    """The command in the text of a file, and what else it states; it may be anything."""
    try:
        described = json.loads(text)
        command, results, lasts_s = (described.get(name) for name in ("command", "results", "lasts_s"))
    except (ValueError, AttributeError, RecursionError):
        return "", Told()
    is_time = isinstance(lasts_s, int | float) and not isinstance(lasts_s, bool) and 0 <= lasts_s < _LONGEST_S
    told = Told(_printable(results) if isinstance(results, str) else "", float(lasts_s) if is_time else None)
    return _printable(command) if isinstance(command, str) else "", told


def _printable(text: str) -> str:
    """Text of another user, for a terminal."""
    shown = printable(text[: _LONGEST_TEXT + 1])
    return shown if len(shown) <= _LONGEST_TEXT else f"{shown[:_LONGEST_TEXT]}..."


def _unsafe(place: Path) -> str | None:
    """Why a folder cannot hold the files; None if it can."""
    try:
        found = place.stat()
    except OSError as error:
        return error.strerror or str(error)
    if not stat.S_ISDIR(found.st_mode):
        return "it is not a folder"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX:
        return "others could remove the files of its users (chmod +t makes it safe)"
    if not os.access(place, os.W_OK | os.X_OK):
        return "it cannot be written"
    return None


def _is_shared_by_hosts(place: Path) -> bool:
    found = file_system_of(os.path.realpath(place))
    return found is not None and str(found["type"]).startswith(_SHARED_BY_HOSTS)
