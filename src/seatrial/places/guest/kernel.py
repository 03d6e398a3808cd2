"""The kernel of a guest: found, with the modules that the guest needs, each after those it depends on.

The version is read from the image (Linux, Documentation/arch/x86/boot.rst: `kernel_version`), what a module depends on
from the module itself (its section .modinfo), so that an unpacked package needs no depmod.
"""

from __future__ import annotations

import gzip
import lzma
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from seatrial.errors import UsageError
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
