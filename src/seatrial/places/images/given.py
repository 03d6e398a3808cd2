"""A base that is there, also an archive as a folder in the cache, which every runtime for folders starts: unpacked
once, whole or not at all; and what comes into an image from outside: the `files` and `programs` of a definition.

They are values of whoever wrote the definition, so nothing of them gives rights: setuid and setgid bits, devices, FIFOs
and sockets are refused.
"""

from __future__ import annotations

import os
import shutil
import stat
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.errors import ImageError, SeatrialError, StoreError, UsageError
from seatrial.model.environment.image import (
    FACTS_FILE,
    FACTS_FOLDER,
    MOST_FACTS_B,
    AddedFile,
    ImageDefinition,
    ImageFacts,
    StaticBase,
    read_facts,
)
from seatrial.model.secrets import sounds_like_a_secret
from seatrial.places.containers.image import ContainerError, Image, ImageKind, is_layout, kind_of_file
from seatrial.places.images.entries import EntryLeftOut, add_base, add_folder, add_tar, entry_of, opened_tar
from seatrial.places.images.oci import add_docker, add_oci, kind_of_layers
from seatrial.places.images.tools import move_into_place, private_folder, run_tool, tool
from seatrial.places.images.tree import Entry, EntryKind, Tree, add_mount_points, require_static, text_file
from seatrial.places.images.tree import folder as folder_entry
from seatrial.places.images.write import write_folder
from seatrial.processes.own_folder import temporary_folder
from seatrial.store.cache import check_folder, make_folder, own_cache
from seatrial.store.files import read_file

_COMPRESSED = {b"\x1f\x8b": "gzip -d", b"\x28\xb5\x2f\xfd": "zstd -d", b"\xfd7zXZ": "xz -d", b"BZh": "bzip2 -d"}


class GivenTree(Enum):
    """What a base is, by its content."""

    FOLDER = "folder"
    TAR = "tar"
    OCI = "OCI archive"
    DOCKER = "docker archive"
    SQUASHFS = "squashfs"


def kind_of(path: Path) -> GivenTree:
    """What a base is. Raises UsageError for anything that is not supported, with the command that converts it."""
    try:
        if path.is_dir():
            return GivenTree.OCI if is_layout(path) else GivenTree.FOLDER
        if not path.is_file():
            raise UsageError(f"the base {path} {'is a special file' if path.exists() else 'does not exist'}", _TODO)
        with path.open("rb") as stream:
            begin = stream.read(512)
    except OSError as error:
        raise UsageError(f"the base {path} cannot be read: {error.strerror}", _TODO) from error
    kind = kind_of_file(begin)
    if kind is ImageKind.ARCHIVE:
        return {"OCI": GivenTree.OCI, "docker": GivenTree.DOCKER}.get(kind_of_layers(path), GivenTree.TAR)
    if kind is ImageKind.SQUASHFS:
        return GivenTree.SQUASHFS
    if kind is ImageKind.SIF:
        raise UsageError(f"the base {path} is a SIF image", f"unpack it: apptainer build --sandbox DIR {path.name}")
    for magic, command in _COMPRESSED.items():
        if begin.startswith(magic):
            raise UsageError(f"the base {path} is compressed", f"unpack it first: {command} {path.name}")
    raise UsageError(f"the base {path} is neither a folder, tar, OCI archive nor squashfs", _TODO)


def add_given(tree: Tree, path: Path, work: Path, left_out: EntryLeftOut) -> tuple[str, ...]:
    """Add the files of a base; its variables as NAME=VALUE, which only archives with layers state. Raises UsageError
    for what cannot be in an image, ImageError if squashfs cannot be unpacked."""
    match kind_of(path):
        case GivenTree.FOLDER:
            add_base(tree, path.resolve(), tree.mtime_s, left_out)
        case GivenTree.TAR:
            add_tar(tree, path, tree.mtime_s, left_out)
        case GivenTree.OCI:
            return add_oci(tree, path, work, tree.mtime_s, left_out)
        case GivenTree.DOCKER:
            return add_docker(tree, path, work, tree.mtime_s, left_out)
        case GivenTree.SQUASHFS:
            folder = work / "base"
            words = [tool("unsquashfs", "squashfs-tools"), "-quiet", "-no-progress", "-no-xattrs"]
            # 2: without root, it could not make devices, which stay out in any case
            run_tool([*words, "-dest", str(folder), str(path)], accept=(0, 2), remedy="is the image whole?")
            add_base(tree, folder, tree.mtime_s, left_out)
    return ()


_TODO = "give a folder, a tar, an archive of podman save or docker save, an OCI layout or a squashfs"


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
        if entry.kind is not EntryKind.FILE:
            raise UsageError(f"{path} is a folder", "`programs` takes programs; use `files` for a folder")
        tree.add(tree.resolved(f"{_PROGRAMS}/{path.name}"), _of_root(entry, 0o755))


def add_files(tree: Tree, files: tuple[AddedFile, ...]) -> None:
    """Add files, folders, texts and links, in the order of the definition; a folder with all that is in it."""
    for one in files:
        at = tree.resolved(one.to.lstrip("/"))
        if one.link is not None:
            tree.add(at, Entry(EntryKind.LINK, 0o777, tree.mtime_s, target=one.link))
        elif one.text is not None:
            tree.add(at, text_file(one.text.encode(), tree.mtime_s, 0o644 if one.mode is None else one.mode))
        elif one.source is not None:
            _add_source(tree, at, one.source, one.mode)


def _add_source(tree: Tree, at: str, source: Path, mode: int | None) -> None:
    entry = _refuse_setuid(_followed(source, tree.mtime_s), source)
    if entry.kind is EntryKind.FILE:
        tree.add(at, _of_root(entry, entry.mode if mode is None else mode))
        return
    before = tree.get(at)
    if before is None or mode is not None:
        tree.add(at, _of_root(entry, entry.mode & 0o777 if mode is None else mode))
    elif before.kind is not EntryKind.FOLDER:
        tree.add(at, entry)  # refuses

    def put(place: str, path: Path, inner: Entry) -> Entry | None:
        found = tree.get(place)
        if inner.kind is EntryKind.FOLDER and found is not None and found.kind is EntryKind.FOLDER:
            return None  # the base's own folder keeps its permissions
        return _of_root(_refuse_setuid(inner, path), inner.mode)

    for path in sorted(source.resolve().rglob("*")):
        if not (stat.S_ISREG(special := path.lstat().st_mode) or stat.S_ISDIR(special) or stat.S_ISLNK(special)):
            entry_of(path, 0)  # says what it is
    add_folder(tree, source.resolve(), at, tree.mtime_s, put)


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
    return replace(entry, mode=mode & 0o1777 if entry.kind is EntryKind.FOLDER else mode, uid=0, gid=0)


_FOLDER = "images"
_LATEST_S = (1 << 33) - 1  # the largest time of a plain tar: times stay as they are
_SPARE_B = 256 << 20
_POINTS = ("mnt", "srv", "media", "opt")
"""Empty folders, where Charliecloud mounts what is not in the image."""


def unpacked(image: Image) -> Image:
    """The folder of an archive: a tar of a root, one of `podman save` or `docker save`, or an OCI layout.

    Nothing of an archive leads out of its folder, and nothing in it gives rights: devices and setuid bits stay out
    (places/images/tree.py). Raises ContainerError.
    """
    try:
        top = own_cache().path / _FOLDER
        folder = top / image.digest.partition(":")[2][:32]
        if not folder.exists():
            make_folder(top)
            check_folder(top)
            _unpack(image.path, folder)
    except (SeatrialError, OSError) as error:
        why = error.message if isinstance(error, SeatrialError) else str(error.strerror or error)
        todo = error.todo if isinstance(error, SeatrialError) else "give another SEATRIAL_CACHE"
        raise ContainerError(f"{image.given} cannot be unpacked: {why}", todo) from error
    return replace(image, given=str(folder), kind=ImageKind.FOLDER, archive=image.given)


def _unpack(archive: Path, folder: Path) -> None:
    with private_folder(folder.parent) as work:
        tree = Tree(_LATEST_S)
        add_given(tree, archive, work, EntryLeftOut())
        add_mount_points(tree)
        for name in _POINTS:
            if name not in tree:
                tree.add(name, folder_entry(tree.mtime_s))
        needed = sum({id(entry): entry.size for _, entry in tree.sorted()}.values()) + _SPARE_B
        free = shutil.disk_usage(work).free
        if needed > free:
            raise ContainerError(
                f"it needs {needed >> 20} MiB, and {folder.parent} has {free >> 20} MiB",
                "free some space, or give another SEATRIAL_CACHE",
            )
        write_folder(tree, work / "root", with_owners=os.geteuid() == 0)
        if not folder.exists():  # another process may have been first
            move_into_place(work / "root", folder, replace=False)


_NAMES = frozenset({FACTS_FILE, f"./{FACTS_FILE}"})


def facts_of_image(image: Path) -> ImageFacts | None:
    """The facts of an image: a folder, tar, OCI archive or squashfs. None if seatrial did not make it, or it cannot be
    read here. They are what the image says; what it holds may have been changed since, if it is a folder."""
    try:
        match kind_of(image):
            case GivenTree.FOLDER:
                return read_facts(read_file(image, FACTS_FOLDER, Path(FACTS_FILE).name, most=MOST_FACTS_B))
            case GivenTree.TAR:
                return _in_tar(image)
            case GivenTree.OCI:
                return _in_oci(image)
            case GivenTree.DOCKER:
                return None  # seatrial makes none
            case GivenTree.SQUASHFS:
                return _in_squashfs(image)
    except (ImageError, UsageError, StoreError, OSError):
        return None


def _in_tar(image: Path) -> ImageFacts | None:
    with opened_tar(image) as stream:
        for member in stream:
            if member.name in _NAMES and member.isreg() and member.size <= MOST_FACTS_B:
                content = stream.extractfile(member)
                return None if content is None else read_facts(content.read())
    return None


def _in_oci(image: Path) -> ImageFacts | None:
    with temporary_folder("facts") as work:
        tree = Tree(0)
        add_oci(tree, image, work, 0, EntryLeftOut())
        return read_facts(tree.read(FACTS_FILE, MOST_FACTS_B) or b"")


def _in_squashfs(image: Path) -> ImageFacts | None:
    with temporary_folder("facts") as work:
        printed = work / "printed"
        run_tool([tool("unsquashfs", "squashfs-tools"), "-cat", str(image), FACTS_FILE], output=printed)
        with printed.open("rb") as stream:
            return read_facts(stream.read(MOST_FACTS_B + 1))


@cache
def stated_by(image: Image) -> dict[str, Any]:
    """Its base, content, packages with their versions, and variables; empty if seatrial did not make it. Variables
    whose names suggest secrets are left out: an image may come from someone else."""
    facts = None if image.kind in (ImageKind.NAME, ImageKind.SIF) else facts_of_image(image.path)
    if facts is None:
        return {}
    packages = None if facts.packages is None else [f"{one.name}={one.version}" for one in facts.packages]
    return {
        "made": {
            "base": facts.base,
            "content": facts.content,
            "packages": packages,
            "variables": {name: value for name, value in facts.variables if not sounds_like_a_secret(name)},
            "programs": [one.path for one in facts.programs],
        }
    }
