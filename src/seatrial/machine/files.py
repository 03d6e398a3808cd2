"""Files below a root folder: all access of machine/ to sysfs and procfs.

Synthetic and recorded trees are read by the same code as the live one. A file that is missing or unreadable is None;
files that require more permissions are listed in `refused`, since the user can act on that.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from seatrial.machine.survey import FactBook

_LIMIT_BYTES = 16 << 20  # the longest file read here is /proc/cpuinfo: 1.5 kB per CPU
_PIECE_BYTES = 64 << 10


class FileTree:
    """Reads below `root`; paths are written as on the live system ("/proc/meminfo")."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.refused: set[str] = set()

    @property
    def is_live(self) -> bool:
        """Whether this is the root of the running system."""
        return self.root == Path("/")

    def where(self, path: str) -> Path:
        """The file itself."""
        return self.root / path.lstrip("/")

    def data(self, path: str) -> bytes | None:
        """The bytes of a file, at most 16 MiB, or None."""
        try:
            # In small pieces: /proc/sys refuses reads of 4 MiB or more, which would need a kernel buffer of that size.
            with self.where(path).open("rb", buffering=0) as stream:
                data = bytearray()
                while len(data) < _LIMIT_BYTES and (piece := stream.read(_PIECE_BYTES)):
                    data += piece
                return bytes(data)
        except PermissionError:
            self.refused.add(path)
            return None
        except OSError:  # missing; a folder; EINVAL and EIO of drivers without a value
            return None

    def opened(self, path: str) -> BinaryIO | None:
        """A file to read parts of, or None."""
        try:
            return (self.root / path.lstrip("/")).open("rb")
        except OSError:
            return None

    def text(self, path: str) -> str | None:
        """The text of a file (bytes that are not UTF-8 replaced), or None."""
        data = self.data(path)
        return None if data is None else data.decode("utf-8", "replace")

    def word(self, path: str) -> str | None:
        """The text of a one-value file, stripped; None if it is missing or empty."""
        return (self.text(path) or "").strip() or None

    def integer(self, path: str) -> int | None:
        """The whole number (decimal or 0x...) in a one-value file, or None."""
        word = self.word(path)
        if word is None:
            return None
        try:
            return int(word, 16 if word.lower().startswith("0x") else 10)
        except ValueError:
            return None

    def say_words(self, book: FactBook, folder: str, **files: str) -> None:
        """Add the words of one-value files in a folder, given as FACT=FILE."""
        for fact, file in files.items():
            book.say(fact, self.word(f"{folder}/{file}"), f"{folder}/{file}")

    def say_integers(self, book: FactBook, folder: str, **files: str) -> None:
        """The same for whole numbers."""
        for fact, file in files.items():
            book.say(fact, self.integer(f"{folder}/{file}"), f"{folder}/{file}")

    def names(self, path: str) -> tuple[str, ...]:
        """The names in a folder, sorted; () if it does not exist."""
        try:
            return tuple(sorted(entry.name for entry in (self.root / path.lstrip("/")).iterdir()))
        except OSError:
            return ()

    def exists(self, path: str) -> bool:
        """Whether the file or folder exists and is accessible."""
        try:
            return (self.root / path.lstrip("/")).exists()
        except OSError:
            return False

    def target(self, path: str) -> str | None:
        """The text of a symbolic link ("pid:[4026531836]"), or None."""
        try:
            return str((self.root / path.lstrip("/")).readlink())
        except OSError:
            return None

    def real(self, path: str) -> str | None:
        """The path with symbolic links resolved, written as on the live system; None if it leaves the root."""
        try:
            resolved = (self.root / path.lstrip("/")).resolve(strict=True)
            below = resolved.relative_to(self.root.resolve())
            return "/" if below == Path() else f"/{below}"
        except (OSError, ValueError, RuntimeError):
            return None
