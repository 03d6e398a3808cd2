"""An image as one tar stream in which the same files give the same bytes, and the digest of its content.

Entries come in the order of their paths, hard links behind the file that they name, times as whole seconds, owners as
numbers. The format is pax (POSIX.1-2001, "pax Interchange Format").
"""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Callable
from typing import BinaryIO

from seatrial.errors import ImageError
from seatrial.model.environment.image import FACTS_FILE, FACTS_FOLDER
from seatrial.model.frozen import Frozen
from seatrial.places.images.tree import Entry, Kind, Tree, folder

_TYPES = {Kind.FOLDER: tarfile.DIRTYPE, Kind.FILE: tarfile.REGTYPE, Kind.LINK: tarfile.SYMTYPE}

_PIECE_B = 1 << 20


class Content(Frozen):
    """What a stream holds: the SHA-256 of every entry's path, kind, permissions, owner, time, target and bytes; the
    number of files; their bytes, of hard links once."""

    digest: str
    files: int
    size_B: int


def write_tar(tree: Tree, to: BinaryIO, last: Callable[[Content], Entry]) -> Entry:
    """Write the tree, and at the end the file of facts, which `last` makes from the content of all others. The entry of
    that file. Raises ImageError if a file changes meanwhile, OSError."""
    whole = hashlib.sha256()
    first_of: dict[int, str] = {}
    files = size_B = 0
    for path, entry in tree.sorted():
        if path in (FACTS_FOLDER, FACTS_FILE):
            continue
        first = first_of.setdefault(id(entry), path)
        digest = _write(to, path, entry, first)
        files += entry.kind is Kind.FILE
        size_B += entry.size if first == path else 0
        whole.update(_line(path, entry, first, digest))
    entry = last(Content(f"sha256:{whole.hexdigest()}", files, size_B))
    _write(to, FACTS_FOLDER, folder(tree.mtime_s), FACTS_FOLDER)  # here: else its time would change when unpacked
    _write(to, FACTS_FILE, entry, FACTS_FILE)
    to.write(bytes(2 * tarfile.BLOCKSIZE))
    return entry


def _line(path: str, entry: Entry, first: str, digest: str) -> bytes:
    words = [
        path,
        entry.kind.value,
        entry.mode,
        entry.uid,
        entry.gid,
        entry.mtime_s,
        entry.target,
        entry.attributes,
        first,
        digest,
    ]
    return json.dumps(words).encode() + b"\n"


def _write(to: BinaryIO, path: str, entry: Entry, first: str) -> str:
    """Write one entry; the SHA-256 of its content."""
    info = tarfile.TarInfo(f"./{path}")
    info.mode, info.uid, info.gid, info.mtime = entry.mode, entry.uid, entry.gid, entry.mtime_s
    info.pax_headers = dict(entry.attributes)
    is_again = entry.kind is not Kind.FOLDER and first != path
    if is_again:
        info.type, info.linkname = tarfile.LNKTYPE, f"./{first}"
    else:
        info.type, info.linkname, info.size = _TYPES[entry.kind], entry.target, entry.size
    to.write(info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"))
    if is_again or entry.kind is not Kind.FILE:
        return ""
    digest = hashlib.sha256()
    left = entry.size
    with entry.content.open() as content:
        while left > 0:
            piece = content.read(min(left, _PIECE_B))
            if not piece:
                raise ImageError(f"/{path} became shorter while it was read", "make the image again")
            digest.update(piece)
            to.write(piece)
            left -= len(piece)
    to.write(bytes(-entry.size % tarfile.BLOCKSIZE))
    return digest.hexdigest()
