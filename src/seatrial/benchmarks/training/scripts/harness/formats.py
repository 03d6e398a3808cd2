"""The formats of a data set of images: how each is written, and how one image of it is read.

An entry of the index is (file, offset, length, label): of LMDB, the offset is the key. Files of `SEQUENTIAL` formats
are made to be read from their beginning to their end.
"""

from __future__ import annotations

import io
import os
import tarfile
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from harness import tfrecord

Items = Iterable[tuple[int, bytes]]
Entry = tuple[str, int, int, int]
_OF_A_SHARD = 128
_LMDB = "data.mdb"
SEQUENTIAL = ("webdataset", "tfrecord")


class Damaged(Exception):
    """A file of a data set does not have what was written."""


def _write_files(folder: Path, items: Items, _: int) -> list[Entry]:
    """A folder for each class, with a file for each image."""
    entries = []
    for number, (label, image) in enumerate(items):
        name = f"class-{label}/{number:08}.jpg"
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(image)
        entries.append((name, 0, len(image), label))
    return entries


def _write_lmdb(folder: Path, items: Items, most_B: int) -> list[Entry]:
    """One database, with the number of an image as its key; the first byte of a value is the label."""
    import lmdb

    entries = []
    with lmdb.open(str(folder / _LMDB), subdir=False, map_size=2 * most_B + (1 << 24), lock=False) as database:
        for number, (label, image) in enumerate(items):
            with database.begin(write=True) as writing:
                writing.put(b"%08d" % number, bytes((label,)) + image, append=True)
            entries.append((_LMDB, number, len(image), label))
    return entries


def _write_tar(folder: Path, items: Items, _: int) -> list[Entry]:
    """Shards as WebDataset reads them: for each image a member .jpg, and one .cls with its label."""
    entries: list[Entry] = []
    shard: Any = None
    for number, (label, image) in enumerate(items):
        if number % _OF_A_SHARD == 0:
            if shard is not None:
                shard.close()
            name = f"{number // _OF_A_SHARD:06}.tar"
            shard = tarfile.open(folder / name, "w", format=tarfile.USTAR_FORMAT)  # noqa: SIM115
        for kind, content in (("jpg", image), ("cls", str(label).encode())):
            member = tarfile.TarInfo(f"{number:08}.{kind}")
            member.size = len(content)
            if kind == "jpg":
                entries.append((name, shard.offset + tarfile.BLOCKSIZE, len(content), label))
            shard.addfile(member, io.BytesIO(content))
    shard.close()
    return entries


def _write_tfrecord(folder: Path, items: Items, _: int) -> list[Entry]:
    """Shards of records."""
    entries: list[Entry] = []
    for number, (label, image) in enumerate(items):
        name = f"{number // _OF_A_SHARD:06}.tfrecord"
        stored = tfrecord.record(label, image)
        with (folder / name).open("ab") as file:
            entries.append((name, file.tell(), len(stored), label))
            file.write(stored)
    return entries


WRITERS: dict[str, Callable[[Path, Items, int], list[Entry]]] = {
    "files": _write_files,
    "lmdb": _write_lmdb,
    "webdataset": _write_tar,
    "tfrecord": _write_tfrecord,
}


class Reader:
    """Reads images of one data set, in one process, with any number of threads. What is open stays open, but for single
    files."""

    def __init__(self, folder: Path, kind: str) -> None:
        self._folder, self._kind = folder, kind
        self._open: dict[str, int] = {}
        self._database: Any = None
        self._opening = threading.Lock()

    def image(self, entry: Entry) -> bytes:
        """The JPEG of an entry. Raises Damaged."""
        name, offset, length, label = entry
        try:
            if self._kind == "lmdb":
                found, image = self._of_database(offset)
            elif self._kind == "tfrecord":
                found, image = tfrecord.contents(os.pread(self._shard(name), length, offset))
                length = len(image)
            elif self._kind == "webdataset":
                found, image = label, os.pread(self._shard(name), length, offset)
            else:
                found, image = label, (self._folder / name).read_bytes()
        except (OSError, ValueError) as error:
            raise Damaged(f"{self._folder / name} cannot be read: {error}") from error
        if (found, len(image)) != (label, length):
            raise Damaged(f"{self._folder / name} does not have the image that was written at {offset}")
        return image

    def _shard(self, name: str) -> int:
        with self._opening:
            if name not in self._open:
                self._open[name] = os.open(self._folder / name, os.O_RDONLY)
            return self._open[name]

    def _of_database(self, number: int) -> tuple[int, bytes]:
        import lmdb

        try:
            with self._opening:
                if self._database is None:
                    path = str(self._folder / _LMDB)
                    self._database = lmdb.open(path, subdir=False, readonly=True, lock=False, readahead=False)
            with self._database.begin() as reading:
                value = reading.get(b"%08d" % number)
        except lmdb.Error as error:
            raise ValueError(str(error)) from error
        if not value:
            raise ValueError(f"the database has no image {number}")
        return value[0], value[1:]

    def close(self) -> None:
        """Close all files."""
        for number in self._open.values():
            os.close(number)
        self._open = {}
        if self._database is not None:
            self._database.close()
            self._database = None
