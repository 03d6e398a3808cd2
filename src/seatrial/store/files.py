"""The files of a results folder, opened safely as it may come from someone else, and the file system that they are on.

Every part of a path is opened by descriptor, from the results folder on, and never through a link. Only regular files
are read and written: opening a FIFO would wait for ever, opening a device may act on it. What is read has a size limit.
A folder may be on a network file system, which reports errors late, or on a local one, whose files all processes see
alike.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from seatrial.errors import StoreError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_PART_B = 1 << 18
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@contextmanager
def opened_folder(root: Path, *inside: str) -> Iterator[int]:
    """The descriptor of a folder inside `root`; only `root` itself may be a link. Raises OSError."""
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in inside:
            above, folder = folder, _open(name, _FOLDER, folder, "a folder")
            os.close(above)
        yield folder
    finally:
        os.close(folder)


@contextmanager
def opened_file(root: Path, *inside: str, buffer_B: int = -1) -> Iterator[BinaryIO]:
    """A regular file inside `root`, for reading. Raises OSError."""
    *folders, name = inside
    with opened_folder(root, *folders) as folder:
        file = _open(name, _READ, folder, "a file")
    try:
        _require_regular(file)
    except BaseException:
        os.close(file)
        raise
    with os.fdopen(file, "rb", buffering=buffer_B) as stream:
        yield stream


def read_file(root: Path, *inside: str, most: int) -> bytes:
    """The content of a regular file inside `root`. Raises StoreError, which names the file, if it cannot be read or is
    larger than `most` bytes."""
    try:
        data = bytearray()
        with opened_file(root, *inside) as file:  # in parts: Python allocates as much as it is asked to read
            while len(data) <= most and (part := file.read(min(_PART_B, most + 1 - len(data)))):
                data += part
    except (OSError, ValueError) as error:
        raise StoreError(f"{root.joinpath(*inside)} cannot be read: {reason(error)}") from error
    if len(data) > most:
        raise StoreError(f"{root.joinpath(*inside)} cannot be read: it is larger than {most >> 20} MiB")
    return bytes(data)


def names(root: Path, *inside: str, suffix: str) -> list[str]:
    """The names in a folder that end with `suffix`, sorted; none if there is no such folder. Hidden files are left out:
    a killed process leaves some. Raises StoreError."""
    try:
        with opened_folder(root, *inside) as folder, os.scandir(folder) as entries:
            found = [entry.name for entry in entries]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"{root.joinpath(*inside)} cannot be read: {reason(error)}") from error
    return sorted(name for name in found if name.endswith(suffix) and not name.startswith("."))


def make_folder(root: Path, *inside: str) -> None:
    """Create a folder inside `root`, with those above it, unless it exists. Raises OSError."""
    for depth in range(len(inside)):
        with opened_folder(root, *inside[:depth]) as above:
            try:
                os.mkdir(inside[depth], dir_fd=above)
            except FileExistsError:
                os.close(_open(inside[depth], _FOLDER, above, "a folder"))


def write_once(root: Path, *inside: str, data: bytes | Iterable[bytes]) -> None:
    """Write a file atomically: it is complete or missing after any kill. Two writers of the same content are fine.

    A link of that name is replaced, not followed. Raises OSError.
    """
    *folders, name = inside
    private = f".{name}.{os.getpid()}-{secrets.token_hex(4)}"  # processes of other hosts may have our number
    with opened_folder(root, *folders) as folder:
        try:
            with os.fdopen(os.open(private, _NEW, 0o666, dir_fd=folder), "wb") as file:
                file.writelines((data,) if isinstance(data, bytes) else data)
            os.replace(private, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(private, dir_fd=folder)
            raise


def open_new(root: Path, *inside: str) -> int:
    """The descriptor of a new file, for appending. Raises OSError if the name exists."""
    *folders, name = inside
    with opened_folder(root, *folders) as folder:
        return os.open(name, _NEW, 0o666, dir_fd=folder)


def reason(error: Exception) -> str:
    """Why a file could not be opened, without its name."""
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def _open(name: str, flags: int, folder: int, wanted: str) -> int:
    """Open a name in a folder. A link, FIFO, socket or device is refused by what it is, before it is opened."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise OSError(errno.EINVAL, f"{name[:80]!r} is not a file name")
    kind = _KINDS.get(stat.S_IFMT(os.lstat(name, dir_fd=folder).st_mode), "a file")
    if kind != wanted:
        raise OSError(errno.EINVAL, f"it is {kind}, not {wanted}")
    return os.open(name, flags, dir_fd=folder)  # it may have been exchanged since: the flags refuse a link again


def _require_regular(file: int) -> None:
    mode = os.fstat(file).st_mode
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, f"it is {_KINDS.get(stat.S_IFMT(mode), 'no file')}, not a file")


_REMOTE = frozenset(
    (
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "lustre",
        "gpfs",
        "beegfs",
        "ceph",
        "glusterfs",
        "fuse.glusterfs",
        "afs",
        "9p",
        "panfs",
    )
)


_LOCAL = frozenset(("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "tmpfs"))
_MOUNTS = Path("/proc/self/mountinfo")


def is_remote(folder: Path, mounts: Path = _MOUNTS) -> bool:
    """Whether the type is a known one of a network; False if nothing is known."""
    return _kind(folder, mounts) in _REMOTE


def is_local(folder: Path, mounts: Path = _MOUNTS) -> bool:
    """Whether the type is a known one of a local disk; False if nothing is known."""
    return _kind(folder, mounts) in _LOCAL


def _kind(folder: Path, mounts: Path) -> str:
    """The type of the mount that has the folder, by its device number (proc_pid_mountinfo(5)); "" if unknown."""
    try:
        device = folder.stat().st_dev
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in lines:
        before, _, after = line.partition(" - ")
        words = before.split()
        if len(words) > 2 and words[2] == number:
            return after.partition(" ")[0]
    return ""
