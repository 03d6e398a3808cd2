"""Merge results folders, and move experiments of one to its trash and back (docs/adr/0029).

A repeat is its record. Equal records are one repeat. Different records with the same number of one experiment are both
kept: the later one gets the next free number, which only counts; time and order stay in the record.
"""

from __future__ import annotations

import os
import platform
import re
import secrets
import stat
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import ProtocolError, StoreError, UsageError
from seatrial.model.frozen import Frozen
from seatrial.model.machine.host_list import host_in_names
from seatrial.model.results.record import decode, encode
from seatrial.processes.own_folder import process_start
from seatrial.store.files import is_remote, make_folder, opened_file, opened_folder, reason, write_once
from seatrial.store.folder import LABELS, FactFolder, ResultsFolder
from seatrial.store.writers import alone

_FACTS: tuple[FactFolder, ...] = ("machines", "environments", "experiments", "studies")
_DEEPEST = 6
_WRITER_ENDED_S = 2 * 86400.0
"""A record file of another host, on a file system whose locks may not reach it, that has not changed for so long has no
writer any more."""


class Collision(Frozen):
    """Repeats of one experiment with numbers that were taken: how many of which folder got new numbers."""

    experiment: str
    folder: str
    renumbered: int


class Merged(Struct):
    """What a merge adds: repeats by file, what is there already, and what collides."""

    added: int = 0
    equal: int = 0
    collisions: list[Collision] = []
    documents: list[str] = []
    """Documents of equal names with different contents: that of the target counts."""
    damaged: int = 0
    """Lines that are not valid records: they are not copied, and stay in their folder."""


class Merge:
    """A merge of folders into another one, planned when it is made and written by `write`.

    Raises UsageError if a run is active in one of the folders.
    """

    def __init__(self, sources: Sequence[ResultsFolder], target: ResultsFolder | None) -> None:
        self.found = Merged()
        self._sources = sources
        self._taken: dict[str, dict[int, int]] = {}
        self._contents: dict[str, set[int]] = {}
        self._next: dict[str, int] = {}
        self._numbers: list[dict[tuple[str, int], int]] = []
        self._seen = _sizes(target)
        for folder in (*sources, *((target,) if target else ())):
            _refuse_claims(folder)
        if target is not None:
            for line in _all_lines(target):
                self._take(line)
        for source in sources:
            self._plan(source)
        if target is not None:
            self._compare_documents(target)

    def write(self, target: ResultsFolder) -> None:
        """Write the merge. Raises StoreError; a folder that was written partly is completed by the same merge. Raises
        UsageError, with nothing written, if a run is active in the target or was since the merge was planned."""
        with alone(target.path):
            _refuse_claims(target)
            if _sizes(target) != self._seen:
                raise UsageError(
                    f"records were added to {target.path} while the merge was planned", "start the merge again"
                )
            self._write(target)

    def _write(self, target: ResultsFolder) -> None:
        for source, numbers in zip(self._sources, self._numbers, strict=True):
            _copy_documents(source, target, None)
            # Records come last: after a kill, the same merge takes those that are there as merged.
            for (experiment, repeat), number in numbers.items():
                _copy_tree(
                    source, target, ("artefacts", experiment, str(repeat)), ("artefacts", experiment, str(number))
                )
            for top in (LABELS, "profiles"):
                _copy_tree(source, target, (top,), (top,))
            done: set[tuple[str, int]] = set()
            for name in source.record_files():
                _write_file(target, name, self._lines(source, name, numbers, done))

    def _plan(self, source: ResultsFolder) -> None:
        numbers: dict[tuple[str, int], int] = {}
        late: list[tuple[str, int, int]] = []
        own: set[tuple[str, int]] = set()
        for line in _all_lines(source):
            found = _head(line)
            if found is None:
                self.found.damaged += 1
                continue
            experiment, repeat, content = found
            if (experiment, repeat) in own:
                continue  # readers take the first one
            own.add((experiment, repeat))
            taken = self._taken.setdefault(experiment, {})
            if taken.get(repeat) == content:
                self.found.equal += 1
            elif repeat in taken:
                late.append((experiment, repeat, content))
            else:
                self._use(experiment, repeat, content)
                numbers[experiment, repeat] = repeat
        renumbered: dict[str, int] = {}
        for experiment, repeat, content in late:
            if content in self._contents[experiment]:
                self.found.equal += 1  # an earlier merge gave it another number
                continue
            number = self._next[experiment]
            self._use(experiment, number, content)
            numbers[experiment, repeat] = number
            renumbered[experiment] = renumbered.get(experiment, 0) + 1
        self._numbers.append(numbers)
        self.found.added += len(numbers)
        self.found.collisions += [Collision(key, str(source.path), n) for key, n in renumbered.items()]

    def _take(self, line: bytes) -> None:
        found = _head(line)
        if found is not None and found[1] not in self._taken.get(found[0], ()):
            self._use(*found)

    def _use(self, experiment: str, number: int, content: int) -> None:
        self._taken.setdefault(experiment, {})[number] = content
        self._contents.setdefault(experiment, set()).add(content)
        self._next[experiment] = max(self._next.get(experiment, 0), number + 1)

    def _lines(
        self, source: ResultsFolder, name: str, numbers: Mapping[tuple[str, int], int], done: set[tuple[str, int]]
    ) -> Iterator[bytes]:
        """The lines of a file to write; `done` are the repeats of this source that are written."""
        for _, line in source.record_lines(name):
            found = None if line is None else _head(line)
            if line is None or found is None:
                continue
            key = found[:2]
            number = numbers.get(key)
            if number is None or key in done:
                continue
            done.add(key)
            yield line + b"\n" if number == key[1] else encode(replace(decode(line), repeat=number))

    def _compare_documents(self, target: ResultsFolder) -> None:
        for source in self._sources:
            for kind in _FACTS:
                for key in set(source.keys(kind)) & set(target.keys(kind)):
                    with suppress(StoreError):
                        if source.get(kind, key) != target.get(kind, key):
                            self.found.documents.append(f"{kind}/{key}.json of {source.path}")


def move_out(folder: ResultsFolder, trash: ResultsFolder, experiments: Collection[str]) -> int:
    """Move the records and artefacts of experiments to another folder; the number of records. They are written there
    before they are removed here, so an interruption loses nothing.

    Raises UsageError if a file has, or may have, a writer.
    """
    with alone(folder.path) as has_locks:
        _refuse_claims(folder)
        return _move_out(folder, trash, experiments, is_alone=has_locks and not is_remote(folder.path))


def _move_out(folder: ResultsFolder, trash: ResultsFolder, experiments: Collection[str], *, is_alone: bool) -> int:
    touched = [
        name
        for name in folder.record_files()
        if any(found and found[0] in experiments for found in map(_head, _lines_of(folder, name)))
    ]
    for name in touched:
        _refuse_writer(folder, name, is_alone=is_alone)
    _copy_documents(folder, trash, experiments)
    n = 0
    for name in touched:
        n += sum(1 for _ in _some_lines(folder, name, experiments, inside=True))
        _write_file(trash, name, _some_lines(folder, name, experiments, inside=True))
    for name in touched:
        try:
            if next(_some_lines(folder, name, experiments, inside=False), None) is not None:
                write_once(folder.path, "records", name, data=_some_lines(folder, name, experiments, inside=False))
            else:
                with opened_folder(folder.path, "records") as records:
                    os.unlink(name, dir_fd=records)
        except OSError as error:
            raise StoreError(f"{folder.path / 'records' / name} cannot be written: {reason(error)}") from error
    for key in experiments:
        with (
            suppress(OSError),
            opened_folder(folder.path, "artefacts") as here,
            opened_folder(trash.path, "artefacts") as there,
        ):
            os.rename(key, key, src_dir_fd=here, dst_dir_fd=there)
    return n


def _sizes(folder: ResultsFolder | None) -> dict[str, int]:
    """The size of each file of records; nothing for a folder that does not exist yet."""
    if folder is None:
        return {}
    found = {}
    for name in folder.record_files():
        with suppress(OSError):
            found[name] = (folder.path / "records" / name).lstat().st_size
    return found


def _head(line: bytes) -> tuple[str, int, int] | None:
    """Experiment, repeat and a hash of the rest of a valid line; None for any other."""
    try:
        record = decode(line)
    except ProtocolError:
        return None
    return record.experiment, record.repeat, hash(encode(replace(record, repeat=0)))


def _some_lines(folder: ResultsFolder, name: str, experiments: Collection[str], *, inside: bool) -> Iterator[bytes]:
    """The lines of these experiments, or all others, with their line breaks."""
    for line in _lines_of(folder, name):
        found = _head(line)
        if (found is not None and found[0] in experiments) is inside:
            yield line + b"\n"


def _lines_of(folder: ResultsFolder, name: str) -> Iterator[bytes]:
    return (line for _, line in folder.record_lines(name) if line is not None)


def _all_lines(folder: ResultsFolder) -> Iterator[bytes]:
    return chain.from_iterable(_lines_of(folder, name) for name in folder.record_files())


def _write_file(target: ResultsFolder, name: str, lines: Iterator[bytes]) -> None:
    """Write a new file of records, complete or not at all; nothing if there are no lines."""
    path = target.path / "records" / name
    first = next(lines, None)
    if first is None:
        return
    if path.exists():
        name = f"{name.removesuffix('.jsonl')}-{secrets.token_hex(3)}.jsonl"
    try:
        write_once(target.path, "records", name, data=chain((first,), lines))
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {reason(error)}", "give a folder with more space") from error


def _copy_documents(source: ResultsFolder, target: ResultsFolder, experiments: Collection[str] | None) -> None:
    """Copy the documents that the target does not have; of these experiments only, if they are given."""
    for kind in _FACTS:
        known = set(target.keys(kind))
        for key in source.keys(kind):
            if key in known or (kind == "experiments" and experiments is not None and key not in experiments):
                continue
            with suppress(StoreError):  # damaged: whoever reads the source reports it
                target.put(kind, key, source.get(kind, key))


def _copy_tree(
    source: ResultsFolder, target: ResultsFolder, here: tuple[str, ...], there: tuple[str, ...], depth: int = 0
) -> None:
    """Copy regular files with their folders; links and devices are left out, files that exist are kept."""
    try:
        with opened_folder(source.path, *here) as folder, os.scandir(folder) as listed:
            entries = [(entry.name, entry.stat(follow_symlinks=False).st_mode) for entry in listed]
    except OSError:
        return
    for name, mode in entries:
        if stat.S_ISDIR(mode) and depth < _DEEPEST:
            _copy_tree(source, target, (*here, name), (*there, name), depth + 1)
        elif stat.S_ISREG(mode) and not target.path.joinpath(*there, name).exists():
            try:
                make_folder(target.path, *there)
                with opened_file(source.path, *here, name) as file:
                    write_once(target.path, *there, name, data=file.read())
            except OSError as error:
                raise StoreError(f"{source.path.joinpath(*here, name)} cannot be copied: {reason(error)}") from error


def _refuse_claims(folder: ResultsFolder) -> None:
    """Raises UsageError if a repeat is being measured, or was when its process died."""
    found = next(iter(folder.path.glob("artefacts/*/*/claim.json")), None)
    if found is not None:
        raise UsageError(
            f"a run is active in {folder.path}, or was interrupted: {found.parent.relative_to(folder.path)} is claimed",
            "wait until it ends; after an interruption, start the same run again, which settles its claims",
        )


def _refuse_writer(folder: ResultsFolder, name: str, *, is_alone: bool) -> None:
    """Raises UsageError if the process that wrote a file of records may still run. `is_alone`: the lock of the folder
    shows that no process of another host, such as a container, writes to it."""
    match = re.fullmatch(r"(.+)-(\d+)-(\d+)(?:-[0-9a-f]+)?\.jsonl", name)
    if match is None:
        return
    is_here = match[1] == host_in_names(platform.node())
    if is_here:
        may_run = int(match[2]) != os.getpid() and process_start(int(match[2])) is not None
    elif is_alone:
        may_run = False
    else:
        try:
            may_run = time.time() - (folder.path / "records" / name).lstat().st_mtime < _WRITER_ENDED_S
        except OSError:
            may_run = False
    if may_run:
        raise UsageError(
            f"the process that writes records/{name} may still run",
            "wait until it has ended; on a network file system, files of other hosts can be changed two days after "
            "their last record",
        )


TRASH = "trash"


def trash_of(folder: ResultsFolder) -> list[Path]:
    """The folders in the trash, oldest first."""
    found = []
    with suppress(OSError), opened_folder(folder.path, TRASH) as opened, os.scandir(opened) as entries:
        found = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    paths = (folder.path / TRASH / name for name in sorted(found))
    return [path for path in paths if (path / "FORMAT").is_file()]
