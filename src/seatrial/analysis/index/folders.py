"""Keep results: list folders, label and merge them, move experiments to the trash and back."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from seatrial.analysis.folder import FolderSummary
from seatrial.analysis.index.index import damaged_lines, opened_index
from seatrial.errors import StoreError, UnknownNameError, UsageError
from seatrial.store.files import make_folder, reason
from seatrial.store.folder import ResultsFolder, change_labels, read_labels
from seatrial.store.merging import TRASH, Merge, Merged, move_out, trash_of

_LEAST_OF_ID = 4
_LONGEST_TAG = 100


def list_folders(folders: Sequence[Path]) -> tuple[FolderSummary, ...]:
    """The summaries of results folders; of a folder that is none, those directly inside. Raises UsageError."""
    found: dict[Path, None] = {}
    for folder in folders:
        inside = [folder] if (folder / "FORMAT").exists() else sorted(p.parent for p in folder.glob("*/FORMAT"))
        if not inside:
            raise UsageError(
                f"{folder} is not a results folder of seatrial and contains none", "`seatrial run` creates one"
            )
        found |= dict.fromkeys(inside)
    return tuple(_summary(ResultsFolder.existing(path)) for path in found)


def _summary(folder: ResultsFolder) -> FolderSummary:
    labels = read_labels(folder)
    with opened_index(folder) as connection:
        (row,) = connection.execute(
            "SELECT count(*), count(*) FILTER (outcome = 'ok'), coalesce(sum(n_repeats), 0)::BIGINT, min(first_t0), "
            "max(last_t0) FROM stored.experiments WHERE NOT superseded"
        ).fetchall()
        names = connection.execute("SELECT DISTINCT benchmark FROM stored.experiments ORDER BY 1").fetchall()
        hosts = connection.execute("SELECT DISTINCT name FROM stored.machines ORDER BY 1").fetchall()
        damaged = len(damaged_lines(connection))
    return FolderSummary(
        path=str(folder.path),
        name=labels.name,
        tags=labels.tags,
        notes=tuple(text for _, text in labels.notes),
        benchmarks=tuple(name for (name,) in names),
        hosts=tuple(name for (name,) in hosts),
        studies=len(folder.keys("studies")),
        experiments=row[0],
        ok=row[1],
        repeats=row[2],
        first_t0=row[3],
        last_t0=row[4],
        damaged=damaged + len(labels.damaged),
        trash=tuple(path.name for path in trash_of(folder)),
    )


def label_folders(
    folders: Sequence[Path],
    *,
    name: str | None = None,
    add: Sequence[str] = (),
    remove: Sequence[str] = (),
    note: str | None = None,
) -> None:
    """Name folders, add and remove tags, add a note. Raises UsageError before anything is written."""
    opened = [ResultsFolder.existing(folder) for folder in folders]
    for word in (*add, *remove, *(() if name is None else (name,))):
        if not word.strip() or not word.isprintable() or len(word) > _LONGEST_TAG:
            raise UsageError(f"{word[:40]!r} is not a name or tag", f"use 1 to {_LONGEST_TAG} printable characters")
    for folder in opened:
        known = read_labels(folder).tags
        for tag in remove:
            if tag not in known:
                raise UnknownNameError(f"tag of {folder.path}", tag, known)
    for folder in opened:
        change_labels(folder, name=name, add=add, remove=remove, note=note)


def merge_folders(sources: Sequence[Path], target: Path) -> Merge:
    """A planned merge into `target`, which need not exist. Raises UsageError if there is nothing to merge, or a run is
    active in a folder."""
    distinct = {path.resolve(): ResultsFolder.existing(path) for path in sources}
    distinct.pop(target.resolve(), None)
    if not distinct:
        raise UsageError("there is no folder to merge", "seatrial results merge DIR... -o FOLDER")
    existing = ResultsFolder.existing(target) if (target / "FORMAT").exists() else None
    return Merge(tuple(distinct.values()), existing)


def write_merge(merge: Merge, target: Path) -> Merged:
    """Write a planned merge."""
    merge.write(ResultsFolder.create(target))
    return merge.found


def drop(folder: Path, what: Sequence[str]) -> tuple[Path, list[str], int]:
    """Move experiments, named by benchmark or the start of their id, to the trash of their folder: the folder in the
    trash, the ids, the number of repeats. Raises UnknownNameError, UsageError."""
    opened = ResultsFolder.existing(folder)
    with opened_index(opened) as connection:
        rows = connection.execute("SELECT id, benchmark FROM stored.experiments").fetchall()
    chosen: dict[str, None] = {}
    for word in what:
        own = [
            key for key, benchmark in rows if benchmark == word or (len(word) >= _LEAST_OF_ID and key.startswith(word))
        ]
        if not own:
            raise UnknownNameError(
                f"experiment or benchmark of {folder}", word, {key for key, _ in rows} | {name for _, name in rows}
            )
        chosen |= dict.fromkeys(own)
    name = f"{time.strftime('%Y%m%dT%H%M%S')}-{time.time_ns() % 10**6:06d}"
    try:
        make_folder(folder, TRASH, name)
    except OSError as error:
        raise StoreError(f"{folder / TRASH} cannot be written: {reason(error)}") from error
    trash = ResultsFolder.create(folder / TRASH / name)
    try:
        n = move_out(opened, trash, set(chosen))
    except UsageError:
        if not trash.record_files():
            shutil.rmtree(trash.path, ignore_errors=True)
        raise
    return trash.path, list(chosen), n


def restore(folder: Path, name: str | None) -> Merged:
    """Bring back what is in the trash under a name (default: the latest). Raises UsageError, UnknownNameError."""
    opened = ResultsFolder.existing(folder)
    known = {path.name: path for path in trash_of(opened)}
    if not known:
        raise UsageError(f"the trash of {folder} is empty", "seatrial results drop DIR WHAT moves experiments there")
    if name is not None and name not in known:
        raise UnknownNameError(f"folder in the trash of {folder}", name, known)
    path = known[name] if name is not None else list(known.values())[-1]
    merge = Merge((ResultsFolder.existing(path),), opened)
    if merge.found.damaged:
        raise UsageError(
            f"{path} has {merge.found.damaged} damaged lines, which cannot be restored",
            "look at its records; seatrial results merge copies the others",
        )
    merge.write(opened)
    shutil.rmtree(path)
    return merge.found
