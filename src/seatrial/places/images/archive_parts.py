"""The files in an archive of layers, a tar or a folder: read where they are, never extracted."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import stat
import tarfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

from seatrial.errors import UsageError

_MOST_JSON_B = 8 << 20
_PIECE_B = 1 << 20
_MOST_FILES = 100_000
_MOST_OTHERS = 1000
_MARKS = ("oci-layout", "manifest.json")
"""The files by which archives of layers are known."""


class ArchiveParts:
    """The regular files of an archive by path. `title` is what it should be, for messages. Raises UsageError for a
    damaged archive."""

    def __init__(self, archive: Path, title: str) -> None:
        self.archive = archive
        self._title = title
        self._places = _of_folder(archive) if archive.is_dir() else _of_tar(archive)

    def __contains__(self, path: str) -> bool:
        return path in self._places

    def small(self, path: str) -> bytes:
        """A file of at most 8 MiB."""
        file, offset, size = self._place(path)
        if size > _MOST_JSON_B:
            raise self.damaged(f"{path} is larger than 8 MiB")
        with _opened(file) as stream:
            stream.seek(offset)
            return stream.read(size)

    def sha256(self, path: str) -> str:
        """The digest of a file, in hexadecimal digits."""
        file, offset, left = self._place(path)
        found = hashlib.sha256()
        with _opened(file) as stream:
            stream.seek(offset)
            while left > 0 and (piece := stream.read(min(_PIECE_B, left))):
                found.update(piece)
                left -= len(piece)
        return found.hexdigest()

    def layer(self, path: str, to: Path) -> None:
        """Write a layer as an uncompressed tar."""
        file, offset, size = self._place(path)
        with _opened(file) as stream, to.open("wb") as made:
            stream.seek(offset)
            is_gzip = stream.read(2) == b"\x1f\x8b"
            stream.seek(offset)
            if is_gzip:
                self._unpack(stream, size, made, to.parent)
            else:
                shutil.copyfileobj(io.BufferedReader(_Window(stream, size)), made, _PIECE_B)

    def _unpack(self, stream: BinaryIO, size: int, made: BinaryIO, folder: Path) -> None:
        written, free = 0, shutil.disk_usage(folder).free
        try:
            with gzip.GzipFile(fileobj=io.BufferedReader(_Window(stream, size))) as unpacked:
                while piece := unpacked.read(_PIECE_B):
                    written += len(piece)
                    if written > free:
                        raise self.damaged("a layer is larger than the free space of the temporary folder")
                    made.write(piece)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise self.damaged(f"a layer is damaged: {error}") from None

    def _place(self, path: str) -> tuple[Path, int, int]:
        if path not in self._places:
            raise self.damaged(f"{path[:100]} is missing")
        return self._places[path]

    def damaged(self, why: str) -> UsageError:
        """The error for an archive that is not what it should be."""
        return UsageError(f"{self.archive} is not a valid {self._title}: {why}", "give another base")


def _opened(file: Path) -> BinaryIO:
    """Not through a link: that could lead out of a folder."""
    return os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")


def _of_tar(archive: Path) -> dict[str, tuple[Path, int, int]]:
    """Path -> (archive, offset, bytes) of the regular files in a tar."""
    try:
        with tarfile.open(archive, "r:") as stream:
            found: dict[str, tuple[Path, int, int]] = {}
            for member in stream:
                if member.isreg() and not member.issparse():
                    found[member.name.removeprefix("./")] = (archive, member.offset_data, member.size)
                    is_known = any(mark in found for mark in _MARKS)
                    if len(found) > _MOST_FILES or (not is_known and len(found) > _MOST_OTHERS):
                        break  # no archive of layers has so many
            return found
    except (tarfile.TarError, EOFError, OverflowError) as error:
        raise UsageError(f"{archive} is not a valid tar archive: {error}", "give another base") from error
    except OSError as error:
        raise UsageError(f"{archive} cannot be read: {error.strerror or error}", "give another base") from error


def _of_folder(folder: Path) -> dict[str, tuple[Path, int, int]]:
    """The same of an image layout in a folder; links in it are not followed."""
    try:
        paths = [folder / "oci-layout", folder / "index.json", *_blobs(folder)]
        infos = [(path, path.lstat()) for path in paths]
    except OSError as error:
        raise UsageError(f"{folder} cannot be read: {error.strerror or error}", "give another base") from error
    return {
        str(path.relative_to(folder)): (path, 0, info.st_size) for path, info in infos if stat.S_ISREG(info.st_mode)
    }


def _blobs(folder: Path) -> list[Path]:
    blobs = folder / "blobs" / "sha256"
    if not all(stat.S_ISDIR(path.lstat().st_mode) for path in (blobs.parent, blobs)):
        return []
    return sorted(blobs.iterdir())[:_MOST_FILES]


class _Window(io.RawIOBase):
    """The next bytes of a stream, and no more."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        super().__init__()
        self._stream, self._left = stream, size

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """As of a file that ends where the window does."""
        data = self._stream.read(min(self._left, len(buffer)))
        self._left -= len(data)
        buffer[: len(data)] = data
        return len(data)
