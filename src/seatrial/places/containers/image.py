"""Images of containers: their kind, by their content, and their digest."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from enum import StrEnum
from pathlib import Path

from seatrial.environments.asking import once_for_each_file
from seatrial.errors import BuildError
from seatrial.model.frozen import Frozen


class ContainerError(BuildError):
    """An image or a runtime cannot be used here, or ranks cannot work in it; `todo` is the remedy, `output` what the
    runtime printed, `fault` the name of a known fault."""

    need = "container"

    def __init__(self, message: str, todo: str = "", output: str = "", fault: str = "") -> None:
        super().__init__(message, todo, output=output)
        self.fault = fault


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@+-]{0,254}")
_SIF = b"SIF_MAGIC"
_SIF_AT = 32  # after the launch script (sylabs/sif, pkg/sif: the global header)
_SQUASHFS = b"hsqs"
_TAR, _TAR_AT = b"ustar", 257


class ImageKind(StrEnum):
    """The forms of images. A name stands for an image that a runtime has stored, or for a virtual machine."""

    FOLDER = "folder"
    SQUASHFS = "squashfs"
    SIF = "SIF"
    ARCHIVE = "archive"
    NAME = "local image"
    GUEST = "virtual machine"


class Image(Frozen):
    """An image. `given` is its absolute path, or its name; `digest` identifies its content ("" for a name, whose
    runtime knows it). `archive` is what it was unpacked from; "" if it was not."""

    given: str
    kind: ImageKind
    digest: str
    archive: str = ""

    @property
    def name(self) -> str:
        """As people call it: without its folder, if it has one."""
        return Path(self.archive or self.given).name if self.digest else self.given

    @property
    def path(self) -> Path:
        """Its file or folder."""
        return Path(self.given)


def image_of(text: str) -> Image:
    """The image of this path or name. Raises ContainerError if it does not exist, or is not an image."""
    path = Path(text).expanduser()
    if path.exists() or text.startswith(("/", "./", "../", "~")):
        return _at(path.absolute())
    if not _NAME.fullmatch(text):
        raise ContainerError(f"{text!r} is neither a file nor the name of an image", "give the path of an image")
    return Image(text, ImageKind.NAME, "")


def _at(path: Path) -> Image:
    try:
        info = path.stat()
        if stat.S_ISDIR(info.st_mode):
            kind = ImageKind.ARCHIVE if is_layout(path) else ImageKind.FOLDER
            return Image(str(path), kind, _digest_of_folder(path))
        with path.open("rb") as stream:
            start = stream.read(512)
        found = kind_of_file(start)
        if found is None:
            raise ContainerError(
                f"{path} is not an image: neither squashfs nor SIF nor a tar",
                "unpack it into a folder, or convert it with mksquashfs, apptainer build or ch-convert",
            )
        return Image(str(path), found, _digest_of_file(path))
    except OSError as error:
        raise ContainerError(
            f"the image {path} cannot be read: {error.strerror or error}", "give the path of an image"
        ) from error


def is_layout(folder: Path) -> bool:
    """Whether a folder is an image layout (OCI image format specification 1.0), which is an archive, not a root."""
    return all((folder / name).is_file() for name in ("oci-layout", "index.json")) and (folder / "blobs").is_dir()


def kind_of_file(start: bytes) -> ImageKind | None:
    """What an image in a file is, by its first 512 bytes; None if it is none."""
    if start[_SIF_AT : _SIF_AT + len(_SIF)] == _SIF:
        return ImageKind.SIF
    if start.startswith(_SQUASHFS):
        return ImageKind.SQUASHFS
    return ImageKind.ARCHIVE if start[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR else None


@once_for_each_file
def _digest_of_file(path: Path) -> str:
    with path.open("rb") as stream:
        return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"


@once_for_each_file
def _digest_of_folder(top: Path) -> str:
    """SHA-256 over all names, modes, link targets and contents, in the order of the names.

    Times and owners do not count: a copy is the same image. Device files count by their name, files that this user may
    not read by their size.
    """
    digest = hashlib.sha256()
    for folder, names, files in os.walk(top):
        names.sort()
        for name in sorted([*files, *names]):
            path = Path(folder, name)
            info = path.lstat()
            digest.update(f"{path.relative_to(top)}\0{info.st_mode:o}\0".encode("utf-8", "surrogateescape"))
            if stat.S_ISLNK(info.st_mode):
                digest.update(os.fsencode(path.readlink()))
            elif stat.S_ISREG(info.st_mode):
                digest.update(_content(path, info.st_size))
    return f"sha256:{digest.hexdigest()}"


def _content(path: Path, size: int) -> bytes:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").digest()
    except PermissionError:
        return str(size).encode()
