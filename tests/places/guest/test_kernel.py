"""Finding the kernel of a guest and its modules."""

from __future__ import annotations

from pathlib import Path

import pytest
from places.guest.made_up_kernel import VERSION, image, make_kernel_package

from seatrial.errors import UsageError
from seatrial.places.guest.kernel import find_kernel, needed_modules
from seatrial.places.guest.qemu import GuestError, why_not_kvm


@pytest.fixture
def unpacked(tmp_path: Path) -> Path:
    """A kernel package, unpacked."""
    make_kernel_package(tmp_path)
    return tmp_path


def test_modules_come_after_those_they_need(unpacked: Path) -> None:
    kernel = find_kernel(unpacked / "boot" / f"vmlinuz-{VERSION}")
    assert kernel.version == VERSION
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
    modules = unpacked / "lib" / "modules" / VERSION / "kernel"
    (modules / "strange.ko.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    with pytest.raises(GuestError, match="does not read"):
        list(needed_modules(find_kernel(None, unpacked / "boot"), ["strange"]))


def test_a_device_that_is_not_kvm_is_no_kvm(tmp_path: Path) -> None:
    assert "No such file" in why_not_kvm(tmp_path / "kvm")
    assert "ioctl" in why_not_kvm(Path("/dev/null"))
