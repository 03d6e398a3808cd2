"""A data set of made-up images on storage: made once, kept under a name that follows from its contents, and used again.

The files are written to a folder of another name, which gets its final one when all are complete, so a part of a data
set is never used. A lock lets one process of all nodes write it while others wait. `index.json` has the size of every
file, which is checked before each use.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import multiprocessing
import os
import platform
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from harness import images, page_cache
from harness.formats import WRITERS, Damaged, Reader

AUTO = "auto"
_INDEX = "index.json"
_VERSION = 1
_TRIED, _MARGIN = 4, 1.3
_BLOCK_B = 4096
_IN_PARALLEL = 256


class Unusable(Exception):
    """A data set that cannot be made or used here, for this reason. `need`: what is missing on this machine."""

    def __init__(self, reason: str, need: str = "") -> None:
        super().__init__(reason)
        self.need = need


class DataSet:
    """A complete data set. `entries` are those of its images, `files` its files with their sizes."""

    def __init__(self, path: Path, kind: str) -> None:
        self.path, self.kind = path, kind
        try:
            index = json.loads((path / _INDEX).read_text())
            self.entries = [tuple(entry) for entry in index["entries"]]
            self.files = {path / name: int(size) for name, size in index["files"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._damaged(f"its index cannot be read: {error!r}") from error
        for file, size in self.files.items():
            there = file.stat().st_size if file.exists() else None
            if there != size:
                what = "is missing" if there is None else f"has {there} bytes instead of {size}"
                raise self._damaged(f"{file.name} {what}")
        reader = Reader(path, kind)
        try:
            images.augmented(reader.image(self.entries[-1]), (3, 1, 1), 0, 0)
        except (Damaged, OSError) as error:
            raise self._damaged(str(error)) from error
        finally:
            reader.close()

    def _damaged(self, why: str) -> Damaged:
        return Damaged(f"the data set {self.path} is damaged ({why}): remove this folder, and it is made again")

    def cached_for(self, cache: str) -> dict:
        """Bring all into memory ("warm") or none of it ("cold"); what is known of it then."""
        kept_by, file_system = page_cache.where(self.path)
        (page_cache.drop if cache == "cold" else page_cache.load)(self.files)
        share = page_cache.cached_share(self.files)
        return {
            "where": kept_by,
            "file_system": file_system,
            "format": self.kind,
            "images": len(self.entries),
            "bytes": sum(self.files.values()),
            "in_memory": "unknown" if share is None else round(share, 4),
        }


def folder_for(given: str, cache: str) -> Path:
    """The folder in which data sets of this user are kept: `given`, or for "auto" one in memory, or on a disk if they
    are to be read cold. Raises Unusable."""
    if given != AUTO:
        top = Path(given)
    else:
        shared = Path("/dev/shm")  # noqa: S108
        top = shared if cache == "warm" and os.access(shared, os.W_OK) else Path(tempfile.gettempdir())
        if cache == "cold" and page_cache.where(top)[0] == "memory":
            top = Path("/var/tmp")  # noqa: S108
    path = top.absolute() / f"seatrial-data-{os.getuid()}"
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        owner = path.lstat().st_uid
    except OSError as error:
        raise Unusable(f"no data set can be made in {top}: {error.strerror}; set `folder` to another one") from error
    if owner != os.getuid() or path.is_symlink():
        raise Unusable(f"{path} belongs to somebody else: set `folder` to another one")
    return path


def made(wanted: Mapping[str, Any]) -> DataSet:
    """The data set of `wanted` (format, folder, cache, images, size, seed), which is made if it does not exist yet.
    Raises Unusable, Damaged."""
    kind, count = wanted["format"], wanted["images"]
    _require(kind)
    import PIL

    what = {"version": _VERSION, "pillow": PIL.__version__, "images": count, "size": wanted["size"]}
    text = json.dumps({**what, "seed": wanted["seed"]}, sort_keys=True)
    top = folder_for(wanted["folder"], wanted["cache"])
    if wanted["cache"] == "cold" and page_cache.where(top)[0] == "memory":
        raise Unusable(
            f"data in {top} are in memory and cannot be read cold: set `folder` to one on a disk, or cache=warm"
        )
    path = top / f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    if not path.exists():
        with _locked(top / f"{path.name}.lock"):
            if not path.exists():
                _make(path, wanted)
    return DataSet(path, kind)


def _require(kind: str) -> None:
    for module, package, use in (("PIL", "pillow", "decode images"), ("lmdb", "lmdb", "read LMDB")):
        if module == "lmdb" and kind != "lmdb":
            continue
        try:
            __import__(module)
        except ImportError as error:
            todo = f"{sys.executable} -m pip install {package}"
            raise Unusable(f"the package {package}, needed to {use}, cannot be imported: {todo}", package) from error


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Wait until no other process has it. On file systems without locks nobody waits: the first complete set is used
    by all."""
    with path.open("w") as file:
        with suppress(OSError):
            fcntl.lockf(file, fcntl.LOCK_EX)
        yield


def _make(path: Path, wanted: Mapping[str, Any]) -> None:
    kind, count = wanted["format"], wanted["images"]
    make = partial(images.made, wanted["size"], wanted["seed"])
    tried = [len(make(number)[1]) for number in range(min(_TRIED, count))]
    most_B = round(_MARGIN * count * max(tried)) + count * (_BLOCK_B if kind in ("files", "lmdb") else 1024)
    _require_space(path.parent, most_B, count if kind == "files" else 0)
    part = _own_part(path)
    try:
        with _all(make, count) as items:
            entries = WRITERS[kind](part, items, most_B)
        sizes = {str(file.relative_to(part)): file.stat().st_size for file in sorted(part.rglob("*")) if file.is_file()}
        (part / _INDEX).write_text(json.dumps({"entries": entries, "files": sizes}))
        with suppress(FileExistsError):
            part.rename(path)
    except OSError as error:
        if path.exists():  # another node was faster, where there are no locks
            return
        raise Unusable(f"the data set {path} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _own_part(path: Path) -> Path:
    """A folder of this process beside the data set; those that killed processes of this node left are removed."""
    mine = f"{path.name}.part-{platform.node()}-"
    for left in path.parent.glob(f"{mine}*"):
        if not Path("/proc", left.name.removeprefix(mine)).exists():
            shutil.rmtree(left, ignore_errors=True)
    part = path.with_name(f"{mine}{os.getpid()}")
    part.mkdir(mode=0o700)
    return part


@contextmanager
def _all(make: Any, count: int) -> Iterator[Iterator]:
    cpus = len(os.sched_getaffinity(0))
    if count < _IN_PARALLEL or cpus == 1:
        yield map(make, range(count))
        return
    with multiprocessing.get_context("fork").Pool(cpus) as pool:
        yield pool.imap(make, range(count), chunksize=16)


def _require_space(folder: Path, most_B: int, files: int) -> None:
    found = os.statvfs(folder)
    free_B = found.f_bavail * found.f_frsize
    what = "free there"
    if page_cache.where(folder)[0] == "memory":
        lines = Path("/proc/meminfo").read_text().splitlines()
        memory_B = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
        if memory_B // 2 < free_B:
            free_B, what = memory_B // 2, "half of the available memory"
    if most_B > free_B:
        needed = f"the data set needs up to {most_B / 1e9:.3g} GB in {folder}, more than {free_B / 1e9:.3g} GB ({what})"
        raise Unusable(f"{needed}: set `images` to fewer, or `folder` to another one")
    if files and found.f_files and found.f_favail < files + 32:
        raise Unusable(f"{folder} has room for {found.f_favail} more files, the data set has {files}: set data=lmdb")


def order(entries: Sequence, *, is_sequential: bool, seed: int, epoch: int, streams: int) -> list:
    """The numbers of the images of an epoch for each of `streams` that read at once: as many for each, and none in two.
    Single images are in random order; files that are read in sequence are."""
    chance, numbers = random.Random(f"{seed} {epoch}"), list(range(len(entries)))  # noqa: S311
    if is_sequential:
        files: dict = {}
        for number in numbers:
            files.setdefault(entries[number][0], []).append(number)
        shards = list(files.values())
        chance.shuffle(shards)
        numbers = [number for shard in shards for number in shard]
    else:
        chance.shuffle(numbers)
    each = len(numbers) // streams
    return [list(islice(numbers, part * each, (part + 1) * each)) for part in range(streams)]
