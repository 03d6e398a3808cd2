"""The kernel of a guest, found with the modules that the guest needs, each after those it depends on; and the initial
file system, which is all of its files: an archive that Linux unpacks into memory.

The version is read from the image (Linux, Documentation/arch/x86/boot.rst: `kernel_version`), what a module depends on
from the module itself (its section .modinfo), so that an unpacked package needs no depmod. The format of the archive is
cpio "newc" (Linux, Documentation/driver-api/early-userspace/buffer-format.rst).
"""

from __future__ import annotations

import gzip
import lzma
import re
import shutil
import stat
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from seatrial.environments.loader import interpreter
from seatrial.errors import ParseError, UsageError
from seatrial.model.frozen import Frozen
from seatrial.places.guest.qemu import GuestError

KERNEL = "SEATRIAL_GUEST_KERNEL"
"""Names the kernel of guests, if `--kernel` does not."""
_INSTALL = (
    "install a kernel package, or unpack one (apt download, dpkg-deb -x FILE.deb DIR) and name its kernel: "
    "--kernel DIR/boot/vmlinuz-VERSION; on Debian the package that linux-image-cloud-amd64 depends on is the smallest"
)
_MAGIC_AT, _MAGIC = 0x202, b"HdrS"
_VERSION_AT, _BEFORE_VERSION = 0x20E, 0x200
_VERSION = re.compile(rb"[0-9][0-9A-Za-z.+~_-]{0,120}")
_MOST_KERNEL_B = 1 << 28
_MOST_MODULE_B = 1 << 26
_ALWAYS = ("virtio_pci", "virtio_console")
_UNPACK = {".xz": lzma.decompress, ".gz": gzip.decompress}


class Kernel(Frozen):
    """A kernel image, its version, and the folder of its modules."""

    image: Path
    version: str
    modules: Path


def find_kernel(named: Path | None, boot: Path = Path("/boot"), usual: Path = Path("/lib/modules")) -> Kernel:
    """The kernel in the file `named`; None: one of those in `boot`, the newest, one for clouds before others.

    Its modules are in lib/modules/VERSION beside the folder of the image, else below `usual`. Raises UsageError if the
    named file is not a kernel, GuestError if none or no modules are found.
    """
    if named is not None:
        return _kernel(named, usual)
    images = sorted(boot.glob("vmlinuz-*"), key=lambda path: ("cloud" in path.name, path.stat().st_mtime), reverse=True)
    if not images:
        raise GuestError(f"a guest needs a Linux kernel, and there is none in {boot}", _INSTALL)
    return _kernel(images[0], usual)


def needed_modules(kernel: Kernel, wanted: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Name and content of each module, in an order in which they can be loaded; those that are built in are left out.

    Raises GuestError if one is neither there nor built in.
    """
    files = {_bare(path): path for path in kernel.modules.rglob("*.ko*") if path.is_file()}
    built_in = {_bare(Path(line)) for line in _lines(kernel.modules / "modules.builtin")}
    done: set[str] = set()
    for name in (*_ALWAYS, *wanted):
        yield from _with_needs(kernel, name, files, built_in, done)


def _with_needs(
    kernel: Kernel, name: str, files: Mapping[str, Path], built_in: set[str], done: set[str]
) -> Iterator[tuple[str, bytes]]:
    if name in done or name in built_in:
        return
    done.add(name)
    if name not in files:
        raise GuestError(
            f"the kernel {kernel.image} has no module {name} in {kernel.modules}", "name another with --kernel FILE"
        )
    content = _content(files[name])
    for need in _needs(content):
        yield from _with_needs(kernel, need, files, built_in, done)
    yield name, content


def _needs(module: bytes) -> list[str]:
    """The modules that one depends on: `depends=a,b` in .modinfo."""
    found = re.search(rb"\0depends=([A-Za-z0-9_,-]*)\0", module)
    words = found[1].decode().split(",") if found else []
    return [word.replace("-", "_") for word in words if word]


def _content(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        unpack = _UNPACK.get(path.suffix)
        if path.stat().st_size > _MOST_MODULE_B:
            raise GuestError(f"the kernel module {path} is larger than {_MOST_MODULE_B >> 20} MiB")
        data = unpack(data) if unpack else data
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise GuestError(f"the kernel module {path} cannot be read: {error}") from error
    if not data.startswith(b"\x7fELF"):
        raise GuestError(
            f"the kernel module {path} is packed in a way that seatrial does not read",
            "name a kernel whose modules are .ko, .ko.xz or .ko.gz with --kernel FILE",
        )
    return data


def _bare(path: Path) -> str:
    return path.name.partition(".ko")[0].replace("-", "_")


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []


def _kernel(image: Path, usual: Path) -> Kernel:
    image = image.absolute()
    version = _version(image)
    places = [folder / version for folder in (image.parent.parent / "lib" / "modules", usual)]
    modules = next((place for place in places if place.is_dir()), None)
    if modules is None:
        raise GuestError(
            f"the modules of the kernel {image} are neither in {places[0]} nor in {places[1]}",
            "name a kernel beside its modules with --kernel FILE",
        )
    return Kernel(image, version, modules)


def _version(image: Path) -> str:
    not_one = UsageError(
        f"{image} is not a Linux kernel for x86", "name a file such as /boot/vmlinuz-6.1.0-13-cloud-amd64"
    )
    try:
        with image.open("rb") as file:
            data = file.read(_MOST_KERNEL_B)
    except OSError as error:
        raise UsageError(f"the kernel {image} cannot be read: {error.strerror}", _INSTALL) from error
    if data[_MAGIC_AT : _MAGIC_AT + 4] != _MAGIC or len(data) < _VERSION_AT + 2:
        raise not_one
    at = struct.unpack_from("<H", data, _VERSION_AT)[0] + _BEFORE_VERSION
    found = _VERSION.match(data[at : at + 128])
    if found is None or ".." in found[0].decode():
        raise not_one
    return found[0].decode()


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
