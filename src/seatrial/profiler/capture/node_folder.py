"""The folder in a node's memory for the tables of running ranks: with a mapped file on a network file system, every
modified page would cross the network."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from pathlib import Path

from seatrial.errors import StoreError

_MEMORY = Path("/dev/shm")  # noqa: S108  we create a private folder in it
_KEPT = (".mpi", ".trace", ".io")
_COLLECTORS_END_S = 10.0
_LOOK_EVERY_S = 0.02


def node_folder(target: Path) -> Path | None:
    """The folder that holds the tables for `target` while ranks run, the same on each node; None without a memory file
    system.

    The ranks create it if necessary, with access for this user only.
    """
    if not _MEMORY.is_dir():
        return None
    name = hashlib.sha256(os.fsencode(target.absolute())).hexdigest()[:16]
    return _MEMORY / f"seatrial-{os.getuid()}-{os.getpid()}-{name}"


class NodeFolder:
    """A context in which a command runs. The ranks and the collectors of all nodes move their files to `target`; at the
    end, files still in `path` on this node are moved there too, and `path` is removed."""

    def __init__(self, path: Path | None, target: Path) -> None:
        self._path = path
        self._target = target

    def __enter__(self) -> None:
        if self._path is not None:
            shutil.rmtree(self._path, ignore_errors=True)  # left by an earlier process with our pid

    def __exit__(self, *raised: object) -> None:
        self._wait_for_collectors()
        if self._path is None or not self._path.is_dir():
            return
        try:
            for file in sorted(self._path.iterdir()):
                if file.suffix in _KEPT:  # newer than the copy of a collector that was killed
                    private = self._target / f".{file.name}.part"
                    copy_sparse(file, private)
                    private.replace(self._target / file.name)
        except OSError as error:
            raise StoreError(
                f"cannot write {self._target}: {error.strerror or error}",
                f"the recorded files are in {self._path}",
            ) from error
        shutil.rmtree(self._path, ignore_errors=True)

    def _wait_for_collectors(self) -> None:
        """A file HOST.collecting exists while a collector still has files to move."""
        deadline = time.monotonic() + _COLLECTORS_END_S
        while any(self._target.glob("*.collecting")) and time.monotonic() < deadline:
            time.sleep(_LOOK_EVERY_S)


def copy_sparse(source: Path, target: Path) -> None:
    """Copy a file and keep its holes. Raises OSError."""
    with source.open("rb") as data, target.open("wb") as copy:
        size = os.fstat(data.fileno()).st_size
        at = 0
        while at < size:
            try:
                begin = os.lseek(data.fileno(), at, os.SEEK_DATA)
            except OSError:  # ENXIO: only a hole follows
                break
            at = os.lseek(data.fileno(), begin, os.SEEK_HOLE)
            os.lseek(copy.fileno(), begin, os.SEEK_SET)
            while begin < at:
                begin += os.sendfile(copy.fileno(), data.fileno(), begin, at - begin)
        os.ftruncate(copy.fileno(), size)
