"""What comes into an image from outside: the `files` and `programs` of a definition.

They are values of whoever wrote the definition, so nothing of them gives rights: setuid and setgid bits, devices, FIFOs
and sockets are refused.
"""

from __future__ import annotations

import stat
from pathlib import Path

from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.model.image import AddedFile, ImageDefinition, StaticBase
from seatrial.places.images.from_folder import add_folder, entry_of
from seatrial.places.images.static import require_static
from seatrial.places.images.tree import Entry, Kind, Tree, text_file

_PROGRAMS = "usr/bin"


def check_outside(definition: ImageDefinition) -> None:
    """Raises UsageError for a source that is missing or of a kind that no image has, before anything is made."""
    for path in (*definition.programs, *(one.source for one in definition.files if one.source is not None)):
        _refuse_setuid(_followed(path), path)
    if isinstance(definition.base, StaticBase):
        for path in definition.programs:
            require_static(path)


def add_programs(tree: Tree, programs: tuple[Path, ...]) -> None:
    """Add programs to /usr/bin, executable for all."""
    for path in programs:
        entry = _refuse_setuid(_followed(path, tree.mtime_s), path)
        if entry.kind is not Kind.FILE:
            raise UsageError(f"{path} is a folder", "`programs` takes programs; use `files` for a folder")
        at = tree.resolved(f"{_PROGRAMS}/{path.name}")
        tree.add(at, _of_root(entry, 0o755))


def add_files(tree: Tree, files: tuple[AddedFile, ...]) -> None:
    """Add files, folders, texts and links, in the order of the definition; a folder with all that is in it."""
    for one in files:
        at = tree.resolved(one.to.lstrip("/"))
        if one.link is not None:
            tree.add(at, Entry(Kind.LINK, 0o777, tree.mtime_s, target=one.link))
        elif one.text is not None:
            tree.add(at, text_file(one.text.encode(), tree.mtime_s, 0o644 if one.mode is None else one.mode))
        elif one.source is not None:
            _add_source(tree, at, one.source, one.mode)


def _add_source(tree: Tree, at: str, source: Path, mode: int | None) -> None:
    entry = _refuse_setuid(_followed(source, tree.mtime_s), source)
    if entry.kind is Kind.FILE:
        tree.add(at, _of_root(entry, entry.mode if mode is None else mode))
        return
    before = tree.get(at)
    if before is None or mode is not None:
        tree.add(at, _of_root(entry, entry.mode & 0o777 if mode is None else mode))
    elif before.kind is not Kind.FOLDER:
        tree.add(at, entry)  # refuses

    def put(place: str, path: Path, inner: Entry) -> Entry | None:
        found = tree.get(place)
        if inner.kind is Kind.FOLDER and found is not None and found.kind is Kind.FOLDER:
            return None  # the base's own folder keeps its permissions
        return _of_root(_refuse_setuid(inner, path), inner.mode)

    _refuse_special(source)
    add_folder(tree, source.resolve(), at, tree.mtime_s, put)


def _refuse_special(source: Path) -> None:
    """Raises UsageError for a special file in a folder."""
    for path in sorted(source.resolve().rglob("*")):
        if not (stat.S_ISREG(mode := path.lstat().st_mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
            entry_of(path, 0)  # says what it is


def _followed(path: Path, mtime_s: int = 0) -> Entry:
    """The entry of a path that the definition names; a link there leads to what it stands for."""
    try:
        return entry_of(path.resolve(strict=True), mtime_s)
    except FileNotFoundError as error:
        raise UsageError(f"{path} does not exist", "correct its path in the definition") from error
    except (OSError, RuntimeError) as error:
        raise UsageError(f"{path} cannot be read: {error}", "correct its path in the definition") from error


def _refuse_setuid(entry: Entry, path: Path) -> Entry:
    if entry.is_setuid:
        todo = "copy it without these bits, or take the program from a Debian package"
        raise UsageError(f"{path} is setuid or setgid: an image takes such programs from packages only", todo)
    return entry


def _of_root(entry: Entry, mode: int) -> Entry:
    return replace(entry, mode=mode & 0o1777 if entry.kind is Kind.FOLDER else mode, uid=0, gid=0)
