"""The folder of the one guest of a user, what is known of a running guest (a JSON file, written when it has come up),
and how its processes are found.

`up` makes the file `alive` and starts QEMU with a descriptor of it. Whatever has that file open belongs to the guest,
from before QEMU's first instruction on, so nothing has to be recorded before a process is started, and process ids are
never trusted. Everything else is in the folder.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from seatrial.errors import UsageError
from seatrial.model.frozen import Frozen
from seatrial.model.machine.guest import GuestTopology
from seatrial.places.guest.qemu import GuestError
from seatrial.places.owned_folder import OwnedFolder, read_state

FOLDER = "SEATRIAL_VM"
"""Names the folder of the guest."""
ALIVE = "alive"
GUEST = OwnedFolder("guest", "vm", FOLDER, 80, "others", ALIVE)
_LOOK_S, _MOST_LOOKS = 1.0, 60


class GuestState(Frozen):
    """`accelerator`: kvm, or tcg if the processors are emulated, and then `why_emulated`. `boot_s`: from the start of
    QEMU until the guest ran a command. `kernel`: its version."""

    topology: GuestTopology
    pid: int
    accelerator: str
    why_emulated: str
    kernel: str
    boot_s: float


class GuestHome(Frozen):
    """The folder of a guest, which is locked while it is brought up or down."""

    path: Path

    def members(self) -> set[int]:
        """The processes of the guest, without this one."""
        try:
            mark = (self.path / ALIVE).stat()
        except FileNotFoundError:
            return set()
        wanted = (mark.st_dev, mark.st_ino)
        numbers = (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 - thousands of them
        return {pid for pid in numbers if pid != os.getpid() and _has_open(pid, wanted)}

    def end_members(self) -> None:
        """Kill the processes of the guest. Raises GuestError if one does not end."""
        left: set[int] = set()
        for _ in range(_MOST_LOOKS):  # not until a time: this process may stand still, and theirs have not ended then
            left = self.members()
            if not left:
                return
            for pid in left:
                self._kill(pid)
        raise GuestError(f"processes {sorted(left)} of the guest do not end", "try again")

    def _kill(self, pid: int) -> None:
        """Kill a process, if it is still the one that has our file: its number may have been used again. Returns when
        all of its threads have ended: before that, files may still come."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            handle = os.pidfd_open(pid)
            try:
                if pid in self.members():
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                    ended = select.poll()
                    ended.register(handle, select.POLLIN)
                    ended.poll(_LOOK_S * 1e3)
            finally:
                os.close(handle)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)

    def read_state(self) -> GuestState | None:
        """See `owned_folder.read_state`."""
        return read_state(self.path, GuestState)

    def remove(self) -> None:
        """Remove the folder, the file that finds processes last. Raises StoreError."""
        GUEST.remove(self.path)


def guest_home_path(variables: Mapping[str, str]) -> Path:
    """The folder of the guest: $SEATRIAL_VM, else one in /run (root) or $XDG_RUNTIME_DIR. Raises UsageError."""
    if (given := GUEST.named(variables)) is not None:
        return given
    runtime = "/run" if os.geteuid() == 0 else variables.get("XDG_RUNTIME_DIR", "")
    if not runtime:
        raise UsageError("there is no folder for a guest's files", f"name a new folder with ${FOLDER}")
    return Path(runtime) / "seatrial-vm"


@contextmanager
def new_guest_home(path: Path) -> Iterator[GuestHome]:
    """Make the folder, for this user only, and hold its lock. Raises UsageError if there is one, StoreError."""
    with GUEST.new(path, 0o700):
        yield GuestHome(path)


@contextmanager
def existing_guest_home(path: Path) -> Iterator[GuestHome | None]:
    """Hold the lock of the folder; None if there is no guest. Raises UsageError if others could have written there,
    BusyError if a process is bringing the guest up or down."""
    with GUEST.existing(path) as is_there:
        yield GuestHome(path) if is_there else None


def check_guest_home(path: Path) -> GuestHome | None:
    """The folder, without its lock; None if there is none. Raises UsageError if others could have written there."""
    return GuestHome(path) if GUEST.is_there(path) else None


def _has_open(pid: int, wanted: tuple[int, int]) -> bool:
    """Whether a process has a file (device, inode) open; False for those of other users."""
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except OSError:
        return False
    for name in names:
        try:
            found = os.stat(f"{folder}/{name}")  # noqa: PTH116
        except OSError:
            continue
        if (found.st_dev, found.st_ino) == wanted:
            return True
    return False
