"""The folder of the one guest of a user, what is known of a running guest (a JSON file, written when it has come up),
and how its processes are found.

`up` makes the file `alive` and starts QEMU with a descriptor of it. Whatever has that file open belongs to the guest,
from before QEMU's first instruction on, so nothing has to be recorded before a process is started, and process ids are
never trusted. Everything else is in the folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seatrial.errors import BusyError, StoreError, UsageError
from seatrial.launch.owned_folder import is_owned, locked
from seatrial.model.frozen import Frozen
from seatrial.model.json_object import plain
from seatrial.model.json_record import record_of
from seatrial.model.machine.guest import GuestTopology
from seatrial.places.guest.qemu import GuestError

STATE = "state.json"
_VERSION = 1


class GuestState(Frozen):
    """`accelerator`: kvm, or tcg if the processors are emulated, and then `why_emulated`. `boot_s`: from the start of
    QEMU until the guest ran a command. `kernel`: its version."""

    topology: GuestTopology
    pid: int
    accelerator: str
    why_emulated: str
    kernel: str
    boot_s: float

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {"v": _VERSION, **plain(self)}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> GuestState:
        """The inverse. Raises KeyError or ValueError."""
        if document["v"] != _VERSION:
            raise ValueError(f"version {document['v']}")
        return record_of(cls, document)


def state_text(state: GuestState) -> str:
    """The text of the file."""
    return json.dumps(state.document(), indent=1)


def read_guest_state(folder: Path) -> GuestState | None:
    """The state of the guest in this folder; None if it has not come up, or its file is damaged."""
    try:
        return GuestState.from_document(json.loads((folder / STATE).read_text()))
    except (OSError, KeyError, TypeError, ValueError, AttributeError):
        return None


FOLDER = "SEATRIAL_VM"
"""Names the folder of the guest."""
ALIVE = "alive"
_LONGEST_PATH = 80
"""Sockets in it have at most 107 characters."""
_LOOK_S, _MOST_LOOKS = 1.0, 60


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
        return {pid for pid in _processes() if pid != os.getpid() and _has_open(pid, wanted)}

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

    def remove(self) -> None:
        """Remove the folder, the file that finds processes last. Raises StoreError."""
        try:
            for entry in self.path.iterdir():
                if entry.name != ALIVE:
                    shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
            (self.path / ALIVE).unlink(missing_ok=True)
            self.path.rmdir()
        except OSError as error:
            raise StoreError(
                f"{self.path} cannot be removed: {error.strerror} ({error.filename})", "try again"
            ) from error


def guest_home_path(variables: Mapping[str, str]) -> Path:
    """The folder of the guest: $SEATRIAL_VM, else one in /run (root) or $XDG_RUNTIME_DIR. Raises UsageError."""
    given = variables.get(FOLDER)
    if not given:
        runtime = "/run" if os.geteuid() == 0 else variables.get("XDG_RUNTIME_DIR", "")
        if not runtime:
            raise UsageError("there is no place for a guest's files", f"name a new folder with ${FOLDER}")
        return Path(runtime) / "seatrial-vm"
    path = Path(given)
    if not path.is_absolute() or len(str(path)) > _LONGEST_PATH or not given.isprintable():
        raise UsageError(
            f"${FOLDER} is {given!r}", f"it must be an absolute path of at most {_LONGEST_PATH} characters"
        )
    return path


@contextmanager
def new_guest_home(path: Path) -> Iterator[GuestHome]:
    """Make the folder, for this user only, and hold its lock. Raises UsageError if there is one, StoreError."""
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        raise guest_already_there(path) from None
    except OSError as error:
        raise StoreError(f"the guest's folder {path} cannot be made: {error.strerror}") from error
    with locked(path, _busy(path)):
        yield GuestHome(path)


def guest_already_there(path: Path) -> UsageError:
    """The error of a second guest."""
    return UsageError(f"a guest is already there, in {path}", "seatrial vm status shows it, seatrial vm down ends it")


@contextmanager
def existing_guest_home(path: Path) -> Iterator[GuestHome | None]:
    """Hold the lock of the folder; None if there is no guest. Raises UsageError if others could have written there,
    BusyError if a process is bringing the guest up or down."""
    if check_guest_home(path) is None:
        yield None
        return
    with locked(path, _busy(path)):
        yield GuestHome(path) if path.exists() else None


def check_guest_home(path: Path) -> GuestHome | None:
    """The folder, without its lock; None if there is none. Raises UsageError if others could have written there."""
    try:
        if not is_owned(path):
            raise UsageError(
                f"{path} is not a guest's folder: others can write there", f"check ${FOLDER}, or remove it"
            )
    except FileNotFoundError:
        return None
    return GuestHome(path)


def _busy(path: Path) -> BusyError:
    return BusyError(
        f"another seatrial process is bringing the guest in {path} up or down",
        "wait for it, or end it and run seatrial vm down",
    )


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - thousands of them


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
