"""The initial file system of a guest, which is all of its files: an archive that Linux unpacks into memory.

Format: cpio "newc" (Linux, Documentation/driver-api/early-userspace/buffer-format.rst).
"""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from seatrial.environments.loader import interpreter
from seatrial.errors import ParseError
from seatrial.places.guest.qemu import GuestError

_FOLDERS = ("bin", "dev", "etc", "lib", "proc", "root", "run", "seatrial", "sys", "tmp", "usr", "usr/bin", "usr/sbin")
_OS_RELEASE = b'ID=seatrial-guest\nNAME="seatrial guest"\nPRETTY_NAME="seatrial guest (busybox)"\n'
_LINK = stat.S_IFLNK | 0o777
_FILE, _PROGRAM, _FOLDER = stat.S_IFREG | 0o644, stat.S_IFREG | 0o755, stat.S_IFDIR | 0o755
BUSYBOX = "bin/busybox"


def find_busybox() -> Path:
    """A busybox that needs no libraries. Raises GuestError if there is none."""
    for folder in ("/bin", "/usr/bin", "/usr/local/bin"):
        path = shutil.which("busybox", path=folder)
        if path is not None and _is_static(Path(path)):
            return Path(path)
    raise GuestError(
        "a guest needs a busybox without shared libraries, which is not installed",
        "on Debian: apt install busybox-static",
    )


def initramfs(agent: bytes, busybox: bytes, applets: Iterable[str], modules: Iterable[tuple[str, bytes]]) -> bytes:
    """The archive: `agent` is the first process, `applets` the commands of busybox, `modules` (name, content) are
    loaded in this order."""
    archive = _Archive()
    for folder in _FOLDERS:
        archive.add(folder, _FOLDER)
    archive.add("init", _PROGRAM, agent)
    archive.add(BUSYBOX, _PROGRAM, busybox)
    for applet in applets:
        if applet != "busybox" and applet.replace("-", "").replace("_", "").replace("[", "").isalnum():
            archive.add(f"usr/bin/{applet}", _LINK, b"/" + BUSYBOX.encode())
    archive.add("bin/sh", _LINK, b"busybox")
    archive.add("etc/os-release", _FILE, _OS_RELEASE)
    archive.add("etc/passwd", _FILE, b"root:x:0:0:root:/root:/bin/sh\n")
    archive.add("etc/group", _FILE, b"root:x:0:\n")
    names = []
    for name, content in modules:
        names.append(f"/seatrial/{name}.ko\n")
        archive.add(f"seatrial/{name}.ko", _FILE, content)
    archive.add("seatrial/modules", _FILE, "".join(names).encode())
    return archive.finished()


class _Archive:
    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._count = 0

    def add(self, name: str, mode: int, data: bytes = b"") -> None:
        """Add a file; the data of a link is its target."""
        assert not PurePosixPath(name).is_absolute()  # noqa: S101 - our own names
        self._count += 1
        links = 2 if stat.S_ISDIR(mode) else 1
        label = name.encode() + b"\0"
        fields = (self._count, mode, 0, 0, links, 0, len(data), 0, 0, 0, 0, len(label), 0)
        header = b"070701" + "".join(f"{value:08x}" for value in fields).encode()
        self._parts += [_padded(header + label), _padded(data)]

    def finished(self) -> bytes:
        """The whole archive."""
        self.add("TRAILER!!!", 0)
        return b"".join(self._parts)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)


def _is_static(path: Path) -> bool:
    """Whether an ELF file asks for no loader."""
    try:
        return interpreter(path) is None
    except (OSError, ParseError):
        return False
