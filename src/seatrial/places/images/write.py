"""An image as one tar stream in which the same files give the same bytes, with the digest of its content, as a folder,
as squashfs and as SIF.

Entries of the stream come in the order of their paths, hard links behind the file that they name, times as whole
seconds, owners as numbers. The format is pax (POSIX.1-2001, "pax Interchange Format").
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import tarfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from seatrial.errors import ImageError
from seatrial.model.environment.image import FACTS_FILE, FACTS_FOLDER
from seatrial.model.frozen import Frozen
from seatrial.places.images.tools import as_root, run_tool, tool, tool_environment
from seatrial.places.images.tree import Entry, EntryKind, Tree, folder

_TYPES = {EntryKind.FOLDER: tarfile.DIRTYPE, EntryKind.FILE: tarfile.REGTYPE, EntryKind.LINK: tarfile.SYMTYPE}


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
        files += entry.kind is EntryKind.FILE
        size_B += entry.size if first == path else 0
        whole.update(_line(path, entry, first, digest))
    entry = last(Content(f"sha256:{whole.hexdigest()}", files, size_B))
    _write(to, FACTS_FOLDER, folder(tree.mtime_s), FACTS_FOLDER)  # here: else its time would change when unpacked
    _write(to, FACTS_FILE, entry, FACTS_FILE)
    to.write(bytes(2 * tarfile.BLOCKSIZE))
    return entry


def _line(path: str, entry: Entry, first: str, digest: str) -> bytes:
    owner = (entry.uid, entry.gid, entry.mtime_s)
    words = [path, entry.kind.value, entry.mode, *owner, entry.target, entry.attributes, first, digest]
    return json.dumps(words).encode() + b"\n"


def _write(to: BinaryIO, path: str, entry: Entry, first: str) -> str:
    """Write one entry; the SHA-256 of its content."""
    info = tarfile.TarInfo(f"./{path}")
    info.mode, info.uid, info.gid, info.mtime = entry.mode, entry.uid, entry.gid, entry.mtime_s
    info.pax_headers = dict(entry.attributes)
    is_again = entry.kind is not EntryKind.FOLDER and first != path
    if is_again:
        info.type, info.linkname = tarfile.LNKTYPE, f"./{first}"
    else:
        info.type, info.linkname, info.size = _TYPES[entry.kind], entry.target, entry.size
    to.write(info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"))
    if is_again or entry.kind is not EntryKind.FILE:
        return ""
    digest = hashlib.sha256()
    for piece in entry.pieces(path):
        digest.update(piece)
        to.write(piece)
    to.write(bytes(-entry.size % tarfile.BLOCKSIZE))
    return digest.hexdigest()


_XATTR = "SCHILY.xattr."


def write_folder(tree: Tree, folder: Path, *, with_owners: bool) -> None:
    """Write the tree into a new folder. Raises ImageError, OSError.

    Nothing is followed: a tree has no entry below a link, and the folder is new and ours.
    """
    folder.mkdir(mode=0o755)
    first_of: dict[int, Path] = {}
    folders = [(folder, Entry(EntryKind.FOLDER, 0o755, tree.mtime_s))]
    for path, entry in tree.sorted():
        place = folder / path
        if entry.kind is EntryKind.FOLDER:
            place.mkdir(mode=0o700)
            folders.append((place, entry))
            continue
        first = first_of.setdefault(id(entry), place)
        if first != place:
            os.link(first, place, follow_symlinks=False)
        elif entry.kind is EntryKind.LINK:
            place.symlink_to(entry.target)
            _finish(place, entry, with_owners=with_owners)
        else:
            with place.open("xb") as to:
                to.writelines(entry.pieces(path))
            _finish(place, entry, with_owners=with_owners)
    for place, entry in reversed(folders):  # last: permissions may forbid writing, and writing changes times
        _finish(place, entry, with_owners=with_owners)


def _finish(place: Path, entry: Entry, *, with_owners: bool) -> None:
    if with_owners:
        os.chown(place, entry.uid, entry.gid, follow_symlinks=False)
        for name, value in entry.attributes:
            with suppress(OSError):  # a file system without such attributes
                data = value.encode("utf-8", "surrogateescape")
                os.setxattr(place, name.removeprefix(_XATTR), data, follow_symlinks=False)
    if entry.kind is not EntryKind.LINK:
        # Without owners a setuid program would run as who made the image.
        place.chmod(entry.mode if with_owners else entry.mode & 0o1777)
    os.utime(place, (entry.mtime_s, entry.mtime_s), follow_symlinks=False)


_LEVEL = "6"
"""Of zstd; the default of 15 takes much longer."""
_MAGIC = 0x73717368
_UNCOMPRESSED = 1 << 15
"""The bit of a metadata block's header."""
_SUPERBLOCK = struct.Struct("<IIIII6HQQQQQ")
"""Up to the start of the table of inodes: the 12th field is the root, the 14th the table of ids."""


def write_squashfs(root: Path, image: Path, epoch_s: int) -> None:
    """Write a squashfs of the tar `root`; the same tar gives the same bytes. Raises ImageError.

    Without root it runs in a user namespace where there are such: mksquashfs puts its own user into the image.
    """
    words = [tool("mksquashfs", "squashfs-tools"), "-", str(image), "-tar", "-noappend", "-quiet", "-no-progress"]
    words += ["-comp", "zstd", "-Xcompression-level", _LEVEL, "-noI", "-mkfs-time", str(epoch_s)]
    run_tool([*as_root(), *words], source=root, remedy="mksquashfs 4.5 or later is needed, which reads tar")
    _set_root(image, epoch_s)


def _set_root(image: Path, epoch_s: int) -> None:
    """Give the root folder its permissions, owner and time, for which mksquashfs 4.5 takes 0777, itself and now when it
    reads a tar. (Format: squashfs in Linux, fs/squashfs/squashfs_fs.h.) Raises ImageError for another format."""
    with image.open("r+b") as stream:
        magic, *_, reference, _, ids_at, _, inodes_at = _SUPERBLOCK.unpack(stream.read(_SUPERBLOCK.size))
        stream.seek(ids_at)
        (first_ids,) = struct.unpack("<Q", stream.read(8))
        stream.seek(inodes_at + (reference >> 16))
        (header,) = struct.unpack("<H", stream.read(2))
        if magic != _MAGIC or not header & _UNCOMPRESSED:
            raise ImageError("mksquashfs wrote another format than expected", "install squashfs-tools 4.5 or later")
        stream.seek(first_ids)
        (ids_header,) = struct.unpack("<H", stream.read(2))
        ids = stream.read(ids_header & (_UNCOMPRESSED - 1))
        owner = 0
        if ids_header & _UNCOMPRESSED:
            values = struct.unpack(f"<{len(ids) // 4}I", ids)
            owner = values.index(0) if 0 in values else 0
        stream.seek(inodes_at + (reference >> 16) + 2 + (reference & 0xFFFF) + 2)  # behind the type of the inode
        stream.write(struct.pack("<HHHI", 0o755, owner, owner, epoch_s))


def need_sif() -> str:
    """The path of apptainer or singularity. Raises ImageError without either."""
    for name in ("apptainer", "singularity"):
        with suppress(ImageError):
            return tool(name, name)
    raise ImageError(
        "SIF needs apptainer or singularity, and neither is here",
        "write a squashfs (.sqfs), which apptainer runs as well, or use --also-as apptainer=FILE where it is",
    )


def write_sif(command: str, folder: Path, image: Path, epoch_s: int) -> None:
    """Write a SIF of a folder. Raises ImageError. (Unverified: Debian 12 has no apptainer.)"""
    environment = tool_environment(SOURCE_DATE_EPOCH=str(epoch_s))
    run_tool([command, "build", "--force", str(image), str(folder)], environment=environment)
