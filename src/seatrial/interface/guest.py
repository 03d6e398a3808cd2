"""A guest on this machine: bring it up, run commands in it, describe it, end it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

from seatrial.errors import UsageError
from seatrial.model.guest_topology import GuestTopology
from seatrial.model.machine import Machine
from seatrial.places.guest.channel import PORT, Channel
from seatrial.places.guest.facts import copied_facts
from seatrial.places.guest.home import guest_already_there, guest_home_path
from seatrial.places.guest.kernel import KERNEL, find_kernel
from seatrial.places.guest.qemu import Emulator, GuestError, find_emulator
from seatrial.places.guest.run import WORK, Transfer, run_command, running_guest
from seatrial.places.guest.status import GuestStatus, read_guest_status
from seatrial.places.guest.up import Parts, bring_guest_up, take_guest_down
from seatrial.plan.topology_file import topology_of


def guest_up(
    topology: Path,
    kernel: Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
    *,
    emulated: bool = False,
) -> GuestStatus:
    """Start the guest that a topology file describes.

    `kernel` is the file of its kernel (None: $SEATRIAL_GUEST_KERNEL, else an installed one); `emulated` does not try
    KVM. Raises UsageError for a damaged file, or if there is a guest already; GuestError if a part is missing or the
    guest does not start; BuildError if its agent cannot be built.
    """
    wanted, path = topology_of(topology), guest_home_path(os.environ)
    if path.exists():  # said before anything is built; `bring_guest_up` decides
        raise guest_already_there(path)
    bring_guest_up(path, wanted, _parts(wanted, kernel, emulated=emulated), progress)
    return read_guest_status(path)


def guest_parts(topology: Path, kernel: Path | None = None) -> tuple[GuestTopology, Parts]:
    """The topology in a file, and what a guest with it is started from. Raises as `guest_up`."""
    wanted = topology_of(topology)
    return wanted, _parts(wanted, kernel, emulated=False)


def _parts(wanted: GuestTopology, kernel: Path | None, *, emulated: bool) -> Parts:
    _need_memory(wanted.memory_B)
    emulator = find_emulator()
    if emulated:
        emulator = Emulator(emulator.path, "as asked")
    named = kernel or (Path(os.environ[KERNEL]) if os.environ.get(KERNEL) else None)
    found = find_kernel(named)
    from seatrial.places.rank_helpers import guest_agent  # late: `exec` should start fast, and builds nothing

    return Parts(emulator, found, guest_agent())


def guest_exec(command: Sequence[str], bring: Sequence[str] = (), fetch: Sequence[str] = ()) -> int:
    """Run a command in the guest; its exit status.

    `bring` are files or folders of this machine, `fetch` those of the guest, each SOURCE or SOURCE:TARGET. Raises
    UsageError, GuestError.
    """
    if not command:
        raise UsageError("no command given", "for example: seatrial vm exec -- cat /proc/cpuinfo")
    into = [_transfer(text, lambda name: f"{WORK}/{name}") for text in bring]
    for one in into:
        if not PurePosixPath(one.target).is_absolute() or ".." in PurePosixPath(one.target).parts:
            raise UsageError(f"--put: the place {one.target!r} in the guest", "it must be an absolute path")
    back = [_transfer(text, lambda name: name) for text in fetch]
    return run_command(guest_home_path(os.environ), command, into, back)


def guest_machine() -> Machine:
    """What the guest of this machine is, as `discover` of a machine without Python. Raises UsageError, GuestError,
    BuildError."""
    from seatrial.machine.copied import PATTERNS, discover_copied
    from seatrial.places.rank_helpers import static_copy_facts

    path = guest_home_path(os.environ)
    running_guest(path)
    return discover_copied(copied_facts(Channel(PORT, str(path), WORK), static_copy_facts(), PATTERNS))


def guest_status() -> GuestStatus:
    """The guest of this machine as it is now."""
    return read_guest_status(guest_home_path(os.environ))


def guest_down() -> bool:
    """End the guest of this machine, whatever state it is in; False if there is none. Raises GuestError, StoreError."""
    return take_guest_down(guest_home_path(os.environ))


def _transfer(text: str, usual: Callable[[str], str]) -> Transfer:
    """SOURCE or SOURCE:TARGET."""
    source, colon, target = text.partition(":")
    name = PurePosixPath(source).name
    if not source or not name or (colon and not target):
        raise UsageError(f"{text!r} is not a file to copy", "write SOURCE or SOURCE:TARGET")
    return Transfer(source, target or usual(name))


def _need_memory(wanted_B: int) -> None:
    """Raises GuestError if this machine has less free memory: the guest would be killed, or others would."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    if found is not None and int(found[1]) * 1024 < wanted_B:
        raise GuestError(
            f"the guest has {wanted_B >> 20} MiB of memory, and {int(found[1]) >> 10} MiB are free here",
            "give its nodes less memory",
        )
