"""An image as a folder. As root it has the image's owners; else everything in it belongs to who made it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from seatrial.errors import ImageError
from seatrial.places.images.tree import Entry, Kind, Tree

_XATTR = "SCHILY.xattr."


def write_folder(tree: Tree, folder: Path, *, with_owners: bool) -> None:
    """Write the tree into a new folder. Raises ImageError, OSError.

    Nothing is followed: a tree has no entry below a link, and the folder is new and ours.
    """
    folder.mkdir(mode=0o755)
    first_of: dict[int, Path] = {}
    folders = [(folder, Entry(Kind.FOLDER, 0o755, tree.mtime_s))]
    for path, entry in tree.sorted():
        place = folder / path
        if entry.kind is Kind.FOLDER:
            place.mkdir(mode=0o700)
            folders.append((place, entry))
            continue
        first = first_of.setdefault(id(entry), place)
        if first != place:
            os.link(first, place, follow_symlinks=False)
        elif entry.kind is Kind.LINK:
            place.symlink_to(entry.target)
            _finish(place, entry, with_owners=with_owners)
        else:
            _write_file(place, entry)
            _finish(place, entry, with_owners=with_owners)
    for place, entry in reversed(folders):  # last: permissions may forbid writing, and writing changes times
        _finish(place, entry, with_owners=with_owners)


def _write_file(place: Path, entry: Entry) -> None:
    left = entry.size
    with entry.content.open() as source, place.open("xb") as to:
        while left > 0:
            piece = source.read(min(left, 1 << 20))
            if not piece:
                raise ImageError(f"{place.name} became shorter while it was read", "make the image again")
            to.write(piece)
            left -= len(piece)


def _finish(place: Path, entry: Entry, *, with_owners: bool) -> None:
    if with_owners:
        os.chown(place, entry.uid, entry.gid, follow_symlinks=False)
        for name, value in entry.attributes:
            with suppress(OSError):  # a file system without such attributes
                data = value.encode("utf-8", "surrogateescape")
                os.setxattr(place, name.removeprefix(_XATTR), data, follow_symlinks=False)
    if entry.kind is not Kind.LINK:
        # Without owners a setuid program would run as who made the image.
        place.chmod(entry.mode if with_owners else entry.mode & 0o1777)
    os.utime(place, (entry.mtime_s, entry.mtime_s), follow_symlinks=False)
