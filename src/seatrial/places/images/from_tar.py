"""The files of a tar archive as entries of an image: nothing is extracted, contents stay where they are."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

from seatrial.errors import UsageError
from seatrial.places.images.from_folder import LeftOut, refuse_device
from seatrial.places.images.tree import Entry, Kind, Part, Tree

_XATTR = "SCHILY.xattr."
_MOST_ENTRIES = 20_000_000


def add_tar(
    tree: Tree,
    archive: Path,
    latest_s: int,
    left_out: LeftOut | None,
    put: Callable[[Tree, str, Entry], None] = lambda tree, path, entry: tree.add(path, entry),
) -> None:
    """Add the entries of an uncompressed archive; times after `latest_s` become that.

    `left_out` None: the archive is trusted with setuid bits and capabilities; else these are dropped, and noted.
    Special files are left out, devices only below /dev. Raises UsageError for paths with .., names that are not UTF-8,
    what is below a link, damaged archives.
    """
    try:
        with tarfile.open(archive, "r:") as stream:
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
        if found is None or found.kind is Kind.FOLDER:
            raise UsageError(
                f"{archive}: the hard link /{path} points to /{target}, which is no file", "give another base"
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
        content = Part(archive, member.offset_data)
        return Entry(Kind.FILE, mode, mtime_s, *owner, size=member.size, content=content, attributes=attributes)
    if member.issym():
        _text(member.linkname, archive)
        return Entry(Kind.LINK, 0o777, mtime_s, *owner, target=member.linkname)
    if member.isdir():
        return Entry(Kind.FOLDER, mode, mtime_s, *owner, attributes=attributes)
    return None


def _path(name: str, archive: Path) -> str:
    """A name of the archive as a path of the tree; "" for the root."""
    _text(name, archive)
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise UsageError(f"{archive}: {name[:100]!r} leads out of the image (..)", "give another base")
    return "/".join(parts)


def _text(name: str, archive: Path) -> None:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{archive}: {name[:100]!r} is not UTF-8", "rename it in the base") from None
    if "\0" in name or "\n" in name:
        raise UsageError(f"{archive}: {name[:100]!r} is not a usable name", "rename it in the base")
