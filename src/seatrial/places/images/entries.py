"""The files of a folder, or of a tar archive, as entries of an image."""

from __future__ import annotations

import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from seatrial.errors import UsageError
from seatrial.places.images.tree import Entry, EntryKind, FilePart, Tree

_DEVICES = (stat.S_IFCHR, stat.S_IFBLK)
_KINDS = {stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket"}


class EntryLeftOut(Struct):
    """What of a base does not come into the image: setuid and setgid bits of files, and special files."""

    setuid: list[str] = []
    special: list[str] = []


def entry_of(path: Path, mtime_s: int) -> Entry:
    """The entry of one file, folder or link of this machine; what is ours becomes root's. Raises UsageError for what
    cannot be read and for special files."""
    try:
        found = path.lstat()
        target = str(path.readlink()) if stat.S_ISLNK(found.st_mode) else ""
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", "give a file or folder") from error
    kind = stat.S_IFMT(found.st_mode)
    if kind in _KINDS:
        raise UsageError(f"{path} is {_KINDS[kind]}, which no image has", "leave it out")
    uid = 0 if found.st_uid == os.geteuid() else found.st_uid
    gid = 0 if found.st_gid == os.getegid() else found.st_gid
    mode = stat.S_IMODE(found.st_mode)
    if kind == stat.S_IFREG:
        return Entry(EntryKind.FILE, mode, mtime_s, uid, gid, size=found.st_size, content=FilePart(path))
    if kind == stat.S_IFLNK:
        return Entry(EntryKind.LINK, 0o777, mtime_s, uid, gid, target=_utf8(target, path))
    return Entry(EntryKind.FOLDER, mode, mtime_s, uid, gid)


def add_folder(tree: Tree, root: Path, at: str, mtime_s: int, put: Callable[[str, Path, Entry], Entry | None]) -> None:
    """Add what is in `root` below `at` of the tree. `put` decides on each entry: itself, another, or None to leave it
    out. Special files are not added, and what other file systems are mounted on is left empty. Raises UsageError."""
    linked: dict[tuple[int, int], Entry] = {}
    for path, inside, found in _all(root):
        if stat.S_IFMT(found.st_mode) in _KINDS:
            continue
        several = stat.S_ISREG(found.st_mode) and found.st_nlink > 1
        identity = (found.st_dev, found.st_ino) if several else None  # of a file with several names
        place = f"{at}/{inside}" if at else inside
        if identity is not None and identity in linked:
            tree.add(place, linked[identity])
            continue
        entry = put(place, path, entry_of(path, mtime_s))
        if entry is None:
            continue
        if identity is not None:
            linked[identity] = entry
        tree.add(place, entry)


def add_base(tree: Tree, root: Path, mtime_s: int, left_out: EntryLeftOut) -> None:
    """Add a folder that is a whole system: setuid and setgid bits of its files are dropped, special files are left out
    (devices only below /dev). Raises UsageError for other devices, and for what cannot be read."""

    def put(place: str, path: Path, entry: Entry) -> Entry | None:
        if entry.is_setuid:
            left_out.setuid.append(place)
        return entry.without_setuid()

    for path, inside, found in _all(root):
        if (kind := stat.S_IFMT(found.st_mode)) in _KINDS:
            refuse_device(inside, kind in _DEVICES, str(path))
            left_out.special.append(inside)
    add_folder(tree, root, "", mtime_s, put)


def refuse_device(inside: str, is_device: bool, shown: str) -> None:
    """Raises UsageError for a device that is not below /dev of the image: runtimes make those of /dev themselves."""
    if is_device and not inside.startswith("dev/"):
        raise UsageError(f"{shown} is a device outside /dev", "remove it from the base: no image needs one")


def _all(root: Path) -> Iterator[tuple[Path, str, os.stat_result]]:
    """Everything in a folder, in the order of the names; links are not followed."""
    try:
        device = root.lstat().st_dev
        waiting = [(root, "")]
        while waiting:
            above, lead = waiting.pop()
            with os.scandir(above) as scanned:
                entries = sorted(scanned, key=lambda entry: entry.name)
            for entry in entries:
                found, path = entry.stat(follow_symlinks=False), above / entry.name
                inside = f"{lead}{_utf8(entry.name, path)}"
                yield path, inside, found
                if stat.S_ISDIR(found.st_mode) and found.st_dev == device:
                    waiting.append((path, f"{inside}/"))
    except OSError as error:
        raise UsageError(
            f"{error.filename} cannot be read: {error.strerror}", "give a folder that you can read"
        ) from error


def _utf8(name: str, path: Path) -> str:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{str(path.parent)!r} has a name that is not UTF-8", "rename it") from None
    return name


_XATTR = "SCHILY.xattr."
_MOST_ENTRIES = 20_000_000


def add_tar(
    tree: Tree,
    archive: Path,
    latest_s: int,
    left_out: EntryLeftOut | None,
    put: Callable[[Tree, str, Entry], None] = lambda tree, path, entry: tree.add(path, entry),
) -> None:
    """Add the entries of an uncompressed archive; times after `latest_s` become that.

    `left_out` None: the archive is trusted with setuid bits and capabilities; else these are dropped, and noted.
    Special files are left out, devices only below /dev. Raises UsageError for paths with .., names that are not UTF-8,
    what is below a link, damaged archives.
    """
    with opened_tar(archive) as stream:
        for member in _members(stream, archive):
            path = _path(member.name, archive)
            if path == "":
                continue
            entry = _entry(tree, member, path, archive, latest_s, trusted=left_out is None)
            if entry is None:
                refuse_device(path, member.ischr() or member.isblk(), f"{archive}: {path}")
                if left_out is not None:
                    left_out.special.append(path)
                continue
            if left_out is not None and entry.is_setuid:
                left_out.setuid.append(path)
                entry = entry.without_setuid()
            put(tree, path, entry)


@contextmanager
def opened_tar(archive: Path) -> Iterator[tarfile.TarFile]:
    """An uncompressed archive. Raises UsageError for what is none, or cannot be read, also within the block."""
    try:
        with tarfile.open(archive, "r:") as stream:
            yield stream
    except (tarfile.TarError, EOFError, OverflowError) as error:
        raise UsageError(f"{archive} is not a valid tar archive: {error}", "give another base") from error
    except OSError as error:
        raise UsageError(f"{archive} cannot be read: {error.strerror or error}", "give another base") from error


def _members(stream: tarfile.TarFile, archive: Path) -> Iterator[tarfile.TarInfo]:
    size, count = archive.stat().st_size, 0
    while (member := stream.next()) is not None:
        count += 1
        stream.members = []  # type: ignore[attr-defined]  # it would keep all of them
        if member.issparse():
            raise UsageError(f"{archive}: {member.name[:100]!r} is a sparse file", "make the archive without --sparse")
        if count > _MOST_ENTRIES or member.offset_data + (member.size if member.isreg() else 0) > size:
            raise UsageError(f"{archive} ends within {member.name[:100]!r}", "give the whole archive")
        yield member
    if 0 < size - stream.offset < tarfile.BLOCKSIZE:  # tarfile takes half a header for the end
        raise UsageError(f"{archive} ends within a header", "give the whole archive")


def _entry(
    tree: Tree, member: tarfile.TarInfo, path: str, archive: Path, latest_s: int, *, trusted: bool
) -> Entry | None:
    """The entry of a member; None for a special file."""
    if member.islnk():
        target = _path(member.linkname, archive)
        found = tree.get(target)
        if found is None or found.kind is EntryKind.FOLDER:
            raise UsageError(
                f"{archive}: the hard link /{path} points to /{target}, which is not a file", "give another base"
            )
        return found
    mtime_s = max(0, min(int(member.mtime), latest_s))
    owner = (max(0, member.uid), max(0, member.gid))
    mode = member.mode & 0o7777
    attributes = tuple(
        sorted(
            (name, value)
            for name, value in member.pax_headers.items()
            if name.startswith(_XATTR) and (trusted or not name.startswith(_XATTR + "security."))
        )
    )
    if member.isreg():
        content = FilePart(archive, member.offset_data)
        return Entry(EntryKind.FILE, mode, mtime_s, *owner, size=member.size, content=content, attributes=attributes)
    if member.issym():
        _text(member.linkname, archive)
        return Entry(EntryKind.LINK, 0o777, mtime_s, *owner, target=member.linkname)
    if member.isdir():
        return Entry(EntryKind.FOLDER, mode, mtime_s, *owner, attributes=attributes)
    return None


_LONGEST_PATH_B, _LONGEST_NAME_B = 4095, 255
"""PATH_MAX and NAME_MAX of Linux (limits.h). Each folder on the way is an entry: a path of 20,000 takes minutes."""


def _path(name: str, archive: Path) -> str:
    """A name of the archive as a path of the tree; "" for the root."""
    _text(name, archive)
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise UsageError(f"{archive}: {name[:100]!r} leads out of the image (..)", "give another base")
    if len(name.encode()) > _LONGEST_PATH_B or any(len(part.encode()) > _LONGEST_NAME_B for part in parts):
        raise UsageError(f"{archive}: the path {name[:100]!r}... is longer than Linux can have", "give another base")
    return "/".join(parts)


def _text(name: str, archive: Path) -> None:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{archive}: {name[:100]!r} is not UTF-8", "rename it in the base") from None
    if "\0" in name or "\n" in name:
        raise UsageError(f"{archive}: {name[:100]!r} is not a usable name", "rename it in the base")
