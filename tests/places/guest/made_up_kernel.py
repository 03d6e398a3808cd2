"""A kernel package as it looks unpacked, with a few bytes of each file."""

from __future__ import annotations

import lzma
import struct
from pathlib import Path

VERSION = "6.1.0-5-cloud-amd64"


def image(version: str) -> bytes:
    """The header of a kernel image, with its version where the header says it is."""
    data = bytearray(4096)
    data[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", data, 0x20E, 0x600)
    text = version.encode() + b" (someone@somewhere) #1 SMP\0"
    data[0x800 : 0x800 + len(text)] = text
    return bytes(data)


def make_kernel_package(folder: Path) -> None:
    """Write it into an existing folder."""
    (folder / "boot").mkdir()
    (folder / "boot" / f"vmlinuz-{VERSION}").write_bytes(image(VERSION))
    modules = folder / "lib" / "modules" / VERSION
    (modules / "kernel").mkdir(parents=True)
    (modules / "modules.builtin").write_text("kernel/drivers/nvme/nvme-core.ko\n")
    needs = {
        "virtio": "", "virtio_ring": "virtio", "virtio_pci": "virtio,virtio_ring", "virtio_console": "virtio_ring",
        "nvme": "nvme-core",
    }  # fmt: skip
    for name, depends in needs.items():
        content = b"\x7fELF...\0depends=" + depends.encode() + b"\0name=x\0"
        if name == "virtio":
            (modules / "kernel" / "virtio.ko.xz").write_bytes(lzma.compress(content))
        else:
            (modules / "kernel" / f"{name.replace('_', '-')}.ko").write_bytes(content)
