"""A base that is there: found out what it is, and added to the tree."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from seatrial.errors import UsageError
from seatrial.places.images.docker_archive import add_docker, is_docker
from seatrial.places.images.from_folder import LeftOut, add_base
from seatrial.places.images.from_tar import add_tar
from seatrial.places.images.oci import add_oci, is_oci
from seatrial.places.images.tools import run_tool, tool
from seatrial.places.images.tree import Tree

_TAR_AT, _TAR_MAGIC = 257, b"ustar"
_SQUASHFS_MAGIC = b"hsqs"
_SIF_AT, _SIF_MAGIC = 32, b"SIF_MAGIC"
_COMPRESSED = {b"\x1f\x8b": "gzip -d", b"\x28\xb5\x2f\xfd": "zstd -d", b"\xfd7zXZ": "xz -d", b"BZh": "bzip2 -d"}


class Given(Enum):
    """What a base is, by its content."""

    FOLDER = "folder"
    TAR = "tar"
    OCI = "OCI archive"
    DOCKER = "docker archive"
    SQUASHFS = "squashfs"


def kind_of(path: Path) -> Given:
    """What a base is. Raises UsageError for anything that is not supported, with the command that converts it."""
    try:
        if path.is_dir():
            return Given.OCI if _is_layout(path) else Given.FOLDER
        if not path.is_file():
            raise UsageError(f"the base {path} {'is a special file' if path.exists() else 'does not exist'}", _TODO)
        with path.open("rb") as stream:
            begin = stream.read(512)
    except OSError as error:
        raise UsageError(f"the base {path} cannot be read: {error.strerror}", _TODO) from error
    if begin[_TAR_AT : _TAR_AT + len(_TAR_MAGIC)] == _TAR_MAGIC:
        return Given.OCI if is_oci(path) else Given.DOCKER if is_docker(path) else Given.TAR
    if begin.startswith(_SQUASHFS_MAGIC):
        return Given.SQUASHFS
    if begin[_SIF_AT : _SIF_AT + len(_SIF_MAGIC)] == _SIF_MAGIC:
        raise UsageError(f"the base {path} is a SIF image", f"unpack it: apptainer build --sandbox DIR {path.name}")
    for magic, command in _COMPRESSED.items():
        if begin.startswith(magic):
            raise UsageError(f"the base {path} is compressed", f"unpack it first: {command} {path.name}")
    raise UsageError(f"the base {path} is neither a folder, tar, OCI archive nor squashfs", _TODO)


def _is_layout(folder: Path) -> bool:
    """Whether a folder is an image layout (OCI image format specification 1.0), not a root."""
    return all((folder / name).is_file() for name in ("oci-layout", "index.json")) and (folder / "blobs").is_dir()


def add_given(tree: Tree, path: Path, work: Path, left_out: LeftOut) -> tuple[str, ...]:
    """Add the files of a base; its variables as NAME=VALUE, which only archives with layers state. Raises UsageError
    for what cannot be in an image, ImageError if squashfs cannot be unpacked."""
    match kind_of(path):
        case Given.FOLDER:
            add_base(tree, path.resolve(), tree.mtime_s, left_out)
        case Given.TAR:
            add_tar(tree, path, tree.mtime_s, left_out)
        case Given.OCI:
            return add_oci(tree, path, work, tree.mtime_s, left_out)
        case Given.DOCKER:
            return add_docker(tree, path, work, tree.mtime_s, left_out)
        case Given.SQUASHFS:
            folder = work / "base"
            words = [tool("unsquashfs", "squashfs-tools"), "-quiet", "-no-progress", "-no-xattrs"]
            # 2: without root, it could not make devices, which stay out in any case
            run_tool([*words, "-dest", str(folder), str(path)], accept=(0, 2), remedy="is the image whole?")
            add_base(tree, folder, tree.mtime_s, left_out)
    return ()


_TODO = "give a folder, a tar, an archive of podman save or docker save, an OCI layout or a squashfs"
