"""Finding the kernel of a guest and its modules."""

from __future__ import annotations

import lzma
import struct
from pathlib import Path

import pytest

from seatrial.errors import UsageError
from seatrial.launch.guest.kernel import find_kernel, needed_modules
from seatrial.launch.guest.qemu import GuestError, why_not_kvm

_VERSION = "6.1.0-5-cloud-amd64"


def image(version: str) -> bytes:
    """The header of a kernel image, with its version where the header says it is."""
    data = bytearray(4096)
    data[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", data, 0x20E, 0x600)
    text = version.encode() + b" (someone@somewhere) #1 SMP\0"
    data[0x800 : 0x800 + len(text)] = text
    return bytes(data)


@pytest.fixture
def unpacked(tmp_path: Path) -> Path:
    """A kernel package, unpacked."""
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot" / f"vmlinuz-{_VERSION}").write_bytes(image(_VERSION))
    modules = tmp_path / "lib" / "modules" / _VERSION
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
    return tmp_path


def test_modules_come_after_those_they_need(unpacked: Path) -> None:
    kernel = find_kernel(unpacked / "boot" / f"vmlinuz-{_VERSION}")
    assert kernel.version == _VERSION
    found = dict(needed_modules(kernel, ["nvme"]))
    assert list(found) == ["virtio", "virtio_ring", "virtio_pci", "virtio_console", "nvme"]
    assert all(content.startswith(b"\x7fELF") for content in found.values())
    assert find_kernel(None, unpacked / "boot", Path("/nowhere")) == kernel


def test_what_is_missing_is_named(unpacked: Path, tmp_path: Path) -> None:
    kernel = find_kernel(None, unpacked / "boot")
    with pytest.raises(GuestError, match="no module cxl_acpi"):
        list(needed_modules(kernel, ["cxl_acpi"]))
    with pytest.raises(GuestError, match="there is none in"):
        find_kernel(None, tmp_path / "empty")
    (unpacked / "boot" / "vmlinuz-x").write_bytes(image("9.9.9"))
    with pytest.raises(GuestError, match="modules of the kernel"):
        find_kernel(unpacked / "boot" / "vmlinuz-x", tmp_path / "none")


@pytest.mark.parametrize("data", [b"", b"\x7fELF" + b"\0" * 600, image("../../etc"), image("")])
def test_what_is_not_a_kernel_is_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(UsageError, match="not a Linux kernel"):
        find_kernel(tmp_path / "file")
    with pytest.raises(UsageError, match="cannot be read"):
        find_kernel(tmp_path / "missing")


def test_a_packed_module_of_an_unknown_kind_is_refused(unpacked: Path) -> None:
    modules = unpacked / "lib" / "modules" / _VERSION / "kernel"
    (modules / "strange.ko.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    with pytest.raises(GuestError, match="does not read"):
        list(needed_modules(find_kernel(None, unpacked / "boot"), ["strange"]))


def test_a_device_that_is_not_kvm_is_no_kvm(tmp_path: Path) -> None:
    assert "No such file" in why_not_kvm(tmp_path / "kvm")
    assert "ioctl" in why_not_kvm(Path("/dev/null"))
