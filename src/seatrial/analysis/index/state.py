"""Whether an index still fits its folder: what of the folder it was made from, and what was added since.

A file whose size, times and inode are those recorded is taken as unchanged. Any other must still begin with the bytes
that were read, by their checksum; then only what follows is new. Anything else makes the index anew.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from seatrial.analysis.index.chunk import crc_of
from seatrial.errors import StoreError
from seatrial.model.frozen import Frozen
from seatrial.store.files import opened_folder, reason
from seatrial.store.folder import ResultsFolder
from seatrial.store.reading import FileSpan

if TYPE_CHECKING:
    import duckdb

_KINDS = ("machines", "environments", "experiments")
_SETTLED_S = 2.0
"""A file that changed so shortly before it was looked at may change again without a new time."""


class FolderState(Frozen):
    """The files of a folder with a stamp each: size, times and inode. A stamp of "" is never equal to another."""

    files: Mapping[str, str]
    sizes: Mapping[str, int]
    documents: Mapping[tuple[str, str], str]


class Additions(Frozen):
    """What an index has yet to read: spans of record files, and new documents (kind, key)."""

    spans: Sequence[FileSpan] = ()
    documents: Sequence[tuple[str, str]] = ()

    @property
    def are_none(self) -> bool:
        """Whether the index is complete."""
        return not self.spans and not self.documents


def folder_state(folder: ResultsFolder) -> FolderState:
    """The state of a folder now. Raises StoreError."""
    files, sizes = _stamps(folder, "records", ".jsonl")
    documents: dict[tuple[str, str], str] = {}
    for kind in _KINDS:
        for name, stamp in _stamps(folder, kind, ".json")[0].items():
            documents[kind, name.removesuffix(".json")] = stamp
    return FolderState(files, sizes, documents)


def additions(connection: duckdb.DuckDBPyConnection, folder: ResultsFolder, now: FolderState) -> Additions | None:
    """What the folder has that an index does not; None if the index does not fit it. Raises StoreError."""
    known = dict(connection.execute("SELECT name, stamp FROM stored.files").fetchall())
    documents = {
        (kind, name): stamp
        for kind, name, stamp in connection.execute("SELECT kind, name, stamp FROM stored.documents").fetchall()
    }
    if any(now.documents.get(key) != stamp or not stamp for key, stamp in documents.items()):
        return None
    if known.keys() - now.files.keys():
        return None
    spans: dict[str, list[FileSpan]] = {}
    sums: dict[FileSpan, int] = {}
    for file, start, end, crc in connection.execute('SELECT file, start, "end", crc FROM stored.spans').fetchall():
        span = FileSpan(file, start, end)
        spans.setdefault(file, []).append(span)
        sums[span] = crc
    new: list[FileSpan] = []
    for name, stamp in now.files.items():
        if name in known and known[name] == stamp and stamp:
            continue
        own = spans.get(name, [])
        if any(span.end > now.sizes[name] or crc_of(folder.path, span) != sums[span] for span in own):
            return None
        end = max((span.end for span in own), default=0)
        if now.sizes[name] > end:
            new.append(FileSpan(name, end, now.sizes[name]))
    return Additions(new, [key for key in now.documents if key not in documents])


def _stamps(folder: ResultsFolder, kind: str, suffix: str) -> tuple[dict[str, str], dict[str, int]]:
    """Name -> stamp and name -> size of the regular files of a kind, by name."""
    stamps, sizes = {}, {}
    now = time.time()
    try:
        with opened_folder(folder.path, kind) as descriptor, os.scandir(descriptor) as entries:
            for entry in entries:
                if entry.name.startswith(".") or not entry.name.endswith(suffix):
                    continue
                found = entry.stat(follow_symlinks=False)
                if not stat.S_ISREG(found.st_mode):
                    continue
                settled = now - max(found.st_mtime, found.st_ctime) > _SETTLED_S
                text = f"{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}:{found.st_ino}:{found.st_dev}"
                stamps[entry.name] = text if settled or kind != "records" else ""
                sizes[entry.name] = found.st_size
    except FileNotFoundError:
        return {}, {}
    except OSError as error:
        raise StoreError(f"{folder.path / kind} cannot be read: {reason(error)}") from error
    return {name: stamps[name] for name in sorted(stamps)}, sizes
