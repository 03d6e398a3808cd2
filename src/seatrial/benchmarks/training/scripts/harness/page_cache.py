"""What of a data set is in the page cache, and on what kind of file system it is."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterable
from pathlib import Path

_KINDS = {
    "memory": ("tmpfs", "ramfs", "hugetlbfs"),
    "NFS": ("nfs", "nfs4"),
    "parallel file system": ("lustre", "gpfs", "beegfs", "beegfs_nodev", "ceph", "wekafs", "pvfs2", "orangefs"),
    "local disk": ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "overlay", "bcachefs", "jfs"),
}


def where(path: Path) -> tuple[str, str]:
    """What keeps the files of a folder ("memory", "local disk", "NFS", "parallel file system" or "unknown"), and the
    type of its file system as the kernel names it ("" if unknown)."""
    best, kind = "", ""
    wanted = str(path.resolve())
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "unknown", ""
    for line in lines:
        mounted, _, of_system = line.partition(" - ")
        folder = mounted.split()[4].encode().decode("unicode_escape")
        if (wanted + "/").startswith(folder.rstrip("/") + "/") and len(folder) >= len(best):
            best, kind = folder, of_system.split()[0]
    return next((name for name, kinds in _KINDS.items() if kind in kinds), "unknown"), kind


def load(paths: Iterable[Path]) -> None:
    """Read all files once."""
    for path in paths:
        with path.open("rb", buffering=0) as file:
            while file.read(1 << 20):
                pass


def drop(paths: Iterable[Path]) -> None:
    """Ask the kernel to forget the contents of files. It keeps pages that are not on storage yet, so they are written
    first, and those that a process has mapped."""
    for path in paths:
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def cached_share(paths: Iterable[Path]) -> float | None:
    """Share of the pages of these files that are in memory, by mincore; None if it cannot say."""
    pages = cached = 0
    try:
        library = ctypes.CDLL(None, use_errno=True)
        library.mmap.restype = ctypes.c_void_p
        library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        library.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
        for path in paths:
            size = path.stat().st_size
            count = -(-size // mmap.PAGESIZE)
            if not count:
                continue
            found = ctypes.create_string_buffer(count)
            with path.open("rb") as file:
                address = library.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
            if address in (None, ctypes.c_void_p(-1).value):
                return None
            failed = library.mincore(address, size, found)
            library.munmap(address, size)
            if failed:
                return None
            pages += count
            cached += sum(page & 1 for page in found.raw)
    except (OSError, AttributeError):
        return None
    return cached / pages if pages else None
