"""The files of an image as values, before anything is written, and the root for static programs.

Nothing in the tree leads outside.
Paths are relative to the image's root, without a leading slash (`usr/bin/env`). Symbolic links are values, too: they
are followed inside the tree only, never on this machine.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import BinaryIO

from msgspec.structs import replace

from seatrial.environments.loader import interpreter
from seatrial.errors import ImageError, ParseError, UsageError
from seatrial.model.frozen import Frozen

_MOST_LINKS = 40
_PIECE_B = 1 << 20
_SPECIAL = 0o6000
"""The bits setuid and setgid."""


class EntryKind(Enum):
    """What an entry is."""

    FOLDER = "folder"
    FILE = "file"
    LINK = "link"


class Data(Frozen):
    """Content in memory."""

    data: bytes

    def open(self) -> BinaryIO:
        """A stream of the content."""
        return io.BytesIO(self.data)


class FilePart(Frozen):
    """Content in a file of this machine, from `offset` on."""

    path: Path
    offset: int = 0

    def open(self) -> BinaryIO:
        """A stream at the content's begin. Raises ImageError if there is no regular file now."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise ImageError(f"{self.path} cannot be read: {error.strerror}") from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise ImageError(f"{self.path} is not a regular file any more", "make the image again")
        stream = os.fdopen(descriptor, "rb")
        stream.seek(self.offset)
        return stream


class Entry(Frozen, eq=False):
    """One file, folder or symbolic link. Hard links are the same entry under several paths.

    `mode` are permission bits; `attributes` are extended attributes, as pax headers name them.
    """

    kind: EntryKind
    mode: int
    mtime_s: int
    uid: int = 0
    gid: int = 0
    size: int = 0
    target: str = ""
    content: Data | FilePart = Data(b"")
    attributes: tuple[tuple[str, str], ...] = ()

    def pieces(self, path: str) -> Iterator[bytes]:
        """The content, piece by piece. Raises ImageError if it became shorter; `path` is that of the entry."""
        left = self.size
        with self.content.open() as stream:
            while left > 0:
                piece = stream.read(min(left, _PIECE_B))
                if not piece:
                    raise ImageError(f"/{path} became shorter while it was read", "make the image again")
                yield piece
                left -= len(piece)

    def without_setuid(self) -> Entry:
        """The same without setuid and setgid bits of a file; itself if it has none."""
        return replace(self, mode=self.mode & ~_SPECIAL) if self.is_setuid else self

    @property
    def is_setuid(self) -> bool:
        """Whether a program would run as somebody else. (On a folder the bit is about owners of new files.)"""
        return self.kind is EntryKind.FILE and bool(self.mode & _SPECIAL)


def folder(mtime_s: int, mode: int = 0o755) -> Entry:
    """A folder of root's."""
    return Entry(EntryKind.FOLDER, mode, mtime_s)


def text_file(data: bytes, mtime_s: int, mode: int = 0o644) -> Entry:
    """A file of root's."""
    return Entry(EntryKind.FILE, mode, mtime_s, size=len(data), content=Data(data))


class Tree:
    """Path -> entry. Every entry is in a folder, never below a link."""

    def __init__(self, mtime_s: int) -> None:
        self.mtime_s = mtime_s
        self._entries: dict[str, Entry] = {}

    def __contains__(self, path: str) -> bool:
        return path in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, path: str) -> Entry | None:
        """The entry at a path; links are not followed."""
        return self._entries.get(path)

    def read(self, path: str, most_B: int) -> bytes | None:
        """The content of a file; None if there is none at this path, or it is larger."""
        entry = self._entries.get(path)
        if entry is None or entry.kind is not EntryKind.FILE or entry.size > most_B:
            return None
        with entry.content.open() as stream:
            return stream.read(entry.size)

    def sorted(self) -> Iterator[tuple[str, Entry]]:
        """All entries, each folder before what is in it."""
        for path in sorted(self._entries):
            yield path, self._entries[path]

    def add(self, path: str, entry: Entry) -> None:
        """Add or replace an entry; missing folders above it are made. Raises UsageError if something above is not a
        folder, or a folder would become something else."""
        self._make_folders_above(path)
        before = self._entries.get(path)
        if before is not None and before.kind is EntryKind.FOLDER and entry.kind is not EntryKind.FOLDER:
            self._refuse(path, "is a folder already", "choose another path")
        if before is not None and before.kind is not EntryKind.FOLDER and entry.kind is EntryKind.FOLDER:
            self._refuse(path, "is a file or link already", "choose another path")
        self._entries[path] = entry

    def remove(self, path: str) -> None:
        """Remove an entry with all that is in it, if it is there."""
        if (found := self._entries.pop(path, None)) is not None and found.kind is EntryKind.FOLDER:
            self.empty(path)

    def empty(self, path: str) -> None:
        """Remove what is in a folder."""
        inside = f"{path}/" if path else ""
        for name in [name for name in self._entries if name.startswith(inside)]:
            del self._entries[name]

    def resolved(self, path: str) -> str:
        """Where a path leads inside the tree when the links in it, but not a link at its end, are followed: as it is in
        the container. Raises UsageError for links that lead to themselves."""
        waiting = path.split("/")[::-1]
        done: list[str] = []
        links = 0
        while waiting:
            part = waiting.pop()
            if part in ("", "."):
                continue
            if part == "..":
                done = done[:-1]
                continue
            here = self._entries.get("/".join([*done, part]))
            if here is None or here.kind is not EntryKind.LINK or not waiting:
                done.append(part)
                continue
            links += 1
            if links > _MOST_LINKS:
                self._refuse(path, "leads through links that do not end", "choose another path")
            if here.target.startswith("/"):
                done = []
            waiting += here.target.split("/")[::-1]
        return "/".join(done)

    def _make_folders_above(self, path: str) -> None:
        parts = path.split("/")[:-1]
        for depth in range(len(parts), 0, -1):
            above = "/".join(parts[:depth])
            found = self._entries.get(above)
            if found is None:
                continue
            if found.kind is not EntryKind.FOLDER:
                self._refuse(path, f"is below /{above}, which is not a folder", "choose another path")
            break
        else:
            depth = 0
        for missing in range(depth + 1, len(parts) + 1):
            self._entries["/".join(parts[:missing])] = folder(self.mtime_s)

    @staticmethod
    def _refuse(path: str, seen: str, todo: str) -> None:
        raise UsageError(f"/{path} {seen} in the image", todo)


_FOLDERS = ("dev", "etc", "home", "mnt", "opt", "proc", "root", "run", "sys", "tmp", "usr/bin", "var/tmp")
_MOUNT_POINTS = ("dev", "proc", "sys", "run", "tmp", "etc")
_PASSWD = b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
_GROUP = b"root:x:0:\nnogroup:x:65534:\n"


def add_static_root(tree: Tree) -> None:
    """A root without any program."""
    for path in _FOLDERS:
        tree.add(path, folder(tree.mtime_s, 0o1777 if path in ("tmp", "var/tmp") else 0o755))
    tree.add("bin", Entry(EntryKind.LINK, 0o777, tree.mtime_s, target="usr/bin"))
    tree.add("etc/passwd", text_file(_PASSWD, tree.mtime_s))
    tree.add("etc/group", text_file(_GROUP, tree.mtime_s))


def add_mount_points(tree: Tree) -> None:
    """What every runtime mounts on, if the base has none: a runtime cannot make it in a read-only image."""
    for path in _MOUNT_POINTS:
        if path not in tree:
            tree.add(path, folder(tree.mtime_s, 0o1777 if path == "tmp" else 0o755))
    etc = tree.get("etc")
    if etc is not None and etc.kind is EntryKind.FOLDER:
        for path in ("etc/hosts", "etc/resolv.conf", "etc/hostname"):
            if path not in tree:
                tree.add(path, text_file(b"", tree.mtime_s))


def require_static(path: Path) -> None:
    """Raises UsageError for a program that needs a dynamic loader, or anything that is not a program."""
    try:
        loader = interpreter(path)
    except (ParseError, OSError) as error:
        why = error.why if isinstance(error, ParseError) else error.strerror
        raise UsageError(f"{path} is not a program: {why}", "give a statically linked program") from error
    if loader is not None:
        todo = "link it with -static, or write base: {debian: SUITE}"
        raise UsageError(f"{path} is linked dynamically: it needs {loader}, and a static image has no libraries", todo)
