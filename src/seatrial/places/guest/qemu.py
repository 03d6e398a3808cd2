"""The emulator that guests run in, and whether this machine can run them on its own processors (KVM)."""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from seatrial.errors import SeatrialError
from seatrial.processes.working_folder import on_path

_PROGRAM = "qemu-system-x86_64"
_KVM = Path("/dev/kvm")
_GET_API_VERSION, _CREATE_VM = 0xAE00, 0xAE01
_API_VERSION = 12
"""Linux, include/uapi/linux/kvm.h; the version has been 12 since Linux 2.6.22."""


class GuestError(SeatrialError):
    """A guest cannot be started here, or a part of it failed."""


@dataclass(frozen=True, slots=True)
class Emulator:
    """`why_not_kvm` is why the processors are emulated (TCG); "" if KVM works."""

    path: str
    why_not_kvm: str

    @property
    def accelerator(self) -> str:
        """`kvm` or `tcg`."""
        return "tcg" if self.why_not_kvm else "kvm"


def find_emulator() -> Emulator:
    """QEMU of this machine. Raises GuestError if it is not installed, or this is not an x86-64 machine."""
    if os.uname().machine != "x86_64":
        raise GuestError(f"guests are of x86-64, and this machine is {os.uname().machine}", "run it on x86-64")
    path = on_path(_PROGRAM)
    if path is None:
        raise GuestError(f"a guest needs {_PROGRAM}, which is not installed", "on Debian: apt install qemu-system-x86")
    return Emulator(path, why_not_kvm())


def why_not_kvm(device: Path = _KVM) -> str:
    """Why KVM does not work here; "" if it does. The device alone says nothing: a guest without nested virtualization
    may have it, so a machine is made and given up."""
    try:
        kvm = os.open(device, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        return f"{device}: {error.strerror}"
    try:
        if fcntl.ioctl(kvm, _GET_API_VERSION, 0) != _API_VERSION:
            return f"{device}: unknown version"
        os.close(fcntl.ioctl(kvm, _CREATE_VM, 0))
    except OSError as error:
        return f"{device}: {error.strerror}"
    finally:
        os.close(kvm)
    return ""
