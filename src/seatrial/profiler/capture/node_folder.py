"""The folder in a node's memory in which the tables of running ranks lie: a mapped file on a network file system would
make every page that is counted in travel."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from pathlib import Path

from seatrial.errors import StoreError

_MEMORY = Path("/dev/shm")  # noqa: S108  a folder that only we can read is made in it
_KEPT = (".mpi", ".trace", ".io")
_COLLECTORS_END_S = 10.0
_LOOK_EVERY_S = 0.02


def node_folder(target: Path) -> Path | None:
    """Where the tables for `target` lie meanwhile, on each node the same; None where there is no memory file system.

    The ranks make it where it is missing, for this user alone.
    """
    if not _MEMORY.is_dir():
        return None
    name = hashlib.sha256(os.fsencode(target.absolute())).hexdigest()[:16]
    return _MEMORY / f"seatrial-{os.getuid()}-{os.getpid()}-{name}"


class NodeFolder:
    """While this lasts a command runs. At its end whatever is still in `path` on this node is brought to `target`, to
    which the ranks and the collectors of all nodes bring theirs, and `path` is removed."""

    def __init__(self, path: Path | None, target: Path) -> None:
        self._path = path
        self._target = target

    def __enter__(self) -> None:
        if self._path is not None:
            shutil.rmtree(self._path, ignore_errors=True)  # left by a process that had our number

    def __exit__(self, *raised: object) -> None:
        self._wait_for_collectors()
        if self._path is None or not self._path.is_dir():
            return
        try:
            for file in sorted(self._path.iterdir()):
                if file.suffix in _KEPT:  # newer than what a collector that was killed may have copied
                    private = self._target / f".{file.name}.part"
                    copy_sparse(file, private)
                    private.replace(self._target / file.name)
        except OSError as error:
            raise StoreError(
                f"{self._target} cannot be written: {error.strerror or error}",
                f"what was recorded lies in {self._path}",
            ) from error
        shutil.rmtree(self._path, ignore_errors=True)

    def _wait_for_collectors(self) -> None:
        """Each keeps a file HOST.collecting while it has something to bring."""
        deadline = time.monotonic() + _COLLECTORS_END_S
        while any(self._target.glob("*.collecting")) and time.monotonic() < deadline:
            time.sleep(_LOOK_EVERY_S)


def copy_sparse(source: Path, target: Path) -> None:
    """Copy a file; its holes stay holes. Raises OSError."""
    with source.open("rb") as data, target.open("wb") as copy:
        size = os.fstat(data.fileno()).st_size
        at = 0
        while at < size:
            try:
                begin = os.lseek(data.fileno(), at, os.SEEK_DATA)
            except OSError:  # ENXIO: nothing but a hole follows
                break
            at = os.lseek(data.fileno(), begin, os.SEEK_HOLE)
            os.lseek(copy.fileno(), begin, os.SEEK_SET)
            while begin < at:
                begin += os.sendfile(copy.fileno(), data.fileno(), begin, at - begin)
        os.ftruncate(copy.fileno(), size)
