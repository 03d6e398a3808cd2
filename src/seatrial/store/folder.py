"""The results folder: layout, version, and facts written once.

FORMAT                                      version of this layout
machines|environments|experiments|studies/<key>.json   content-addressed, written once
records/<host>-<pid>-<start>.jsonl          one writer each
artefacts/<experiment>/<repeat>/            a running repeat, or the output of a failed one
.writers                                    empty; locked by processes that write (`store.writers`)
labels/<time>-<random>.json                 a change of name, tags or notes, written once
trash/<time>/                               a results folder with what was dropped
jobs/<id>/                                  a job of a batch system (`store.jobs`)
"""

from __future__ import annotations

import itertools
import os
import re
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from seatrial.errors import StoreError, UsageError, did_you_mean, nearest_names
from seatrial.model.frozen import Frozen
from seatrial.model.json_check import parse_json
from seatrial.model.json_object import json_of, plain, record_of
from seatrial.model.json_shape import Sparse
from seatrial.store.files import make_folder, names, opened_file, opened_folder, read_file, reason, write_once

JOBS = "jobs"
IN_JOB = "SEATRIAL_JOB"
"""The variable that tells a process in a job its folder and start: `<id>/<start>`."""
JOB_ID = re.compile(r"[0-9]{8}T[0-9]{6}-[0-9a-f]{6}")
_MOST_MARK_B = 1 << 16


class Start(Frozen):
    """The latest start of a job: the batch system's id of it, the host, the time in seconds since 1970."""

    batch_id: str
    host: str
    time_s: float
    token: str


class JobMarks(Frozen):
    """The marks of one job, in a results folder."""

    results: Path
    id: str

    @property
    def path(self) -> Path:
        """The absolute path."""
        return self.results.absolute() / JOBS / self.id

    def has(self, name: str) -> bool:
        """Whether a file of the job exists."""
        return os.path.lexists(self.path / name)

    def start(self) -> Start | None:
        """Its latest start."""
        mark = self._mark("started")
        try:
            return Start(mark["job"], mark["host"], float(mark["time"]), mark["start"])
        except (KeyError, ValueError):
            return None

    def exit_status(self) -> int | None:
        """The exit status of what ran in it; None if it has not ended since its latest start."""
        status = self._mark("ended").get("status", "")
        return int(status) if re.fullmatch(r"\d{1,3}", status, re.ASCII) else None

    def ended_s(self) -> float | None:
        """When what ran in it ended, in seconds since 1970, by the clock of its host; None if it has not."""
        try:
            return float(self._mark("ended")["time"])
        except (KeyError, ValueError):
            return None

    def _mark(self, name: str) -> dict[str, str]:
        """The values of a mark: lines `name=value`. {} if it is missing."""
        try:
            data = read_file(self.results, JOBS, self.id, name, most=_MOST_MARK_B)
        except StoreError:
            return {}
        pairs = (line.partition("=") for line in data.decode("utf-8", "replace").splitlines())
        return {key: value for key, equals, value in pairs if equals}


def is_dead_in_job(results: Path, job: object) -> bool:
    """Whether a process that ran in a job, as `IN_JOB` names it, is gone, whichever host it ran on: its job is over or
    has ended, or has started again since."""
    if not isinstance(job, str):
        return False
    name, _, token = job.partition("/")
    if not JOB_ID.fullmatch(name):
        return False
    folder = JobMarks(results, name)
    if folder.has("over.json") or folder.exit_status() is not None:
        return True
    start = folder.start()
    return start is not None and start.token != token


FORMAT_LINE = "seatrial-results 1\n"

MOST_DOCUMENT_B = 64 << 20
"""The largest document that is read."""
MOST_LINE_B = 256 << 20
"""The longest line of records that is read. That of the largest record of a program is shorter."""
_PART_B = 1 << 20
_MOST_FORMAT_B = 4096
_FOLDERS = ("machines", "environments", "experiments", "studies", "records", "artefacts")
_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")

FactFolder = Literal["machines", "environments", "experiments", "studies"]


class ResultsFolder:
    """A results folder of the right version. Use `create` for writing and `existing` for reading."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path) -> ResultsFolder:
        """Open the folder for writing; create it if it does not exist. Raises UsageError if it is not a results folder
        (before writing anything), or cannot be written."""
        try:
            path.mkdir(parents=True, exist_ok=True)
            if not (path / "FORMAT").exists():
                cls.refuse_other(path)
                write_once(path, "FORMAT", data=FORMAT_LINE.encode())
            found = cls.existing(path)
            for kind in _FOLDERS:
                _make_writable(path, kind)
        except OSError as error:
            raise UsageError(
                f"the results folder {path} cannot be written: {error.strerror or error}",
                "give a writable folder with --results",
            ) from error
        return found

    @staticmethod
    def refuse_other(path: Path) -> None:
        """Raise UsageError if this is a file, or a folder with other content; nothing is written."""
        try:
            if path.exists() and not path.is_dir():
                raise UsageError(f"{path} is a file, not a results folder", "give another folder with --results")
            is_used = path.exists() and any(
                not entry.name.startswith(".FORMAT.") for entry in path.iterdir()
            )  # left by a killed process
            if is_used and not (path / "FORMAT").exists():  # another process may just have created it
                raise UsageError(
                    f"{path} is not empty and is not a results folder of seatrial", "give another folder with --results"
                )
        except OSError:  # `create` reports why it cannot be written
            return

    @classmethod
    def existing(cls, path: Path) -> ResultsFolder:
        """Open the folder for reading. Raises UsageError if it is not a results folder, or has another version."""
        try:
            found = read_file(path, "FORMAT", most=_MOST_FORMAT_B).decode("utf-8", "replace")
        except StoreError as error:
            if not path.exists():
                raise UsageError(f"there is no results folder {str(path)!r}", _folders_like(path)) from error
            raise UsageError(
                f"{path} is not a results folder of seatrial: {error.message}",
                "give a folder that `seatrial run` or `seatrial import` wrote",
            ) from error
        if found != FORMAT_LINE:
            raise UsageError(
                f"{path} has the layout {found.strip()[:80]!r}; this seatrial reads {FORMAT_LINE.strip()!r}",
                "read it with the version that wrote it, or give another folder with --results",
            )
        return cls(path)

    def put(self, kind: FactFolder, key: str, document: Mapping[str, Any]) -> None:
        """Store a document under the key of its content. An existing document of that key is the same one."""
        name = f"{key}.json"
        data = json_of(document, indent=1).encode() + b"\n"
        try:
            if not self._has(kind, name):
                write_once(self.path, kind, name, data=data)
        except OSError as error:
            raise StoreError(
                f"{self.path / kind / name} cannot be written: {reason(error)}", "earlier records are not lost"
            ) from error

    def get(self, kind: FactFolder, key: str) -> dict[str, Any]:
        """The document under a key. Raises StoreError if it is missing or damaged."""
        if _KEY.fullmatch(key) is None:
            raise StoreError(f"{kind}: {key[:80]!r} is not the name of a document")
        source = self.path / kind / f"{key}.json"
        data = read_file(self.path, kind, f"{key}.json", most=MOST_DOCUMENT_B)
        try:
            document = parse_json(data)
        except ValueError as error:
            raise StoreError(f"{source} cannot be read: {error}") from error
        if not isinstance(document, dict):
            raise StoreError(f"{source} is not a JSON object")
        return document

    def keys(self, kind: FactFolder) -> tuple[str, ...]:
        """The keys of all documents of one kind, sorted. Raises StoreError."""
        return tuple(name.removesuffix(".json") for name in names(self.path, kind, suffix=".json"))

    def record_files(self) -> list[str]:
        """The names of the files of records, sorted. Raises StoreError."""
        return names(self.path, "records", suffix=".jsonl")

    def record_lines(self, name: str, start: int = 0) -> Iterator[tuple[int, bytes | None]]:
        """The finished lines of a file of records from an offset on, each with its offset in bytes; None for one that
        is too long. The last one, if it has no line break, is left out: its writer was killed. Raises StoreError."""
        offset = start
        try:
            with opened_file(self.path, "records", name, buffer_B=_PART_B) as file:
                file.seek(start)
                while line := file.readline(MOST_LINE_B):
                    if line.endswith(b"\n"):
                        yield offset, line[:-1]
                        offset += len(line)
                        continue
                    first, offset = offset, offset + len(line)
                    while rest := file.readline(_PART_B):
                        offset += len(rest)
                        if rest.endswith(b"\n"):
                            yield first, None
                            break
        except OSError as error:
            raise StoreError(f"{self.path / 'records' / name} cannot be read: {reason(error)}") from error

    def _has(self, kind: FactFolder, name: str) -> bool:
        """Whether a complete document of that name exists: a power cut can leave an empty file."""
        try:
            parse_json(read_file(self.path, kind, name, most=MOST_DOCUMENT_B))
        except (StoreError, ValueError):
            return False
        return True

    def artefacts(self, experiment: str, repeat: int) -> Path:
        """The absolute path of the files of one repeat: its program may run in another folder."""
        return self.path.absolute() / "artefacts" / experiment / str(repeat)


def _make_writable(path: Path, kind: str) -> None:
    """Create a folder of the layout. Raises OSError, which names it, if it is a link or cannot be written."""
    try:
        make_folder(path, kind)
        with opened_folder(path, kind) as folder:
            if not os.access(".", os.W_OK | os.X_OK, dir_fd=folder):
                raise PermissionError(13, "Permission denied")
    except OSError as error:
        raise OSError(error.errno, f"{kind}: {reason(error)}") from error


_MOST_ENTRIES = 10_000


def _folders_like(path: Path) -> str:
    """What to do about a folder that does not exist: the results folders beside it with similar names, or the only
    one."""
    try:
        entries = sorted(itertools.islice(path.parent.iterdir(), _MOST_ENTRIES))
        folders = [entry.name for entry in entries if entry.name.isprintable() and (entry / "FORMAT").is_file()]
    except OSError:
        folders = []
    near = nearest_names(path.name, folders) or (folders if len(folders) == 1 else [])
    return did_you_mean(str(path.parent / name) for name in near) if near else "`seatrial run` creates one"


LABELS = "labels"
_MOST_LABEL_B = 1 << 20
_MOST_CHANGES = 100_000


class _Change(Frozen):
    """One change: what is given is set, added or removed."""

    v: ClassVar[Literal[1]] = 1
    at: float
    name: Sparse[str | None] = None
    add: Sparse[tuple[str, ...]] = ()
    remove: Sparse[tuple[str, ...]] = ()
    note: Sparse[str | None] = None


class Labels(Frozen):
    """The labels in force. `notes`: (seconds since the epoch, text), oldest first."""

    name: str = ""
    tags: tuple[str, ...] = ()
    notes: tuple[tuple[float, str], ...] = ()
    damaged: tuple[str, ...] = ()


def read_labels(folder: ResultsFolder) -> Labels:
    """The labels of a folder. Files that are damaged are left out and reported."""
    name, tags, notes, damaged = "", dict[str, None](), list[tuple[float, str]](), list[str]()
    try:
        listed = names(folder.path, LABELS, suffix=".json")[:_MOST_CHANGES]
    except StoreError as error:
        return Labels(damaged=(error.message,))
    for file in listed:  # their names begin with the time
        try:
            change = record_of(_Change, parse_json(read_file(folder.path, LABELS, file, most=_MOST_LABEL_B)))
        except (StoreError, ValueError) as error:
            damaged.append(f"{LABELS}/{file}: {error}")
            continue
        name = name if change.name is None else change.name
        tags |= dict.fromkeys(change.add)
        for tag in change.remove:
            tags.pop(tag, None)
        if change.note is not None:
            notes.append((change.at, change.note))
    return Labels(name, tuple(tags), tuple(notes), tuple(damaged))


def change_labels(
    folder: ResultsFolder,
    *,
    name: str | None = None,
    add: Sequence[str] = (),
    remove: Sequence[str] = (),
    note: str | None = None,
) -> None:
    """Record a change. Raises StoreError."""
    change = _Change(time.time(), name, tuple(add), tuple(remove), note)
    file = f"{time.time_ns():020d}-{secrets.token_hex(4)}.json"
    try:
        make_folder(folder.path, LABELS)
        write_once(folder.path, LABELS, file, data=json_of(plain(change)).encode() + b"\n")
    except OSError as error:
        raise StoreError(f"{folder.path / LABELS} cannot be written: {reason(error)}") from error
